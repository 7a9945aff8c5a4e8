// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RdmaCmDevice: the device of librdmacm's /dev/infiniband/rdma_cm (verbs/control.h). A file of it
// is one connection of a program: Create has the program's end, an RdmaCmClient, as its parameters.
// OpenRdmaCm makes an open /dev/infiniband/rdma_cm of it, and RdmaCm is a command for that one or
// for one of another connection: of a program's connections, one brings the commands of all.
//
// A GET_EVENT that finds no event may wait for a moment: the program polls for its answer as long.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "base/time.h"
#include "io/device.h"
#include "platform/executor.h"
#include "services/cm/cm_device.h"
#include "services/rdma_cm/addresses/kernel_ports.h"
#include "services/rdma_cm/service/service.h"
#include "verbs/control.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ib::services::rdma_cm {

// A program's end of a file.
class RdmaCmClient {
 public:
  virtual ~RdmaCmClient() = default;
  // Makes it readable, by one message with these bytes (RdmaCmAhead).
  virtual void send_notice(std::span<const std::byte> ahead) = 0;
  // For events before the next command; nullptr if its requests do not come from a mailbox.
  virtual EventOffer* offer() = 0;
  // Whether look() is called again and again, so that a request may wait.
  virtual bool is_watched() const = 0;
  virtual void set_waiting(bool on) = 0;
};

class RdmaCmDevice {
 public:
  // Borrows all of them.
  struct Parts {
    const fabric::Fabric& fabric;
    platform::Executor& executor;
    Connector& connector;
    Routes& routes;
    CmService& cm;  // its kernel clients listen on ports of the programs' table
    const CmDevice& drivers;
  };
  RdmaCmDevice(const Parts& parts, ServiceOptions options);
  RdmaCmDevice(const RdmaCmDevice&) = delete;
  RdmaCmDevice& operator=(const RdmaCmDevice&) = delete;
  ~RdmaCmDevice();  // no file is open

  io::DeviceObject& device() { return device_; }
  // While a request of this file waits. `last`: there will be no other look.
  static void look(io::FileObject& file, bool last);

  // The listeners and connections of programs and of kernel clients, with their peers.
  std::vector<Listing> list();

  // The input of RdmaCm, with its data where they are.
  struct Command {
    verbs::control::RdmaCmHead head;
    std::span<const std::byte> bytes;
    std::span<const std::byte> option;
  };
  // Returns nothing if it is shorter than it says, or longer than RdmaCmIn.
  static std::optional<Command> read_command(std::span<const std::byte> input);

 private:
  struct Opened;
  struct Waiting;

  static void create(io::DeviceObject& device, io::IrpRef irp);
  static void close(io::DeviceObject& device, io::IrpRef irp);
  static void control(io::DeviceObject& device, io::IrpRef irp);

  void open(Opened& opened, io::IrpRef irp);
  void command(Opened& opened, io::IrpRef irp);
  std::int32_t carry_out(const Command& in, io::Irp& irp, EventOffer* offer);
  bool await_event(Opened& opened, std::uint32_t file);
  void end_wait(Opened& opened);

  const fabric::Fabric& fabric_;
  platform::Executor& executor_;
  Service service_;
  KernelPorts kernel_ports_;
  CmService& cm_;
  const CmDevice& drivers_;
  io::DriverObject driver_{"rdma_cm"};
  io::DeviceObject device_{driver_, "rdma_cm", io::DeviceKind::Functional};
};

}  // namespace ib::services::rdma_cm
