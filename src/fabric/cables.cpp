// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order matters: links go before cables do, and LIDs are unique before links come up.
#include "fabric/cables.h"

#include "fabric/subnet_setup.h"
#include "verbs/limits.h"
#include "verbs/link_layer.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <span>
#include <vector>

namespace ib::fabric {
namespace {

// GUIDs of switches that come later, behind those of presets.
constexpr std::size_t kFirstAddedSwitch = 0xff0000;

// Other ports are reached now, and managed by others.
void follow_cables(Fabric& fabric, std::span<const Port* const> ends, PortChanges& changes) {
  Graph& graph = fabric.graph();
  for (const std::uint32_t index : graph.refresh_segments()) {
    changes.push_back({index, change::kSegment, verbs::PortState::Nop});
  }
  std::set<std::uint32_t> done;  // subnets
  for (const Port* end : ends) {
    if (done.insert(graph.subnet_of(*end)).second) take_over(fabric, *end, changes);
  }
}

bool is_on_ideal_network(const Graph& graph, const Port& port) {
  return graph.has_ideal_network() && graph.peer_of(port) == nullptr && !port.is_ethernet() &&
         !graph.element_of(port).is_switch();
}

// Returns nullptr if there is none.
const Port* any_on_ideal_network(const Graph& graph) {
  for (std::uint32_t i = 0; graph.has_ideal_network() && i < graph.port_count(); ++i) {
    if (is_on_ideal_network(graph, *graph.port(i))) return graph.port(i);
  }
  return nullptr;
}

// Pulls out the cables of these ports, as far as they have one.
void unplug_all(Fabric& fabric, std::span<Port> ports, PortChanges& changes) {
  Graph& graph = fabric.graph();
  std::vector<const Port*> ends;
  for (Port& port : ports) {
    Port* const peer = graph.peer_of(port);
    if (peer == nullptr) continue;
    lose_link(fabric, port, changes);
    graph.disconnect(port);
    for (Port* end : {&port, peer}) {
      ends.push_back(end);
      if (!is_on_ideal_network(graph, *end)) continue;
      end->width = end->best_width = CableKind().width;
      end->speed = end->best_speed = CableKind().speed;
    }
  }
  follow_cables(fabric, ends, changes);
  for (const Port* end : ends) train(fabric, *graph.port(graph.index_of(*end)), changes);
}

Status check_end(const Fabric& fabric, const Port& port, std::string& reason) {
  const Graph& graph = fabric.graph();
  const Element& element = graph.element_of(port);
  const Hca* hca = fabric.hca_of(port);
  if (hca != nullptr && !hca->present) {
    reason = fmt::format("{} is out; `softib hca add {} --node {}` plugs it in", hca->name,
                         hca->name, fabric.node_of(*hca).name);
    return Status::NotFound;
  }
  if (port.number == 0) {
    reason = fmt::format("port 0 of {} is inside of the switch; cables take ports 1 to {}",
                         element.description, element.port_count);
    return Status::InvalidParameter;
  }
  if (const Port* peer = graph.peer_of(port); peer != nullptr) {
    reason = fmt::format("{} has a cable already, to {}; `softib cable remove` pulls it out",
                         port_words(fabric, port), port_words(fabric, *peer));
    return Status::AlreadyExists;
  }
  return Status::Ok;
}

// One that was removed, of this name, number of ports and, if one is wanted, GUID.
Element* find_removed(Graph& graph, const TopologyElement& what) {
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    Element& element = graph.element_of(*graph.port(graph.element(i).first_port));
    const bool is_it = element.is_gone && element.description == what.description &&
                       element.port_count == what.ports &&
                       (what.node_guid == 0 || element.node_guid == what.node_guid);
    if (is_it) return &element;
  }
  return nullptr;
}

std::uint64_t free_guid(const Graph& graph) {
  std::size_t place = kFirstAddedSwitch;
  while (graph.find_element(position_guid(place, 0, 0)) != nullptr) ++place;
  return position_guid(place, 0, 0);
}

// As a switch is after power-on, with its cables still to come up.
void reset(Fabric& fabric, Element& element) {
  Graph& graph = fabric.graph();
  Switch& tables = graph.switch_of(element);
  tables = {};
  tables.facts.enforcement_cap = verbs::limits::kMaxPkeys;
  const bool is_managed = fabric.is_managed_here(graph.ports_of(element).front());
  for (Port& port : graph.ports_of(element)) {
    port.settings = {};
    port.counters = {};
    port.pkeys = {0xffff};
    port.mtu = verbs::Mtu::B4096;
    graph.tables().forget(graph.index_of(port));
    if (is_managed) continue;
    graph.take_lid(port, 0, 0);
    port.sm_lid = 0;
  }
}

}  // namespace

std::string port_words(const Fabric& fabric, const Port& port) {
  const Hca* hca = fabric.hca_of(port);
  if (hca == nullptr) {
    return fmt::format("port {} of {}", port.number, fabric.graph().element_of(port).description);
  }
  return fmt::format("port {} of {} on {}", port.number, hca->name, fabric.node_of(*hca).name);
}

Status check_cable(const Fabric& fabric, const Port& a, const Port& b, std::string& reason) {
  if (&a == &b) {
    reason = fmt::format("both ends are {}; a cable joins two ports", port_words(fabric, a));
    return Status::InvalidParameter;
  }
  if (a.link_layer != b.link_layer) {
    reason = fmt::format("{} is {} and {} is {}: no cable joins two link layers",
                         port_words(fabric, a), verbs::link_layer_name(a.link_layer),
                         port_words(fabric, b), verbs::link_layer_name(b.link_layer));
    return Status::InvalidParameter;
  }
  IB_CHECK(check_end(fabric, a, reason));
  return check_end(fabric, b, reason);
}

void plug(Fabric& fabric, Port& a, Port& b, CableKind kind, PortChanges& changes) {
  const Graph& graph = fabric.graph();
  const bool leaves_others = is_on_ideal_network(graph, a) || is_on_ideal_network(graph, b);
  lose_link(fabric, a, changes);
  lose_link(fabric, b, changes);
  const Status joined = fabric.graph().connect(a, b);
  IB_ASSERT(joined == Status::Ok);
  for (Port* port : {&a, &b}) {
    port->width = port->best_width = kind.width;
    port->speed = port->best_speed = kind.speed;
    // A manager has enabled what the cable before could do.
    port->settings.width_enabled = 0;
    port->settings.speed_enabled = 0;
    port->settings.speed_ext_enabled = 0;
  }
  // Their manager, or the port of softib's administrator, may have been one of these two.
  const Port* const left = leaves_others ? any_on_ideal_network(graph) : nullptr;
  const std::array<const Port*, 2> ends{&a, left};
  follow_cables(fabric, std::span(ends).first(left != nullptr ? 2 : 1), changes);
  train(fabric, a, changes);
}

void unplug(Fabric& fabric, Port& port, PortChanges& changes) {
  IB_ASSERT(fabric.graph().peer_of(port) != nullptr);
  unplug_all(fabric, std::span(&port, 1), changes);
}

Result<Element*> add_switch(Fabric& fabric, const TopologyElement& what, std::string& reason) {
  Graph& graph = fabric.graph();
  if (Element* removed = find_removed(graph, what); removed != nullptr) {
    removed->is_gone = false;
    PortChanges changes;  // nobody hears of a switch without a cable
    set_power(fabric, *removed, true, changes);
    return removed;
  }
  TopologyElement wanted = what;
  wanted.kind = ElementKind::Switch;
  if (wanted.node_guid == 0) wanted.node_guid = free_guid(graph);
  Topology alone;
  alone.elements = {wanted};
  IB_CHECK(check(alone, reason));
  const auto added = fabric.add_switch(wanted);
  if (!added) {
    reason = added.error() == Status::AlreadyExists
                 ? fmt::format(
                       "an element has the GUID {:#018x}, or had it before it was removed; "
                       "use another, or none",
                       wanted.node_guid)
                 : fmt::format(
                       "there is no room: a fabric takes {} more switches with {} ports "
                       "than it began with, and has {} LIDs",
                       kMaxAddedSwitches, kMaxAddedSwitchPorts, kMaxPorts);
    return added.error();
  }
  reset(fabric, **added);
  PortChanges changes;
  take_over(fabric, graph.ports_of(**added).front(), changes);
  return *added;
}

void remove_switch(Fabric& fabric, Element& element, PortChanges& changes) {
  unplug_all(fabric, fabric.graph().ports_of(element), changes);
  set_power(fabric, element, false, changes);
  fabric.graph().take_lid(fabric.graph().ports_of(element).front(), 0, 0);
  element.is_gone = true;
}

void set_power(Fabric& fabric, Element& element, bool has_power, PortChanges& changes) {
  if (element.has_power == has_power) return;
  element.has_power = has_power;
  const auto ports = fabric.graph().ports_of(element);
  if (has_power) reset(fabric, element);
  for (Port& port : ports.subspan(1)) {
    if (has_power) {
      train(fabric, port, changes);
    } else {
      lose_link(fabric, port, changes);
    }
  }
  // No trap is to come from a switch without power.
  if (!has_power && !fabric.is_managed_here(ports.front())) {
    fabric.graph().take_lid(ports.front(), 0, 0);
  }
  ports.front().state = has_power ? verbs::PortState::Active : verbs::PortState::Down;
  if (has_power) take_over(fabric, ports.front(), changes);
}

}  // namespace ib::fabric
