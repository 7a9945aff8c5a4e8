// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DaemonRdmaCm: the rdma_cm service as sessions use it: the buffers of OpenRdmaCm and RdmaCm in and
// out, and the lines that the service leaves in the trace.
//
// Thread rule: the loop's thread.
#pragma once

#include "services/rdma_cm/addresses/kernel_ports.h"
#include "services/rdma_cm/addresses/sa_routes.h"
#include "services/rdma_cm/connector/cm_connector.h"
#include "services/rdma_cm/service/service.h"
#include "softibd/daemon_devices.h"
#include "verbs/control.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>

namespace ib::softib {

class DaemonRdmaCm {
 public:
  DaemonRdmaCm(const fabric::Fabric& fabric, DaemonDevices& devices);
  DaemonRdmaCm(const DaemonRdmaCm&) = delete;
  DaemonRdmaCm& operator=(const DaemonRdmaCm&) = delete;
  ~DaemonRdmaCm() { cm_.set_ports(nullptr); }

  // Makes the connection of a file readable, by one message with these bytes (RdmaCmAhead).
  using SendNotice = std::function<void(std::span<const std::byte> ahead)>;
  // Returns the number of the file.
  Result<std::uint32_t> open(const verbs::control::OpenRdmaCmIn& in, std::uint32_t pid,
                             SendNotice send_notice, std::string& reason);
  void close(std::uint32_t file) { service_.close(file); }
  // The input of RdmaCm, with its data where they are.
  struct Command {
    verbs::control::RdmaCmHead head;
    std::span<const std::byte> bytes;
    std::span<const std::byte> option;
  };
  // Returns nothing if it is shorter than it says, or longer than RdmaCmIn.
  static std::optional<Command> read_command(std::span<const std::byte> input);
  struct Answered {
    std::size_t bytes = 0;
    std::int32_t result = 0;  // of the RdmaCmOut
  };
  // Of the process `pid`. Writes an RdmaCmOut, and what follows it. `offer`: of a client whose
  // requests come from a mailbox, or nullptr.
  Answered command(const Command& in, std::uint32_t pid, std::span<std::byte> output,
                   services::rdma_cm::EventOffer* offer);
  void end_offer(const services::rdma_cm::EventOffer& offer) { service_.end_offer(offer); }
  // Service::await_event(); `on_event` runs later.
  bool await_event(std::uint32_t file, std::function<void()> on_event);
  void end_wait(std::uint32_t file) { service_.end_wait(file); }
  Instant now() { return cm_.executor().now(); }

  nlohmann::ordered_json list();  // docs/status_json.md

 private:
  const fabric::Fabric& fabric_;
  std::mt19937 random_{std::random_device{}()};
  services::rdma_cm::CmConnector connector_;
  services::rdma_cm::SaRoutes routes_;
  services::rdma_cm::Service service_;
  services::rdma_cm::KernelPorts kernel_ports_;
  services::CmService& cm_;
  const services::CmDevice& drivers_;
};

}  // namespace ib::softib
