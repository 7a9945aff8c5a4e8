// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/al.h"

#include "al/poster.h"
#include "al/requests_internal.h"
#include "al/verbs.h"
#include "base/buffers.h"
#include "hca/layout/doorbell.h"
#include "hca/layout/op_scope.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::al {

using control::Code;

Al::Al(System& system, io::DriverObject& driver) : system_(system), driver_(driver) {}

Al::~Al() {
  IB_ASSERT(!zero_ && open_cas_ == 0);
}

void Al::open(std::string_view node, std::string_view name, io::IrpRef irp) {
  if (zero_) {
    return std::move(irp).fail(Status::InvalidState, "this client of the access layer is open");
  }
  driver_.references.take(io::DriverUse::Client);
  client_ = {++system_.last_client, system_.host.pid(), 0, {}};
  zero_.emplace(system_.root, 0u, client_, nullptr);
  attach_in_.flags = control::attach_flag::kCaEvents | control::attach_flag::kAttention;
  put_text(attach_in_.node, node);
  put_text(attach_in_.program, name);
  prepare(irp, Code::Attach, {}, {});
  zero_->open(*irp);
  io::call_driver(way_to(system_, system_.root), std::move(irp), &zero_created, this);
}

void Al::zero_created(io::IrpRef irp, void* context) {
  Al& self = *static_cast<Al*>(context);
  self.zero_->end(*irp);
  if (!self.zero_->begin(*irp)) {
    self.zero_.reset();
    self.driver_.references.release(io::DriverUse::Client);
    return std::move(irp).pass_up();
  }
  prepare(irp, Code::Attach, bytes_of(self.attach_in_), room_of(self.attach_out_));
  io::call_driver(way_to(self.system_, self.system_.root), std::move(irp), &attached, context);
}

void Al::attached(io::IrpRef irp, void* context) {
  Al& self = *static_cast<Al*>(context);
  self.zero_->end(*irp);
  if (irp->status == Status::Ok) {
    irp->out_handles[0].reset();  // device memory is mapped here already
    self.poster_ = std::make_unique<Poster>(self.system_, self.zero_->object());
    self.plane_ = std::make_unique<hca::MemoryPlane>(self.system_.arena, *self.poster_,
                                                     self.attach_out_.slot, hca::Path::Auto);
    if (!self.plane_->valid()) {
      self.plane_.reset();
      self.poster_.reset();
      irp->status = Status::InsufficientResources;
      irp->reason = "no memory for the tables of a client";
    }
  }
  irp->in = {};
  irp->out = {};
  if (irp->status != Status::Ok) {
    self.refusal_ = irp->status;
    self.refusal_reason_ = irp->reason;
    prepare(irp, Code::Close, {}, {});
    self.zero_->close(std::move(irp));
    return self.send_close();
  }
  self.plane_->introduce({self.system_.host.pid(), self.system_.host.nameplate()});
  self.poster_->set_plane(self.plane_.get());
  self.wait_for_event();
  self.listen();
  std::move(irp).pass_up();
}

void Al::attach_undone(io::IrpRef irp, void* context) {
  Al& self = *static_cast<Al*>(context);
  self.zero_->end(*irp);
  self.zero_.reset();
  io::DriverReferences& references = self.driver_.references;
  std::move(irp).fail(self.refusal_, std::move(self.refusal_reason_));  // `self` may be gone now
  references.release(io::DriverUse::Client);
}

void Al::close(io::IrpRef irp) {
  if (!zero_) return std::move(irp).complete(Status::Ok);
  if (!is_open()) {
    const char* what = "this client of the access layer";
    return std::move(irp).fail(Status::InvalidState, state_of(what, *zero_));
  }
  if (open_cas_ > 0) {
    return std::move(irp).fail(Status::DeviceBusy, fmt::format("{} HCAs are open", open_cas_));
  }
  timer_.reset();
  event_timer_.reset();
  prepare(irp, Code::Close, {}, {});
  zero_->close(std::move(irp));  // cancels the wait for an event
  send_close();
}

// If nothing is under way any more; else event_came() does it.
void Al::send_close() {
  std::optional<io::IrpRef> irp = zero_->take_close();
  if (!irp) return;
  io::call_driver(way_to(system_, system_.root), *std::move(irp),
                  plane_ != nullptr ? &zero_closed : &attach_undone, this);
}

void Al::zero_closed(io::IrpRef irp, void* context) {
  Al& self = *static_cast<Al*>(context);
  self.zero_->end(*irp);
  self.zero_.reset();
  self.plane_.reset();
  self.poster_.reset();
  io::DriverReferences& references = self.driver_.references;
  std::move(irp).complete(Status::Ok);  // `self` may be gone now
  references.release(io::DriverUse::Client);
}

void Al::wait_for_event() {
  if (!zero_->begin(event_irp_)) return;
  event_irp_.code = static_cast<std::uint32_t>(Code::WaitEvent);
  event_irp_.in = {};
  event_irp_.out = room_of(event_);
  io::call_driver(way_to(system_, system_.root), event_irp_.start(&event_came, this));
}

// An event may be raised by a work request that this very client is executing: it is taken when
// that is over.
void Al::event_came(io::Irp& irp, void* context) {
  Al& self = *static_cast<Al*>(context);
  self.zero_->end(irp);
  if (!self.zero_->is_open()) return self.send_close();
  if (irp.status != Status::Ok) return;
  self.event_timer_ = self.system_.executor.at(self.system_.executor.now(), [&self] {
    const control::EventOut event = self.event_;
    self.wait_for_event();
    self.take_event(event);
  });
}

void Al::take_event(const control::EventOut& event) {
  if (event.object == control::EventObject::Cq && event.type == verbs::EventType::Completion) {
    const auto cq = cqs_.find(event.index);
    if (cq != cqs_.end() && cq->second->on_completion) cq->second->on_completion(*cq->second);
    return;
  }
  const bool lost = event.type == verbs::EventType::EventsLost;
  if (event.type == verbs::EventType::Attention || lost) listen();
  run_waiting();  // a queue pair may have been broken
  if (event.type == verbs::EventType::Attention) return;
  if (on_event_) on_event_(event);
}

// Programs that cannot reach softibd's memory by process_vm leave requests for it. From now on the
// next ring of the doorbell raises an event; requests from before are served at once.
void Al::listen() {
  system_.arena.slot(attach_out_.slot)->waiting.store(hca::kListens, std::memory_order_seq_cst);
  hca::OpScope scope(*plane_, hca::executing::kOwn);
  plane_->serve_bounces();
}

// Requests that wait, and queue pairs to be flushed.
void Al::run_waiting() {
  const Instant start = system_.executor.now();
  for (const auto& [number, qp] : qps_) qp->run();
  (void)poster_->retry_notifications();
  // A process is stopped with a lock of device memory: other clients must go on meanwhile.
  const Instant end = system_.executor.now();
  if (end - start > kLong) not_before_ = end + kRest;
  arm_timer();
}

void Al::arm_timer() {
  std::optional<Instant> due;
  const auto at = [&due](Instant when) {
    if (!due || when < *due) due = when;
  };
  const Instant now = std::max(system_.executor.now(), not_before_);
  if (poster_->has_unsent()) at(now + kRetry);
  for (const auto& [number, qp] : qps_) {
    if (qp->own.is_waiting()) at(std::max(qp->own.sends()->wake_at(), now));
    if (qp->own.is_flushing()) at(now + kPosterRetry);
  }
  timer_.reset();
  if (due) {
    timer_ = system_.executor.at(*due, [this] { run_waiting(); });
  }
}

void Ca::open(std::string_view path, io::IrpRef irp) {
  if (file_) return std::move(irp).fail(Status::InvalidState, "this CA is open");
  if (!al_.is_open()) {
    return std::move(irp).fail(Status::InvalidState, "the client of the access layer is not open");
  }
  std::string reason;
  const auto device = al_.system_.resolve(al_.client_.node, path, reason);
  if (!device) return std::move(irp).fail(device.error(), std::move(reason));
  file_.emplace(**device, ++al_.last_file_, al_.client_, &al_.zero_->object());
  ++al_.open_cas_;
  prepare(irp, Code::Open, {}, room_of(info_));
  file_->open(*irp);
  io::call_driver(way_to(al_.system_, **device), std::move(irp), &opened, this);
}

void Ca::opened(io::IrpRef irp, void* context) {
  Ca& self = *static_cast<Ca*>(context);
  irp->out = {};
  self.file_->end(*irp);
  if (!self.is_open()) {
    self.file_.reset();
    --self.al_.open_cas_;
  }
  std::move(irp).pass_up();
}

void Ca::close(io::IrpRef irp) {
  if (!file_) return std::move(irp).complete(Status::Ok);
  if (!is_open()) return std::move(irp).fail(Status::InvalidState, state_of("this CA", *file_));
  if (open_services_ > 0) {
    return std::move(irp).fail(Status::DeviceBusy,
                               "its communication manager or subnet administration is open");
  }
  if (const std::size_t under_way = file_->under_way(); under_way > 0) {
    return std::move(irp).fail(Status::DeviceBusy,
                               fmt::format("{} requests are under way", under_way));
  }
  prepare(irp, Code::Close, {}, {});
  file_->close(std::move(irp));
  std::optional<io::IrpRef> close = file_->take_close();  // now, as nothing is under way
  io::call_driver(way_to(al_.system_, file_->object().device()), *std::move(close), &closed, this);
}

void Ca::closed(io::IrpRef irp, void* context) {
  Ca& self = *static_cast<Ca*>(context);
  self.file_->end(*irp);
  self.file_.reset();
  --self.al_.open_cas_;
  const auto of_self = [&self](const auto& entry) {
    if (entry.second->ca != &self) return false;
    entry.second->end();
    return true;
  };
  std::erase_if(self.al_.qps_, of_self);
  std::erase_if(self.al_.srqs_, of_self);
  std::erase_if(self.al_.cqs_, of_self);
  std::move(irp).complete(Status::Ok);
}

void Ca::send(Code code, std::span<const std::byte> in, std::span<std::byte> out, io::IrpRef irp,
              io::Irp::Completion completion, void* context) {
  if (!file_ || !file_->begin(*irp)) {
    return std::move(irp).fail(Status::InvalidState, "this CA is not open");
  }
  prepare(irp, code, in, out);
  // Its answer comes in the call, also when the verifier is on: that is promised.
  io::DeviceObject& to = file_->object().device();
  io::DeviceObject& device = code == Code::LocalMad ? to : way_to(al_.system_, to);
  io::call_driver(device, std::move(irp), completion != nullptr ? completion : &returned,
                  completion != nullptr ? context : this);
}

void Ca::returned(io::IrpRef irp, void* context) {
  static_cast<Ca*>(context)->count_return(irp);
  std::move(irp).pass_up();
}

void Ca::count_return(io::IrpRef& irp) {
  file_->end(*irp);
  irp->in = {};
  irp->out = {};
}

}  // namespace ib::al
