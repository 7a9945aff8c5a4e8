// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/device_files/session_rdma_cm.h"

#include "platform/brief_polling.h"
#include "softibd/daemon_request.h"
#include "softibd/daemon_session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace ib::softib {

namespace control = verbs::control;

// GET_EVENT of a file without events, for a moment.
struct SessionRdmaCm::Waiting {
  // The program polls its mailbox for as long before it sleeps; then signals should reach it.
  static constexpr Duration kMost = platform::BriefPolling::kShortSleep;

  io::Irp& irp;
  std::span<std::byte> output;
  Done done;
  std::uint32_t file;
  Instant until;
};

// Of an event of one file, in the mailbox.
class SessionRdmaCm::Offer final : public services::rdma_cm::EventOffer {
 public:
  explicit Offer(os::ServerConnection& connection) : connection_(connection) {}

  bool offer(std::uint32_t number) override {
    if (number_ != 0) return false;
    number_ = number;
    connection_.offer(number);
    return true;
  }
  bool is_taken() const override { return !connection_.has_offer(number_); }
  bool withdraw() override { return connection_.withdraw_offer(std::exchange(number_, 0)); }

 private:
  os::ServerConnection& connection_;
  std::uint32_t number_ = 0;  // 0: none
};

SessionRdmaCm::SessionRdmaCm(SessionHost& host, os::ServerConnection& connection)
    : host_(host), connection_(connection), pid_(connection.peer().pid) {}

SessionRdmaCm::~SessionRdmaCm() {
  close();
}

Status SessionRdmaCm::open(io::Irp& irp, std::string& reason) {
  const auto in = irp.input<control::OpenRdmaCmIn>();
  if (!in) {
    reason = "OpenRdmaCm takes 128 bytes of input";
    return Status::Malformed;
  }
  if (host_.rdma_cm() == nullptr) {
    reason = "no rdma_cm here";
    return Status::NotSupported;
  }
  if (file_ != 0) {
    reason = "this connection is an open rdma_cm already";
    return Status::InvalidState;
  }
  const auto send_notice = [this](std::span<const std::byte> ahead) {
    std::array<std::byte, sizeof(control::ReplyHeader) + control::kMostRdmaCmAhead> message;
    std::copy(ahead.begin(), ahead.end(), message.begin() + sizeof(control::ReplyHeader));
    const auto used = std::span(message).first(sizeof(control::ReplyHeader) + ahead.size());
    finish_reply({}, used);
    connection_.send(used);
  };
  const auto file = host_.rdma_cm()->open(*in, pid_, send_notice, reason);
  if (!file) return file.error();
  file_ = *file;
  irp.information = *file;
  return Status::Ok;
}

Status SessionRdmaCm::command(io::Irp& irp, std::span<std::byte> output, Done done,
                              std::string& reason) {
  const auto in = DaemonRdmaCm::read_command(irp.in);
  if (!in) {
    reason = "RdmaCm takes 24 to 1048 bytes of input, with all that it says is there";
    return Status::Malformed;
  }
  if (host_.rdma_cm() == nullptr) {
    reason = "no rdma_cm here";
    return Status::NotSupported;
  }
  const DaemonRdmaCm::Answered answered = host_.rdma_cm()->command(*in, pid_, output, offer_.get());
  irp.out_size = answered.bytes;
  const bool may_wait = (in->head.flags & control::rdma_cm_in_flag::kMayWait) != 0;
  const bool waits =
      may_wait && answered.result == -EAGAIN && await_event(irp, output, in->head.file, done);
  return waits ? Status::Pending : Status::Ok;
}

// Returns false if it has to be answered now: while the loop sleeps, nothing would end the wait.
bool SessionRdmaCm::await_event(io::Irp& irp, std::span<std::byte> output, std::uint32_t file,
                                Done& done) {
  if (waiting_ != nullptr || !connection_.is_watched()) return false;
  DaemonRdmaCm& service = *host_.rdma_cm();
  waiting_ = std::make_shared<Waiting>(
      Waiting{irp, output, std::move(done), file, service.now() + Waiting::kMost});
  const auto on_event = [this, weak = std::weak_ptr(waiting_)] {
    if (weak.lock() != nullptr) end_wait();
  };
  if (!service.await_event(file, on_event)) {
    waiting_.reset();
    return false;
  }
  connection_.set_waiting(true);
  return true;
}

void SessionRdmaCm::use_mailbox() {
  offer_ = std::make_unique<Offer>(connection_);
}

void SessionRdmaCm::on_look(bool last) {
  if (last || host_.rdma_cm()->now() >= waiting_->until) end_wait();
}

// Answers what waits: with an event, or that there is none.
void SessionRdmaCm::end_wait() {
  const auto waited = std::move(waiting_);
  connection_.set_waiting(false);
  const auto in = DaemonRdmaCm::read_command(waited->irp.in);
  waited->irp.out_size = host_.rdma_cm()->command(*in, pid_, waited->output, nullptr).bytes;
  host_.rdma_cm()->end_wait(waited->file);
  waited->done(true);
}

void SessionRdmaCm::end() {
  if (const auto waited = std::move(waiting_)) {
    host_.rdma_cm()->end_wait(waited->file);
    waited->done(false);
  }
  if (offer_ != nullptr && host_.rdma_cm() != nullptr) host_.rdma_cm()->end_offer(*offer_);
  close();
}

void SessionRdmaCm::close() {
  if (file_ != 0) host_.rdma_cm()->close(file_);
  file_ = 0;
}

}  // namespace ib::softib
