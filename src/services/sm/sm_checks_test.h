// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks of a subnet that a manager has set up, read from the fabric itself.
#pragma once

#include "fabric/management/walk.h"
#include "services/sm/sm_world_test.h"
#include "sm/routing/credit_loops.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ib::services::test {

// Elements that cables which are up join to a port.
inline std::set<std::uint32_t> elements_joined_to(World& world, std::uint32_t port) {
  fabric::Graph& graph = world.graph();
  std::set<std::uint32_t> found{graph.port(port)->element};
  std::vector<const fabric::Port*> queue;
  if (const auto* peer = graph.peer_of(*graph.port(port));
      peer != nullptr && peer->physical_state == fabric::kLinkUp) {
    queue.push_back(peer);
  }
  while (!queue.empty()) {
    const fabric::Port& at = *queue.back();
    queue.pop_back();
    if (!found.insert(at.element).second || !graph.element_of(at).is_switch()) continue;
    for (const fabric::Port& out : graph.ports_of(graph.element_of(at))) {
      const fabric::Port* peer = graph.peer_of(out);
      if (peer != nullptr && out.physical_state == fabric::kLinkUp) queue.push_back(peer);
    }
  }
  return found;
}

// End ports of these elements that are joined to it, but those of `left_out`.
inline std::vector<std::uint32_t> end_ports_of(World& world, const std::set<std::uint32_t>& of,
                                               const std::set<std::uint32_t>& left_out) {
  std::vector<std::uint32_t> ports;
  fabric::Graph& graph = world.graph();
  for (const std::uint32_t e : of) {
    if (left_out.contains(e)) continue;
    const fabric::Element& element = graph.element(e);
    for (const fabric::Port& port : graph.ports_of(element)) {
      const bool is_end = &graph.end_port_of(port) == &port;
      const bool is_up = element.is_switch() || port.physical_state == fabric::kLinkUp;
      if (is_end && is_up) ports.push_back(graph.index_of(port));
    }
  }
  return ports;
}

// The tables of the fabric, as the checker of credit loops reads them.
inline std::string credit_loop_of(World& world, const std::set<std::uint32_t>& joined,
                                  const std::set<std::uint32_t>& left_out) {
  struct NoLanes final : sm::Engine {
    std::string_view name() const override { return "as written"; }
    bool is_deadlock_free() const override { return false; }
    bool prepare(const sm::Graph&, std::string&) override { return true; }
    void fill(std::uint32_t, std::span<std::uint8_t>) const override {}
  };
  fabric::Graph& from = world.graph();
  sm::Graph graph;
  sm::Tables tables;
  std::map<std::uint32_t, std::uint32_t> switch_of;
  for (const std::uint32_t e : joined) {
    if (!from.element(e).is_switch()) continue;
    switch_of[e] = static_cast<std::uint32_t>(switch_of.size());
    tables.push_back(from.switch_of(from.element(e)).linear);
    tables.back().resize(0xc000, sm::kNoRoute);
  }
  graph.switches.resize(switch_of.size());
  for (const auto& [e, index] : switch_of) {
    for (const fabric::Port& port : from.ports_of(from.element(e))) {
      if (port.number == 0) graph.add_destination(index, {port.lid, 1, 0});
      const fabric::Port* peer = from.peer_of(port);
      if (peer == nullptr || port.physical_state != fabric::kLinkUp) continue;
      if (left_out.contains(peer->element)) continue;
      const auto number = static_cast<std::uint8_t>(port.number);
      if (const auto to = switch_of.find(peer->element); to == switch_of.end()) {
        graph.add_destination(index,
                              {peer->lid, static_cast<std::uint16_t>(1u << peer->lmc), number});
      } else if (from.index_of(port) < from.index_of(*peer)) {
        graph.add_link(index, number, to->second, static_cast<std::uint8_t>(peer->number));
      }
    }
  }
  graph.finish();
  return find_credit_loop(graph, tables, NoLanes{});
}

struct Exceptions {
  std::set<std::uint32_t> elements{};  // that the manager cannot set up
  bool may_have_credit_loops = false;
};

// Returns the first thing that is wrong; empty if all is well.
inline std::string wrong_with(World& world, std::uint32_t master, const Exceptions& except = {}) {
  fabric::Graph& graph = world.graph();
  const auto joined = elements_joined_to(world, master);
  const auto ports = end_ports_of(world, joined, except.elements);
  const auto name = [&](std::uint32_t port) {
    return fabric::port_words(world.fabric, *graph.port(port));
  };
  std::map<std::uint32_t, std::uint32_t> by_lid;
  for (const std::uint32_t i : ports) {
    const fabric::Port& port = *graph.port(i);
    if (port.lid == 0) return name(i) + " has no LID";
    for (std::uint32_t lid = port.lid; lid < port.lid + (1u << port.lmc); ++lid) {
      const auto [other, is_new] = by_lid.emplace(lid, i);
      if (!is_new) return fmt::format("LID {} has {} and {}", lid, name(i), name(other->second));
    }
    const fabric::Port* peer = graph.peer_of(port);
    const bool may_wait = peer != nullptr && except.elements.contains(peer->element);
    if (port.state != verbs::PortState::Active && !may_wait) return name(i) + " is not Active";
    if (port.sm_lid != graph.port(master)->lid) return name(i) + " has another master";
  }
  for (const std::uint32_t from : ports) {
    for (const auto& [lid, to] : by_lid) {
      const auto arrival = fabric::walk_by_lid(
          graph, *graph.port(from), {graph.port(from)->lid, static_cast<std::uint16_t>(lid)});
      if (arrival.port == nullptr || &graph.end_port_of(*arrival.port) != graph.port(to)) {
        return fmt::format("{} does not reach {}: {}", name(from), name(to), arrival.reason);
      }
    }
  }
  return except.may_have_credit_loops ? std::string{}
                                      : credit_loop_of(world, joined, except.elements);
}

}  // namespace ib::services::test
