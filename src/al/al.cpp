// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/al.h"

#include "al/requests_internal.h"
#include "base/buffers.h"

#include <fmt/format.h>

namespace ib::al {

using control::Code;

Al::Al(System& system, io::DriverObject& driver)
    : system_(system), driver_(driver), objects_(system) {}

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
    self.data_ =
        std::make_unique<DataPlane>(self.system_, self.zero_->object(), self.attach_out_.slot);
    if (!self.data_->is_valid()) {
      self.data_.reset();
      irp->status = Status::InsufficientResources;
      irp->reason = "no memory for the tables of a client";
    }
  }
  irp->in = {};
  irp->out = {};
  if (irp->status != Status::Ok) {
    self.refusal_ = {irp->status, irp->reason};
    prepare(irp, Code::Close, {}, {});
    self.zero_->close(std::move(irp));
    return self.send_close();
  }
  self.data_->start();
  self.objects_.start(self.data_->poster());
  self.events_.start();
  self.data_->listen();
  std::move(irp).pass_up();
}

void Al::attach_undone(io::IrpRef irp, void* context) {
  Al& self = *static_cast<Al*>(context);
  self.zero_->end(*irp);
  self.zero_.reset();
  io::DriverReferences& references = self.driver_.references;
  std::move(self.refusal_).end(std::move(irp));  // `self` may be gone now
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
  objects_.stop();
  events_.stop();
  prepare(irp, Code::Close, {}, {});
  zero_->close(std::move(irp));  // cancels the wait for an event
  send_close();
}

// If nothing is under way any more; else EventWait does it.
void Al::send_close() {
  std::optional<io::IrpRef> irp = zero_->take_close();
  if (!irp) return;
  io::call_driver(way_to(system_, system_.root), *std::move(irp),
                  data_ != nullptr ? &zero_closed : &attach_undone, this);
}

void Al::zero_closed(io::IrpRef irp, void* context) {
  Al& self = *static_cast<Al*>(context);
  self.zero_->end(*irp);
  self.zero_.reset();
  self.data_.reset();
  io::DriverReferences& references = self.driver_.references;
  std::move(irp).complete(Status::Ok);  // `self` may be gone now
  references.release(io::DriverUse::Client);
}

bool Al::take_event(const control::EventOut& event) {
  if (event.object == control::EventObject::Cq && event.type == verbs::EventType::Completion) {
    objects_.complete(event.index);  // `this` may be gone now
    return false;
  }
  const bool lost = event.type == verbs::EventType::EventsLost;
  if (event.type == verbs::EventType::Attention || lost) data_->listen();
  objects_.run_waiting();  // a queue pair may have been broken
  return event.type != verbs::EventType::Attention;
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
  self.al_.objects_.end_all_of(self);
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
