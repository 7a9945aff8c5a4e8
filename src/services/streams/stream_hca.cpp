// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd as a client of one HCA, for the ends there: opened at the first need, with what they
// share (protection domain, memory, a completion queue for sends), closed when the HCA goes.
#include "services/streams/stream_hca.h"

#include "streams/shared_end.h"
#include "verbs/control_streams.h"

#include <fmt/format.h>

namespace ib::services {

namespace control = verbs::control;
using control::Code;

namespace {

constexpr std::uint32_t kPlacesOfSlab = 64;  // 29 MB, of which only what is used gets pages
constexpr std::uint32_t kRingsOfSlab = 16;

}  // namespace

StreamHca::StreamHca(al::System& system, io::DriverObject& driver, const fabric::Fabric& fabric,
                     const fabric::Hca& hca, std::function<void()> on_gone)
    : system_(system),
      fabric_(fabric),
      hca_(hca),
      al_(system, driver),
      ca_(al_),
      places_(*this, streams::kPlaceBytes, kPlacesOfSlab, true),
      rings_(*this, control::kStreamLargeRing, kRingsOfSlab, false) {
  al_.set_on_event([this, on_gone = std::move(on_gone)](const control::EventOut& event) {
    if (event.type == verbs::EventType::CaRemoved && event.cookie == hca_.node_guid) on_gone();
  });
}

StreamHca::~StreamHca() {
  IB_ASSERT(state_ == State::Closed && users_ == 0);
}

void StreamHca::open(OnOpen then) {
  if (state_ == State::Open) return then(Status::Ok, {});
  if (is_held_ || state_ == State::Closing) {
    return then(Status::DeviceBusy, fmt::format("{} is being removed", hca_.name));
  }
  opening_.waiting.push_back(std::move(then));
  if (state_ == State::Opening) return;
  state_ = State::Opening;
  const auto done = [](io::Irp&, void* context) {
    static_cast<StreamHca*>(context)->on_step(&StreamHca::attached);
  };
  al_.open(fabric_.node_of(hca_).name, "softib streams", opening_.irp.start(done, this));
}

// A step of opening is over: the next one, or the way back.
void StreamHca::on_step(void (StreamHca::*next)()) {
  opening_.status = opening_.irp.status;
  opening_.reason = opening_.irp.reason;
  opening_.status == Status::Ok ? (this->*next)() : fail_opening();
}

void StreamHca::attached() {
  const auto done = [](io::Irp&, void* context) {
    static_cast<StreamHca*>(context)->on_step(&StreamHca::opened);
  };
  ca_.open(fmt::format("\\Device\\ibal\\{:016x}", hca_.node_guid), opening_.irp.start(done, this));
}

void StreamHca::opened() {
  const auto done = [](io::Irp&, void* context) {
    static_cast<StreamHca*>(context)->on_step(&StreamHca::has_pd);
  };
  ca_.send(Code::AllocPd, {}, {}, opening_.irp.start(done, this));
}

void StreamHca::has_pd() {
  pd_ = static_cast<std::uint32_t>(opening_.irp.information);
  opening_.cq_in.cqe = 1;
  const auto done = [](io::Irp&, void* context) {
    static_cast<StreamHca*>(context)->on_step(&StreamHca::has_cq);
  };
  ca_.call(Code::CreateCq, opening_.cq_in, opening_.cq, opening_.irp.start(done, this));
}

// A queue pair that is never used: with both its queues in the completion queue, that one has
// several producers from the start. Else the second stream, which makes it so, would have to wait
// for posters.
void StreamHca::has_cq() {
  send_cq_ = static_cast<std::uint32_t>(opening_.irp.information);
  opening_.qp_in.pd = pd_;
  opening_.qp_in.send_cq = send_cq_;
  opening_.qp_in.recv_cq = send_cq_;
  const auto done = [](io::Irp&, void* context) {
    static_cast<StreamHca*>(context)->on_step(&StreamHca::finish_opening);
  };
  ca_.call(Code::CreateQp, opening_.qp_in, opening_.qp, opening_.irp.start(done, this));
}

void StreamHca::finish_opening() {
  state_ = State::Open;
  for (const OnOpen& then : std::exchange(opening_.waiting, {})) then(Status::Ok, {});
  if (!on_closed_.empty()) close_if_idle();
}

void StreamHca::fail_opening() {
  const auto closed = [](io::Irp&, void* context) {
    static_cast<StreamHca*>(context)->close_client();
  };
  state_ = State::Closing;
  ca_.is_open() ? ca_.close(opening_.irp.start(closed, this)) : close_client();
}

void StreamHca::remove_user() {
  --users_;
  if (!on_closed_.empty()) close_if_idle();
}

void StreamHca::close(std::function<void()> then) {
  if (state_ == State::Closed) return then();
  on_closed_.push_back(std::move(then));
  if (state_ == State::Open) close_if_idle();
}

void StreamHca::close_if_idle() {
  if (under_way_ > 0 || users_ > 0 || state_ != State::Open) return;
  state_ = State::Closing;
  opening_.status = Status::DeviceRemoved;
  opening_.reason = fmt::format("{} was closed", hca_.name);
  const auto closed = [](io::Irp&, void* context) {
    static_cast<StreamHca*>(context)->close_client();
  };
  ca_.close(opening_.irp.start(closed, this));
}

void StreamHca::close_client() {
  places_.forget();
  rings_.forget();
  const auto closed = [](io::Irp&, void* context) { static_cast<StreamHca*>(context)->end(); };
  al_.is_open() ? al_.close(opening_.irp.start(closed, this)) : end();
}

// From the executor: what waits may destroy this.
void StreamHca::end() {
  state_ = State::Closed;
  system_.executor.post([waiting = std::exchange(opening_.waiting, {}), status = opening_.status,
                         reason = opening_.reason, closed = std::exchange(on_closed_, {})] {
    for (const OnOpen& then : waiting) then(status, reason);
    for (const auto& then : closed) then();
  });
}

void StreamHca::send(Code code, std::span<const std::byte> in, std::span<std::byte> out,
                     io::IrpRef irp) {
  ++under_way_;
  ca_.send(code, in, out, std::move(irp), &StreamHca::returned, this);
}

void StreamHca::returned(io::IrpRef irp, void* context) {
  StreamHca& self = *static_cast<StreamHca*>(context);
  self.ca_.count_return(irp);
  --self.under_way_;
  std::move(irp).pass_up();
  // Nothing of a stream is left when it is to be closed, but a slab may have been on its way.
  if (!self.on_closed_.empty()) self.close_if_idle();
}

}  // namespace ib::services
