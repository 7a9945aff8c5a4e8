// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/fabric_topology.h"

#include "fabric/management/element_view.h"
#include "mad/attributes.h"
#include "mad/smp.h"
#include "sa/records/selector.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <cstring>

namespace ib::services {
namespace {

constexpr auto kMtu = static_cast<std::uint8_t>(verbs::Mtu::B4096);

// An attribute as the agents of the port tell it.
template <class Attribute>
Attribute attribute_of(const fabric::Graph& graph, const fabric::Port& port,
                       std::uint16_t attribute) {
  const fabric::ElementView view(graph, graph.element_of(port));
  const auto number = static_cast<std::uint8_t>(port.number);
  const mad::Attribute read = mad::get_attribute(view, number, attribute, 0);
  IB_ASSERT(read.status == mad::mad_status::kOk);
  Attribute result;
  std::memcpy(&result, read.data.data(), sizeof result);
  return result;
}

}  // namespace

const char* out_of_service(const fabric::Fabric& fabric, const fabric::Port& port) {
  const fabric::Hca* hca = fabric.hca_of(port);
  if (hca != nullptr && !hca->present) return "is gone";
  if (hca != nullptr && hca->asleep) return "sleeps";
  return port.state == verbs::PortState::Active ? "" : "is down";
}

std::string port_text(const fabric::Fabric& fabric, const fabric::Port& port) {
  const fabric::Hca* hca = fabric.hca_of(port);
  if (hca == nullptr) {
    return fmt::format("port {} of switch {}", port.number,
                       fabric.graph().element_of(port).description);
  }
  return fmt::format("port {} of {} of {}", port.number, hca->name, fabric.node_of(*hca).name);
}

std::optional<sa::EndPort> FabricTopology::port(std::uint32_t index) const {
  const fabric::Port* port = fabric_.graph().port(index);
  if (port == nullptr || port->is_ethernet() || port->lid == 0 || port->gids.empty() ||
      *out_of_service(fabric_, *port) != '\0') {
    return std::nullopt;
  }
  return sa::EndPort{index, std::span(&port->gids[0].gid, 1),     port->lid, 0, port->pkeys,
                     kMtu,  sa::rate_of(port->width, port->speed)};
}

std::optional<sa::EndPort> FabricTopology::find_lid(std::uint16_t lid) const {
  const fabric::Port* port = lid == 0 ? nullptr : fabric_.graph().find_port(lid);
  if (port == nullptr) return std::nullopt;
  return this->port(fabric_.graph().index_of(*port));
}

std::optional<sa::EndPort> FabricTopology::find_gid(const verbs::Gid& gid) const {
  const fabric::Port* port = verbs::is_zero(gid) ? nullptr : fabric_.graph().find_port(gid);
  if (port == nullptr || port->gid() != gid) return std::nullopt;
  return this->port(fabric_.graph().index_of(*port));
}

std::optional<sa::Route> FabricTopology::route(const sa::EndPort& from,
                                               const sa::EndPort& to) const {
  const fabric::Graph& graph = fabric_.graph();
  if (!graph.reaches(*graph.port(from.index), *graph.port(to.index))) return std::nullopt;
  return sa::Route{0, std::min(from.mtu, to.mtu),
                   sa::rate_fits(from.rate, to.rate) ? from.rate : to.rate,
                   fabric_.packet_life_time(), true};
}

sa::NodeRecord FabricTopology::node_record(const sa::EndPort& end_port) const {
  const fabric::Port& port = *fabric_.graph().port(end_port.index);
  sa::NodeRecord record;
  record.lid = port.lid;
  record.info = attribute_of<mad::NodeInfo>(fabric_.graph(), port, mad::smp_attribute::kNodeInfo);
  const std::string& description = fabric_.graph().element_of(port).description;
  std::copy_n(description.begin(), std::min(description.size(), record.description.size()),
              record.description.begin());
  return record;
}

sa::PortInfoRecord FabricTopology::port_info_record(const sa::EndPort& end_port) const {
  const fabric::Port& port = *fabric_.graph().port(end_port.index);
  sa::PortInfoRecord record;
  record.lid = port.lid;
  record.port = static_cast<std::uint8_t>(port.number);
  record.info = attribute_of<mad::PortInfo>(fabric_.graph(), port, mad::smp_attribute::kPortInfo);
  return record;
}

const fabric::Port* FabricTopology::manager() const {
  while (first_ < fabric_.graph().port_count() && fabric_.graph().port(first_)->is_ethernet())
    ++first_;
  const fabric::Port* port = fabric_.graph().port(first_);
  return port == nullptr ? nullptr : manager_of(*port);
}

std::optional<sa::EndPort> FabricTopology::manager_port() const {
  const fabric::Port* port = manager();
  if (port == nullptr) return std::nullopt;
  return this->port(fabric_.graph().index_of(*port));
}

}  // namespace ib::services
