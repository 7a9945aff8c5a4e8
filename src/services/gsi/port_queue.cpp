// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/port_queue_internal.h"

#include <algorithm>
#include <span>

namespace ib::services {

PortQueue::PortQueue(al::Ca& ca, std::uint32_t port, std::uint32_t number,
                     const OnReceive& on_receive)
    : ca_(ca), port_(port), number_(number) {
  qp_.set_on_receive([this, on_receive](const al::MadAddress& from, auto bytes) {
    mad::Mad mad;
    std::copy(bytes.begin(), bytes.end(), mad.begin());
    on_receive(port_, from, mad);
  });
  qp_.set_on_sent([this](std::uint64_t, verbs::WcStatus status) {
    if (status != verbs::WcStatus::Success) ++failed_;
    send_waiting();
  });
}

bool PortQueue::is_up() const {
  const hca::PortEntry* entry = ca_.al().system().arena.port(ca_.info().first_port + number_ - 1);
  return is_open() && entry != nullptr &&
         entry->state.load(std::memory_order_acquire) == verbs::PortState::Active;
}

void PortQueue::open(std::function<void()> done) {
  if (qp_.is_busy() || qp_.is_open()) return done();
  status_ = Status::Pending;
  done_ = std::move(done);
  const auto opened = [](io::Irp& irp, void* context) {
    PortQueue& self = *static_cast<PortQueue*>(context);
    self.status_ = irp.status;
    self.reason_ = irp.reason;
    std::exchange(self.done_, nullptr)();  // `self` may be gone now
  };
  qp_.open(ca_, {verbs::QpType::Gsi, number_, kDepth, kReportEvery}, irp_.start(opened, this));
}

void PortQueue::abandon() {
  waiting_.clear();
  qp_.abandon();
}

Status PortQueue::send(const al::MadAddress& to, const mad::Mad& mad) {
  if (!is_up()) return Status::DeviceRemoved;
  if (waiting_.empty()) {
    const Status sent = qp_.send(to, mad);
    if (sent != Status::LimitExceeded) return sent;
  }
  if (waiting_.size() >= kMostWaiting) return Status::LimitExceeded;
  waiting_.emplace_back(to, mad);
  return Status::Ok;
}

void PortQueue::send_waiting() {
  while (!waiting_.empty()) {
    const Status sent = qp_.send(waiting_.front().first, waiting_.front().second);
    if (sent == Status::LimitExceeded) return;
    if (sent != Status::Ok) ++failed_;
    waiting_.pop_front();
  }
}

}  // namespace ib::services
