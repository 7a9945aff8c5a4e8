// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of the stack that the access layer needs. There is one in softibd; a driver finds it in
// its DriverObject (services) and does not look inside.
#pragma once

#include "base/export.h"
#include "base/result.h"
#include "hca/layout/arena.h"
#include "io/device.h"
#include "platform/client_host.h"
#include "platform/executor.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ib::al {

struct IB_DRIVER_API System {
  using Resolve = std::function<Result<io::DeviceObject*>(
      std::string_view node, std::string_view path, std::string& reason)>;

  platform::Executor& executor;
  platform::ClientHost& host;  // memory of programs, waking them
  io::DeviceObject& root;      // the device of file 0
  Resolve resolve;             // a name that a client on a virtual host opens
  hca::Arena arena;
  io::DeviceObject* verifier = nullptr;    // if there is one: control requests pass it
  std::uint64_t last_client = 1ull << 63;  // programs count from 1
  io::DeviceObject* cm = nullptr;          // the communication manager's, for al/cm.h
  io::DeviceObject* sa = nullptr;          // the subnet administrator's client's, for al/sa.h
};

}  // namespace ib::al
