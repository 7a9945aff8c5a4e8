// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UmadDevice: the device whose files are the open /dev/infiniband/umadN and issmN of programs
// (verbs/control_umad.h). Create has OpenUmadIn as its input and the program's end, a UmadReader,
// as its parameters; the codes of DeviceControl are those of UmadCode.
//
// An open issmN sets IsSM in the capabilities of its port. There is one at a time; others wait, or
// are refused.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/model.h"
#include "io/device.h"
#include "io/irp_queue.h"
#include "services/cm/node_openings.h"
#include "services/umad/umad_service.h"
#include "verbs/control_umad.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace ib::services {

class UmadDevice {
 public:
  // `open_others`: makes the services of softibd's own reachable that programs have MADs for, and
  // completes the request, in whatever way.
  using OpenOthers = std::function<void(io::IrpRef irp)>;
  UmadDevice(UmadService& service, Gsi& gsi, fabric::Fabric& fabric, OpenOthers open_others);
  UmadDevice(const UmadDevice&) = delete;
  UmadDevice& operator=(const UmadDevice&) = delete;
  ~UmadDevice() = default;  // no file is open

  io::DeviceObject& device() { return device_; }
  // Sets or clears IsSM of a port.
  using SetIsSm = std::function<void(const fabric::Hca& hca, fabric::Port& port, bool is_sm)>;
  void set_is_sm_by(SetIsSm set) { set_is_sm_by_ = std::move(set); }
  // The reader of this file of the device has room again.
  static void deliver(io::FileObject& file);

 private:
  struct Opened;
  struct Waiting;

  static void create(io::DeviceObject& device, io::IrpRef irp);
  static void close(io::DeviceObject& device, io::IrpRef irp);
  static void control(io::DeviceObject& device, io::IrpRef irp);

  void open_umad(const fabric::Node& node, std::uint32_t port, std::string program, io::IrpRef irp);
  void begin_umad(std::uint32_t port, std::string program, io::IrpRef irp);
  void open_issm(std::uint32_t port, bool waits, io::IrpRef irp);
  void begin_issm(std::uint32_t port, io::IrpRef irp);
  void end_issm(std::uint32_t port);
  void set_is_sm(std::uint32_t port, bool on);
  void finish(std::unique_ptr<Opened> opened, io::IrpRef irp);

  UmadService& service_;
  fabric::Fabric& fabric_;
  NodeOpenings openings_;
  OpenOthers open_others_;
  std::uint64_t opened_ = 0;
  struct Issm {
    Opened* opened = nullptr;  // null: it is not open
    io::IrpQueue waiting;
  };
  std::map<std::uint32_t, Issm> issms_;  // by port
  io::DriverObject driver_{"user MADs"};
  io::DeviceObject device_{driver_, "user MADs", io::DeviceKind::Functional};
  SetIsSm set_is_sm_by_;
};

}  // namespace ib::services
