// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmDevice: the device of the communication manager, whose files are those of kernel clients
// (al/cm.h) and of programs (verbs/services/cm_requests.h). A file is for one HCA of the client's
// node.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "io/device.h"
#include "services/cm/cm_objects.h"
#include "services/cm/cm_service.h"
#include "services/service_user.h"

namespace ib::services {

class CmDevice {
 public:
  explicit CmDevice(CmService& service);
  CmDevice(const CmDevice&) = delete;
  CmDevice& operator=(const CmDevice&) = delete;
  ~CmDevice() = default;  // no file is open

  io::DeviceObject& device() { return device_; }

  // Calls it for every listener, connection and exchange of all files.
  void for_each_object(const CmObjectVisitor& visit) const;

 private:
  static void create(io::DeviceObject& device, io::IrpRef irp);
  static void close(io::DeviceObject& device, io::IrpRef irp);
  static void control(io::DeviceObject& device, io::IrpRef irp);
  void open(const fabric::Hca& hca, ServiceUser user, io::IrpRef irp);

  CmService& service_;
  io::DriverObject driver_{"communication manager"};
  // Requests that wait are sent to this one, below: so the device sees how they end.
  io::DeviceObject waiting_{driver_, "waiting requests of the communication manager",
                            io::DeviceKind::Physical};
  io::DeviceObject device_{driver_, "communication manager", io::DeviceKind::Functional};
};

}  // namespace ib::services
