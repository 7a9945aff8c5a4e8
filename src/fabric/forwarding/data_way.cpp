// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One hop after the other, as a packet would take it; a packet to a group takes several at once.
#include "fabric/forwarding/data_way.h"

#include "fabric/key_violation.h"
#include "fabric/management/walk.h"
#include "fabric/subnet_setup.h"

#include <algorithm>
#include <utility>

namespace ib::fabric {
namespace {

using verbs::PortState;
using verbs::control::Cause;

constexpr std::size_t kMostPorts = 2 * kMostCables;
constexpr unsigned kLevels = 16;
constexpr unsigned kNoLane = 15;  // that of management

// Lanes that a port uses for data, as OperationalVLs numbers them [IBA1 14.2.5.6].
unsigned lanes_of(const Port& port) {
  constexpr unsigned kAll = 8;
  constexpr unsigned kCodeOf15 = 5;
  const unsigned code = port.settings.operational_vls;
  if (code == 0) return kAll;
  return code < kCodeOf15 ? 1u << (code - 1) : kNoLane;
}

// The service levels that have a lane where packets go from one port of an element to another.
std::uint16_t levels_between(const Graph& graph, std::uint32_t in_number, const Port& out) {
  const mad::SmpData table = graph.tables().sl_to_vl(graph.index_of(out), in_number);
  const unsigned lanes = lanes_of(out);
  std::uint16_t levels = 0;
  for (unsigned level = 0; level < kLevels; ++level) {
    const unsigned pair = table[level / 2];
    const unsigned lane = level % 2 == 0 ? pair >> 4 : pair & 15;
    if (lane < lanes) levels = static_cast<std::uint16_t>(levels | 1u << level);
  }
  return levels;
}

DataWay ended(DataWay way, Cause stop, std::uint32_t at) {
  way.stop = stop;
  way.stop_at = at;
  return way;
}

// Whether the packets that have come to an element by `at` go on by `out` and come to `in`; if not,
// way.stop has the reason.
bool pass(const Graph& graph, const Port& at, bool has_come, const Port& out, const Port& in,
          std::uint16_t pkey, DataWay& way) {
  const bool out_is_of_switch = graph.element_of(out).is_switch();
  const bool in_is_of_switch = graph.element_of(in).is_switch();
  const auto stop = [&](Cause cause, const Port& where) {
    way.stop = cause;
    way.stop_at = graph.index_of(where);
    return false;
  };
  // The sender looks at its own port, and at the receiver's, by itself.
  if (out_is_of_switch && out.state != PortState::Active) return stop(Cause::WayDown, out);
  if (in_is_of_switch && in.state != PortState::Active && in.state != PortState::Armed) {
    return stop(Cause::WayDown, in);
  }
  if (out_is_of_switch && drops_partition(out, kEnforcesOut, pkey)) {
    return stop(Cause::WayPartition, out);
  }
  way.levels &= levels_between(graph, has_come ? at.number : 0, out);
  if (way.levels == 0) return stop(Cause::WayLane, out);
  way.mtu = std::min(way.mtu, out.mtu);
  way.ports.push_back(graph.index_of(out));
  way.ports.push_back(graph.index_of(in));
  if (in_is_of_switch && drops_partition(in, kEnforcesIn, pkey)) {
    return stop(Cause::WayPartition, in);
  }
  return true;
}

}  // namespace

DataWay find_data_way(Graph& graph, Port& from, std::uint16_t lid, std::uint16_t pkey) {
  using Outcome = LidHop::Outcome;
  DataWay way;
  Port* at = &from;
  bool has_come = false;
  while (way.ports.size() < kMostPorts) {
    const LidHop hop = hop_by_lid(graph, *at, has_come, lid);
    const std::uint32_t here = graph.index_of(*at);
    switch (hop.outcome) {
      case Outcome::Crosses: break;
      case Outcome::IsThere: way.end = &graph.end_port_of(*at); return way;
      case Outcome::IsAdapter:
      case Outcome::NotInTable: return ended(std::move(way), Cause::WayMissing, here);
      case Outcome::CableIsDown:
        return ended(std::move(way), Cause::WayDown, graph.index_of(*hop.out));
      case Outcome::NotReachable: return ended(std::move(way), Cause::PeerUnknown, here);
    }
    if (!pass(graph, *at, has_come, *hop.out, *hop.in, pkey, way)) return way;
    at = hop.in;
    has_come = true;
  }
  return ended(std::move(way), Cause::WayInCircle, graph.index_of(*at));
}

namespace {

// A packet to a group that has come to a switch, and the way that it took.
struct Branch {
  Port* at = nullptr;
  DataWay way;
};

bool has_port(const PortMask& mask, std::uint32_t number) {
  return (mask[number / 64] >> number % 64 & 1) != 0;
}

}  // namespace

// A switch sends a packet that comes by one of the ports of the group, or from outside of the tree,
// to the others. One that comes a second time to a switch has been in a circle, and ends.
GroupWays find_group_ways(Graph& graph, Port& from, std::uint16_t lid, std::uint16_t pkey) {
  GroupWays all;
  Port* const first = graph.peer_of(from);
  Branch start;
  if (first == nullptr || from.physical_state != kLinkUp ||
      !pass(graph, from, false, from, *first, pkey, start.way)) {
    if (first != nullptr) all.refused.push_back(graph.index_of(*first));
    return all;
  }
  start.at = first;
  std::vector<bool> visited(graph.element_count());
  std::vector<Branch> open{std::move(start)};
  all.ports = open.front().way.ports;
  while (!open.empty()) {
    const Branch branch = std::move(open.back());
    open.pop_back();
    const Element& element = graph.element_of(*branch.at);
    if (!element.is_switch()) {
      all.ends.push_back(branch.way);
      all.ends.back().end = branch.at;
      continue;
    }
    if (visited[branch.at->element]) continue;
    visited[branch.at->element] = true;
    const auto& groups = fresh_tables(graph, element).groups;
    const auto found = groups.find(lid);
    if (found == groups.end()) continue;
    for (Port& out : graph.ports_of(element)) {
      Port* const in = graph.peer_of(out);
      const bool is_wanted =
          out.number != 0 && &out != branch.at && has_port(found->second, out.number);
      if (!is_wanted || in == nullptr || out.physical_state != kLinkUp) continue;
      Branch next{in, branch.way};
      if (!pass(graph, *branch.at, true, out, *in, pkey, next.way)) {
        all.refused.insert(all.refused.end(), {graph.index_of(out), graph.index_of(*in)});
        continue;
      }
      all.ports.push_back(graph.index_of(out));
      all.ports.push_back(graph.index_of(*in));
      open.push_back(std::move(next));
    }
  }
  return all;
}

bool is_behind_switch(const Graph& graph, const Port& port) {
  const Port* peer = graph.peer_of(port);
  return peer != nullptr && graph.element_of(*peer).is_switch();
}

}  // namespace ib::fabric
