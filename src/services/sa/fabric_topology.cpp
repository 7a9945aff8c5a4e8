// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/fabric_topology.h"

#include "fabric/management/element_view.h"
#include "fabric/management/walk.h"
#include "fabric/subnet_setup.h"
#include "mad/attributes.h"
#include "mad/smp.h"
#include "sa/records/selector.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::services {
namespace {

constexpr auto kMtu = static_cast<std::uint8_t>(verbs::Mtu::B4096);

bool is_up(const fabric::Port& port) {
  return port.state == verbs::PortState::Active;
}

// The MTU and rate of all links of a way together.
struct Way {
  std::uint8_t mtu = kMtu;
  std::uint8_t rate = 0;  // 0: of none yet
  void pass(const fabric::Port& port) {
    mtu = std::min(mtu, static_cast<std::uint8_t>(port.mtu));
    const std::uint8_t rate_of_port = sa::rate_of(port.width, port.speed);
    if (rate == 0 || sa::rate_fits(rate_of_port, rate)) rate = rate_of_port;
  }
};

// The way of packets to a LID by the tables of the switches, over links that are up. Returns
// nothing if it does not lead to that port.
std::optional<Way> find_way(const fabric::Graph& graph, const fabric::Port& from,
                            const fabric::Port& to, std::uint16_t dlid) {
  Way way;
  way.pass(from);
  way.pass(to);
  const fabric::Port* at = &from;
  if (at == &to) return way;
  for (std::uint32_t hop = 0; hop < fabric::kMostCables; ++hop) {
    const fabric::Element& element = graph.element_of(*at);
    const fabric::Port* out = at;
    if (element.is_switch()) {
      const std::uint8_t number = fabric::fresh_tables(graph, element).port_to(dlid);
      out = graph.port_of(element, number);
      if (out == nullptr) return std::nullopt;
      if (number == 0) return out == &to ? std::optional(way) : std::nullopt;
    }
    const fabric::Port* next = graph.peer_of(*out);
    if (next == nullptr || !is_up(*out) || !is_up(*next)) return std::nullopt;
    way.pass(*out);
    way.pass(*next);
    at = next;
    if (!graph.element_of(*at).is_switch()) {
      return at == &to ? std::optional(way) : std::nullopt;
    }
  }
  return std::nullopt;
}

// Ports without a cable are on the ideal network, which has no tables.
std::optional<Way> way_between(const fabric::Graph& graph, const fabric::Port& from,
                               const fabric::Port& to, std::uint16_t dlid) {
  if (!graph.reaches(from, to)) return std::nullopt;
  const bool has_link = graph.element_of(from).is_switch() || graph.peer_of(from) != nullptr;
  if (has_link) return find_way(graph, from, to, dlid);
  Way way;
  way.pass(from);
  way.pass(to);
  return way;
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
  if (!is_seen(*port)) return std::nullopt;
  sa::EndPort end{index, std::span(&port->gids[0].gid, 1),     port->lid, port->lmc, port->pkeys,
                  kMtu,  sa::rate_of(port->width, port->speed)};
  const fabric::Element& element = fabric_.graph().element_of(*port);
  end.number = static_cast<std::uint8_t>(port->number);
  if (element.is_switch()) end.others = static_cast<std::uint8_t>(element.port_count);
  return end;
}

std::optional<sa::EndPort> FabricTopology::find_lid(std::uint16_t lid) const {
  const fabric::Graph& graph = fabric_.graph();
  if (lid == 0) return std::nullopt;
  const fabric::Port* port =
      seen_from_ != nullptr ? graph.route(*seen_from_, lid) : graph.find_port(lid);
  return port == nullptr ? std::nullopt : this->port(graph.index_of(*port));
}

std::optional<sa::EndPort> FabricTopology::find_gid(const verbs::Gid& gid) const {
  const fabric::Port* port = verbs::is_zero(gid) ? nullptr : fabric_.graph().find_port(gid);
  if (port == nullptr || port->gid() != gid) return std::nullopt;
  return this->port(fabric_.graph().index_of(*port));
}

std::optional<sa::Route> FabricTopology::route(const sa::EndPort& from, std::uint16_t slid,
                                               const sa::EndPort& to, std::uint16_t dlid) const {
  const fabric::Graph& graph = fabric_.graph();
  const fabric::Port& here = *graph.port(from.index);
  const fabric::Port& there = *graph.port(to.index);
  const std::optional<Way> way = way_between(graph, here, there, dlid);
  if (!way) return std::nullopt;
  const bool comes_back = way_between(graph, there, here, slid).has_value();
  const std::uint8_t level = view_ != nullptr ? view_->service_level(here, there) : std::uint8_t{0};
  return sa::Route{level, way->mtu, way->rate, fabric_.packet_life_time(), comes_back};
}

const fabric::Port* FabricTopology::port_of(const sa::NodePort& port) const {
  const fabric::Graph& graph = fabric_.graph();
  return graph.port_of(graph.element_of(*graph.port(port.end.index)), port.number);
}

std::optional<sa::NodePort> FabricTopology::node_port(const sa::EndPort& end,
                                                      std::uint8_t number) const {
  if (!end.is_switch() && number != end.number) return std::nullopt;
  const fabric::Port* port = port_of({end, number, {}});
  if (port == nullptr) return std::nullopt;
  return sa::NodePort{end, number, port->pkeys};
}

std::optional<sa::NodePort> FabricTopology::peer(const sa::NodePort& port) const {
  const fabric::Graph& graph = fabric_.graph();
  const fabric::Port* here = port_of(port);
  const fabric::Port* there = here == nullptr ? nullptr : graph.peer_of(*here);
  if (there == nullptr || here->state == verbs::PortState::Down ||
      there->state == verbs::PortState::Down) {
    return std::nullopt;
  }
  const std::optional<sa::EndPort> end = this->port(graph.index_of(graph.end_port_of(*there)));
  return end ? node_port(*end, static_cast<std::uint8_t>(there->number)) : std::nullopt;
}

std::optional<mad::SmpData> FabricTopology::attribute(const sa::NodePort& port,
                                                      std::uint16_t attribute,
                                                      std::uint32_t modifier) const {
  const fabric::Graph& graph = fabric_.graph();
  const fabric::Element& element = graph.element_of(*graph.port(port.end.index));
  const fabric::ElementView view(graph, element);
  const mad::Attribute read = mad::get_attribute(view, port.number, attribute, modifier);
  if (read.status != mad::mad_status::kOk) return std::nullopt;
  return read.data;
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

std::vector<sa::SmInfoRecord> FabricTopology::managers() const {
  const fabric::Port* port = seen_from_ != nullptr ? manager_of(*seen_from_) : manager();
  if (port == nullptr) return {};
  if (view_ != nullptr) {
    if (auto records = view_->managers(*port); !records.empty()) return records;
  }
  sa::SmInfoRecord record;
  record.lid = port->lid;
  record.guid = port->guid;
  record.state = sa::kMasterState;
  return {record};
}

}  // namespace ib::services
