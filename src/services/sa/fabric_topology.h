// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FabricTopology: the InfiniBand ports of the fabric as the subnet administrator reads them
// (sa/server/topology.h). A port's subnet manager is at the port whose LID it names; "the" manager
// is that of the first InfiniBand port.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/model.h"
#include "sa/server/topology.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ib::services {

class FabricTopology final : public sa::Topology {
 public:
  explicit FabricTopology(const fabric::Fabric& fabric) : fabric_(fabric) {}

  std::uint32_t port_count() const override { return fabric_.graph().port_count(); }
  std::optional<sa::EndPort> port(std::uint32_t index) const override;
  std::optional<sa::EndPort> find_lid(std::uint16_t lid) const override;
  std::optional<sa::EndPort> find_gid(const verbs::Gid& gid) const override;
  std::optional<sa::Route> route(const sa::EndPort& from, const sa::EndPort& to) const override;
  sa::NodeRecord node_record(const sa::EndPort& port) const override;
  sa::PortInfoRecord port_info_record(const sa::EndPort& port) const override;
  std::optional<sa::EndPort> manager_port() const override;

  // In service or not. Returns nullptr if the fabric has no InfiniBand port.
  const fabric::Port* manager() const;
  // Of an InfiniBand port. Returns nullptr if no port has that LID.
  const fabric::Port* manager_of(const fabric::Port& port) const {
    return fabric_.graph().find_port(port.sm_lid);
  }

 private:
  const fabric::Fabric& fabric_;
  mutable std::uint32_t first_ = 0;  // all ports before this one are Ethernet ports
};

// Why a port is not in service: "is down", "sleeps", "is gone"; empty: it is.
const char* out_of_service(const fabric::Fabric& fabric, const fabric::Port& port);
// "port 1 of softib0 of node0".
std::string port_text(const fabric::Fabric& fabric, const fabric::Port& port);

}  // namespace ib::services
