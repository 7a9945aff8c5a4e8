// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A driver module as a third party would write it: a function driver for a child of a port. It
// follows system power and reads the results of PnP requests in a completion routine, which is code
// that must not be unmapped too early.
#include "io/device_node.h"
#include "io/irp_queue.h"
#include "io/power_manager.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace {

using namespace ib;

struct TestDevice final : io::DeviceObject {
  TestDevice(io::DriverObject& driver, const io::DeviceNode& node)
      : DeviceObject(driver, "test device of " + node.path(), io::DeviceKind::Functional) {}
  int answers = 0;
  io::IrpQueue kept;
};

// Power requests of the silent module stay here, unanswered.
void keep(io::DeviceObject& device, io::IrpRef irp) {
  static_cast<TestDevice&>(device).kept.park(std::move(irp));
}

void crash(io::DeviceObject&, io::IrpRef) {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

void drop(io::DeviceObject&, io::IrpRef irp) {
  const io::IrpRef dropped(std::move(irp));
}

constexpr io::DriverObject::Dispatch power_routine() {
  if (DROPPING != 0) return &drop;
  if (CRASHING != 0) return &crash;
  return SILENT != 0 ? &keep : &io::follow_system_power;
}

void on_answered(io::IrpRef irp, void* context) {
  ++static_cast<TestDevice*>(context)->answers;
  std::move(irp).pass_up();
}

void on_pnp(io::DeviceObject& device, io::IrpRef irp) {
  call_driver(*device.lower(), std::move(irp), &on_answered, &device);
}

Result<std::unique_ptr<io::DeviceObject>> add_device(io::DriverObject& driver, io::DeviceNode& node,
                                                     std::string&) {
  if (STARTING != 0) {
    std::size_t (*volatile length)(const char*) = &std::strlen;
    const char* volatile nowhere = nullptr;
    if (length(nowhere) != 0) return Status::IoError;
  }
  return std::unique_ptr<io::DeviceObject>(std::make_unique<TestDevice>(driver, node));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ib::Status softib_driver_entry_1(
    ib::io::DriverObject& driver, std::string&) {
  if (DROPPING != 0) std::printf("the dropping driver is here\n");
  driver.add_device = &add_device;
  driver.on(io::Major::Pnp) = &on_pnp;
  driver.on(io::Major::Power) = power_routine();
  if (LEAKY != 0) driver.references.take(io::DriverUse::Client);  // never released
  return ib::Status::Ok;
}
