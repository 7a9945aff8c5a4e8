// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file of a client on the device of a service, and its requests on their way.
#include "al/service_file.h"

#include "al/requests_internal.h"

#include <string>

namespace ib::al {

void ServiceFile::open(io::IrpRef irp) {
  if (file_) {
    return std::move(irp).fail(Status::InvalidState, std::string("this ") + what_ + " is open");
  }
  if (!ca_.is_open()) return std::move(irp).fail(Status::InvalidState, "its CA is not open");
  Al& al = ca_.al_;
  io::DeviceObject* const device = al.system_.*device_;
  if (device == nullptr) {
    return std::move(irp).fail(Status::NotSupported, std::string("there is no ") + what_ + " here");
  }
  open_in_.ca_index = ca_.info_.ca_index;
  put_text(open_in_.driver, al.driver_.name);
  file_.emplace(*device, ++al.last_file_, al.client_, &al.zero_->object());
  ++ca_.open_services_;
  prepare(irp, std::uint32_t{0}, bytes_of(open_in_), {});
  file_->open(*irp);
  io::call_driver(way_to(al.system_, *device), std::move(irp), &opened, this);
}

void ServiceFile::opened(io::IrpRef irp, void* context) {
  ServiceFile& self = *static_cast<ServiceFile*>(context);
  self.file_->end(*irp);
  irp->in = {};
  if (irp->status != Status::Ok) {
    self.file_.reset();
    --self.ca_.open_services_;
  }
  std::move(irp).pass_up();
}

void ServiceFile::close(io::IrpRef irp) {
  if (!file_) return std::move(irp).complete(Status::Ok);
  if (!is_open()) {
    const std::string who = std::string("this ") + what_;
    return std::move(irp).fail(Status::InvalidState, state_of(who.c_str(), *file_));
  }
  prepare(irp, std::uint32_t{0}, {}, {});
  file_->close(std::move(irp));  // cancels the requests that wait
  send_close();
}

// If nothing is under way any more; else returned() does it.
void ServiceFile::send_close() {
  if (returning_ > 0) return;
  std::optional<io::IrpRef> irp = file_->take_close();
  if (!irp) return;
  System& system = ca_.al_.system_;
  io::call_driver(way_to(system, *(system.*device_)), *std::move(irp), &closed, this);
}

void ServiceFile::closed(io::IrpRef irp, void* context) {
  ServiceFile& self = *static_cast<ServiceFile*>(context);
  self.file_->end(*irp);
  self.file_.reset();
  --self.ca_.open_services_;
  std::move(irp).complete(Status::Ok);
}

void ServiceFile::send_code(std::uint32_t code, std::span<const std::byte> in,
                            std::span<std::byte> out, io::IrpRef irp) {
  if (!file_ || !file_->begin(*irp)) {
    return std::move(irp).fail(Status::InvalidState, std::string("this ") + what_ + " is not open");
  }
  prepare(irp, code, in, out);
  System& system = ca_.al_.system_;
  io::call_driver(way_to(system, *(system.*device_)), std::move(irp), &returned, this);
}

void ServiceFile::returned(io::IrpRef irp, void* context) {
  ServiceFile& self = *static_cast<ServiceFile*>(context);
  self.file_->end(*irp);
  irp->in = {};
  irp->out = {};
  ++self.returning_;  // Close is the last to be called back, and `self` stays until then
  std::move(irp).pass_up();
  if (--self.returning_ == 0) self.send_close();
}

}  // namespace ib::al
