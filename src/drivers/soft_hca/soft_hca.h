// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SoftHca: the driver `soft_hca`. Owns the device memory of a fabric and the records of every
// object in it, and has one functional device per HCA, which answers the verbs of verbs/control.h.
//
// Thread rule: everything, requests included, runs on the reactor's thread at dispatch level and
// never waits. A request that must wait for posters (hca/layout/quiescence.h) pends and ends from a
// timer.
#pragma once

#include "base/result.h"
#include "drivers/soft_hca/memory/device_memory.h"
#include "fabric/model.h"
#include "io/driver_registry.h"
#include "platform/device_memory_host.h"
#include "platform/executor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ib::drivers {

struct Core;
class CoreStatus;
class DeviceStatus;

struct SoftHcaOptions {
  std::uint64_t max_memory =
      0;  // bytes of rings and device memory in use; 0: what there is room for
  // Gets every line of the trace as it is written (for the daemon's log); may be empty.
  std::function<void(std::string_view line)> on_trace;
  Fault::Decide fault;  // of the verifier; may be empty
};

class SoftHca {
 public:
  // Borrows all three until destroyed. Creates the device memory.
  static Result<std::unique_ptr<SoftHca>> create(platform::Executor& executor,
                                                 fabric::Fabric& fabric,
                                                 platform::DeviceMemoryHost& host,
                                                 SoftHcaOptions options, std::string& reason);
  ~SoftHca();  // no device is left by then

  // Of the driver `soft_hca`, whose devices the PnP manager makes. Files are opened on them with a
  // Create request, by a process that has attached.
  io::DriverRegistry::Entry entry();

  const DeviceStatus& status() const;  // for sysfs
  Core& core() { return *core_; }      // for FabricRoot and tests

 private:
  explicit SoftHca(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;
  std::unique_ptr<CoreStatus> status_;
};

}  // namespace ib::drivers
