// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FabricTopology: the InfiniBand ports of the fabric as the subnet administrator reads them
// (sa/server/topology.h): what a subnet manager wrote, softib's own or another one, is in the
// fabric. A port's subnet manager is at the port whose LID it names; "the" manager is that of the
// first InfiniBand port.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/model.h"
#include "sa/server/topology.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ib::services {

// The facts of a subnet that are its manager's alone.
class ManagerView {
 public:
  virtual ~ManagerView() = default;
  // Of packets from one end port to another.
  virtual std::uint8_t service_level(const fabric::Port& from, const fabric::Port& to) const = 0;
  // The managers of the subnet that `port` is in; none: it is not the view of any there.
  virtual std::vector<sa::SmInfoRecord> managers(const fabric::Port& port) const = 0;
};

class FabricTopology final : public sa::Topology {
 public:
  explicit FabricTopology(const fabric::Fabric& fabric) : fabric_(fabric) {}

  std::uint32_t port_count() const override { return fabric_.graph().port_count(); }
  std::optional<sa::EndPort> port(std::uint32_t index) const override;
  std::optional<sa::EndPort> find_lid(std::uint16_t lid) const override;
  std::optional<sa::EndPort> find_gid(const verbs::Gid& gid) const override;
  std::optional<sa::Route> route(const sa::EndPort& from, std::uint16_t slid, const sa::EndPort& to,
                                 std::uint16_t dlid) const override;
  std::optional<sa::NodePort> node_port(const sa::EndPort& end, std::uint8_t number) const override;
  std::optional<sa::NodePort> peer(const sa::NodePort& port) const override;
  std::optional<mad::SmpData> attribute(const sa::NodePort& port, std::uint16_t attribute,
                                        std::uint32_t modifier) const override;
  std::optional<sa::EndPort> manager_port() const override;
  std::vector<sa::SmInfoRecord> managers() const override;

  // While a request is handled: ports that this one does not reach are not of its subnet. nullptr:
  // all are looked at.
  void look_from(const fabric::Port* port) { seen_from_ = port; }
  // Of an embedded subnet manager. Without one, levels are 0, and the manager that ports name is
  // one of priority 0. Outlives its use here.
  void set_manager_view(const ManagerView* view) { view_ = view; }

  // In service or not. Returns nullptr if the fabric has no InfiniBand port.
  const fabric::Port* manager() const;
  // Of an InfiniBand port. Returns nullptr if no port has that LID.
  const fabric::Port* manager_of(const fabric::Port& port) const {
    return fabric_.graph().find_port(port.sm_lid);
  }

 private:
  bool is_seen(const fabric::Port& port) const {
    return seen_from_ == nullptr || fabric_.graph().reaches(*seen_from_, port);
  }
  const fabric::Port* port_of(const sa::NodePort& port) const;

  const fabric::Fabric& fabric_;
  const fabric::Port* seen_from_ = nullptr;
  const ManagerView* view_ = nullptr;
  mutable std::uint32_t first_ = 0;  // all ports before this one are Ethernet ports
};

// Why a port is not in service: "is down", "sleeps", "is gone"; empty: it is.
const char* out_of_service(const fabric::Fabric& fabric, const fabric::Port& port);
// "port 1 of softib0 of node0".
std::string port_text(const fabric::Fabric& fabric, const fabric::Port& port);

}  // namespace ib::services
