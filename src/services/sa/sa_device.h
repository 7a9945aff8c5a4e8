// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaDevice: the device of the subnet administrator's client, whose files are those of kernel
// clients (al/sa.h) and of programs (verbs/services/sa_requests.h). A file is for one HCA of the
// client's node.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/model.h"
#include "io/device.h"
#include "platform/executor.h"
#include "services/gsi/gsi.h"
#include "services/sa/sa_client.h"

#include <memory>

namespace ib::services {

class SaDevice {
 public:
  SaDevice(SaClient& client, Gsi& gsi, const fabric::Fabric& fabric, platform::Executor& executor);
  SaDevice(const SaDevice&) = delete;
  SaDevice& operator=(const SaDevice&) = delete;
  ~SaDevice();  // no file is open

  io::DeviceObject& device() { return device_; }

 private:
  static void create(io::DeviceObject& device, io::IrpRef irp);
  static void close(io::DeviceObject& device, io::IrpRef irp);
  static void control(io::DeviceObject& device, io::IrpRef irp);
  void on_port(const GsiPortEvent& event);
  void end_those_of(const fabric::Hca& hca);

  SaClient& client_;
  Gsi& gsi_;
  const fabric::Fabric& fabric_;
  platform::Executor& executor_;
  AgentId agent_ = 0;  // hears of ports
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  io::DriverObject driver_{"subnet administrator's client"};
  // Requests that wait are sent to this one, below: so the device sees how they end.
  io::DeviceObject waiting_{driver_, "waiting requests of the subnet administrator's client",
                            io::DeviceKind::Physical};
  io::DeviceObject device_{driver_, "subnet administrator's client", io::DeviceKind::Functional};
};

}  // namespace ib::services
