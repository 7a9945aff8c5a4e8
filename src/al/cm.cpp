// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file of a Cm, and its requests on their way.
#include "al/cm.h"

#include "al/requests_internal.h"

namespace ib::al {

void Cm::open(io::IrpRef irp) {
  if (file_) return std::move(irp).fail(Status::InvalidState, "this CM is open");
  if (!ca_.is_open()) return std::move(irp).fail(Status::InvalidState, "its CA is not open");
  Al& al = ca_.al_;
  if (al.system_.cm == nullptr) {
    return std::move(irp).fail(Status::NotSupported, "there is no communication manager here");
  }
  open_in_.ca_index = ca_.info_.ca_index;
  file_.emplace(*al.system_.cm, ++al.last_file_, al.client_, &al.zero_->object());
  ++ca_.open_cms_;
  prepare(irp, CmCode{}, bytes_of(open_in_), {});
  file_->open(*irp);
  io::call_driver(way_to(al.system_, *al.system_.cm), std::move(irp), &opened, this);
}

void Cm::opened(io::IrpRef irp, void* context) {
  Cm& self = *static_cast<Cm*>(context);
  self.file_->end(*irp);
  irp->in = {};
  if (irp->status != Status::Ok) {
    self.file_.reset();
    --self.ca_.open_cms_;
  }
  std::move(irp).pass_up();
}

void Cm::close(io::IrpRef irp) {
  if (!file_) return std::move(irp).complete(Status::Ok);
  if (!is_open()) return std::move(irp).fail(Status::InvalidState, state_of("this CM", *file_));
  prepare(irp, CmCode{}, {}, {});
  file_->close(std::move(irp));  // cancels the requests that wait
  send_close();
}

// If nothing is under way any more; else returned() does it.
void Cm::send_close() {
  if (returning_ > 0) return;
  std::optional<io::IrpRef> irp = file_->take_close();
  if (!irp) return;
  System& system = ca_.al_.system_;
  io::call_driver(way_to(system, *system.cm), *std::move(irp), &closed, this);
}

void Cm::closed(io::IrpRef irp, void* context) {
  Cm& self = *static_cast<Cm*>(context);
  self.file_->end(*irp);
  self.file_.reset();
  --self.ca_.open_cms_;
  std::move(irp).complete(Status::Ok);
}

void Cm::send(CmCode code, std::span<const std::byte> in, std::span<std::byte> out,
              io::IrpRef irp) {
  if (!file_ || !file_->begin(*irp)) {
    return std::move(irp).fail(Status::InvalidState, "this CM is not open");
  }
  prepare(irp, code, in, out);
  System& system = ca_.al_.system_;
  io::call_driver(way_to(system, *system.cm), std::move(irp), &returned, this);
}

void Cm::returned(io::IrpRef irp, void* context) {
  Cm& self = *static_cast<Cm*>(context);
  self.file_->end(*irp);
  irp->in = {};
  irp->out = {};
  ++self.returning_;  // Close is the last to be called back, and `self` stays until then
  std::move(irp).pass_up();
  if (--self.returning_ == 0) self.send_close();
}

}  // namespace ib::al
