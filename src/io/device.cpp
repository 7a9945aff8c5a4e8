// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/device.h"

#include <fmt/format.h>

namespace ib::io {

DeviceObject::~DeviceObject() {
  IB_ASSERT(upper_ == nullptr && open_files_.empty() && requests_.load() == 0);
  if (lower_ != nullptr) lower_->upper_ = nullptr;
  driver_.references.release(DriverUse::Device);
}

Status DeviceObject::attach(DeviceObject& lower) {
  IB_ASSERT(lower_ == nullptr && upper_ == nullptr && &lower != this);
  DeviceObject& below = lower.top();
  if (below.stack_depth_ >= kMaxStackDepth) return Status::LimitExceeded;
  lower_ = &below;
  below.upper_ = this;
  stack_depth_ = below.stack_depth_ + 1;
  return Status::Ok;
}

DeviceObject& DeviceObject::top() {
  DeviceObject* device = this;
  while (device->upper_ != nullptr) device = device->upper_;
  return *device;
}

FileObject::FileObject(DeviceObject& device, std::uint32_t number, Client& client,
                       FileObject* process)
    : device_(device.top()), number_(number), client_(client), process_(process) {
  device_.open_files_.push_back(this);
}

FileObject::~FileObject() {
  std::erase(device_.open_files_, this);
}

// A stack does not change while files are open on it, so a device's depth names its slot.
TypedPointer& FileObject::slot(const DeviceObject& device) {
  return contexts_[device.stack_depth() - 1];
}

const TypedPointer& FileObject::slot(const DeviceObject& device) const {
  return contexts_[device.stack_depth() - 1];
}

void call_driver(DeviceObject& device, IrpRef irp, Irp::Completion completion, void* context) {
  DriverObject& driver = device.driver();
  // For as long as the routine runs: the request may have ended, and the device be gone, before it
  // returns.
  driver.references.take(DriverUse::Call);
  irp->push(device, completion, context);
  const DriverObject::Dispatch dispatch = driver.on(irp->major);
  (dispatch != nullptr ? dispatch : pass_down)(device, std::move(irp));
  driver.references.release(DriverUse::Call);
}

void pass_down(DeviceObject& device, IrpRef irp) {
  if (DeviceObject* lower = device.lower()) return call_driver(*lower, std::move(irp));
  if (irp->major != Major::DeviceControl) return std::move(irp).complete(Status::Ok);
  const std::string text = fmt::format("the driver {} of device {} does not know request {}",
                                       device.driver().name, device.name(), irp->code);
  std::move(irp).fail(Status::NotSupported, text);
}

}  // namespace ib::io
