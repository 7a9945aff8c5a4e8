// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The steps of a walk: each takes a packet over one cable, or says why it ends. Directed steps are
// decided in mad/directed_route.cpp.
#include "fabric/management/walk.h"

#include "fabric/subnet_setup.h"

#include <fmt/format.h>

namespace ib::fabric {
namespace {

using mad::kPermissiveLid;
using mad::RouteStep;

std::string no_cable_text(const Element& element, const Port& out) {
  return fmt::format("port {} of {} has no cable that is up", out.number, element.name());
}

class Walk {
 public:
  Walk(Graph& graph, Port& from, PacketLids lids) : graph_(graph), at_(&from), lids_(lids) {}

  Arrival by_lid() {
    for (std::uint32_t i = 0; i < kMostCables; ++i) {
      if (is_there()) return end();
      if (!go_on_by_lid()) return lost();
    }
    return circles();
  }

  Arrival along(mad::Smp& smp) {
    const bool is_directed = smp.header.mgmt_class == mad::mgmt_class::kSubnDirected;
    for (std::uint32_t i = 0; i < kMostCables; ++i) {
      const bool under_way = lids_.destination != kPermissiveLid && !is_there();
      if (under_way) {
        if (!go_on_by_lid()) return lost();
        continue;
      }
      if (!is_directed) return end();
      const mad::RouteDecision next =
          mad::take_step(smp, element().is_switch(), static_cast<std::uint8_t>(arrival()));
      switch (next.step) {
        case RouteStep::Deliver: return end();
        case RouteStep::Discard:
          reason_ =
              "the directed route does not end where its hops do: hop pointer, hop count and the "
              "LIDs of both ends (0xffff) have to fit, and a channel adapter sends nothing on";
          return lost();
        case RouteStep::ByLid:
          lids_ = {own_lid(), next.lid};
          has_come_ = false;
          break;
        case RouteStep::Send:
          lids_ = {};
          if (!leave_by(next.port)) return lost();
          break;
      }
    }
    return circles();
  }

 private:
  const Element& element() const { return graph_.element_of(*at_); }
  // The number of the port by which it came; 0: it began here.
  std::uint32_t arrival() const { return has_come_ ? at_->number : 0; }
  std::uint16_t own_lid() const { return graph_.end_port_of(*at_).lid; }
  bool is_there() const { return graph_.end_port_of(*at_).has_lid(lids_.destination); }

  bool go_on_by_lid() {
    const LidHop hop = hop_by_lid(graph_, *at_, has_come_, lids_.destination);
    if (hop.outcome == LidHop::Outcome::Crosses) {
      cross(*hop.out, *hop.in);
      return true;
    }
    if (hop.outcome == LidHop::Outcome::NotInTable) ++at_->counters.switch_relay_errors;
    if (hop.outcome == LidHop::Outcome::CableIsDown) hop.out->counters.discard();
    reason_ = stop_text(graph_, *at_, hop, lids_.destination);
    return false;
  }

  bool leave_by(std::uint8_t number) {
    Port* out = graph_.port_of(element(), number);
    const bool is_outer = out != nullptr && (number != 0 || !element().is_switch());
    if (is_outer && graph_.peer_of(*out) != nullptr) return leave(*out);
    reason_ = fmt::format("the directed route leads out by port {}, which has no cable that is up",
                          number);
    return false;
  }

  bool leave(Port& out) {
    Port* peer = graph_.peer_of(out);
    if (peer == nullptr || out.physical_state != kLinkUp) {
      out.counters.discard();
      reason_ = no_cable_text(element(), out);
      return false;
    }
    cross(out, *peer);
    return true;
  }

  void cross(Port& out, Port& in) {
    out.counters.sent.add_unicast(kMadWords);
    in.counters.received.add_unicast(kMadWords);
    at_ = &in;
    has_come_ = true;
  }

  Arrival end() { return {at_, lids_, {}}; }
  Arrival lost() { return {nullptr, lids_, std::move(reason_)}; }
  Arrival circles() {
    reason_ = fmt::format("the tables of the switches send LID {} in a circle", lids_.destination);
    return lost();
  }

  Graph& graph_;
  Port* at_;
  bool has_come_ = false;
  PacketLids lids_;
  std::string reason_;
};

}  // namespace

LidHop hop_by_lid(Graph& graph, Port& at, bool has_come, std::uint16_t lid) {
  using Outcome = LidHop::Outcome;
  const Element& element = graph.element_of(at);
  if (graph.end_port_of(at).has_lid(lid)) return {Outcome::IsThere};
  Port* out = &at;
  if (element.is_switch()) {
    const std::uint8_t number = fresh_tables(graph, element).port_to(lid);
    out = number != 0 && number != kNoPort ? graph.port_of(element, number) : nullptr;
    if (out == nullptr) return {Outcome::NotInTable};
  } else if (has_come) {
    return {Outcome::IsAdapter};
  } else if (graph.peer_of(at) == nullptr) {
    // The ideal network joins the ports without a cable, and has no tables.
    const Port* to = graph.route(at, lid);
    if (to == nullptr) return {Outcome::NotReachable};
    return {Outcome::Crosses, out, graph.port(graph.index_of(*to))};
  }
  Port* const in = graph.peer_of(*out);
  if (in == nullptr || out->physical_state != kLinkUp) return {Outcome::CableIsDown, out};
  return {Outcome::Crosses, out, in};
}

std::string stop_text(const Graph& graph, const Port& at, const LidHop& hop, std::uint16_t lid) {
  using Outcome = LidHop::Outcome;
  const Element& element = graph.element_of(at);
  switch (hop.outcome) {
    case Outcome::Crosses:
    case Outcome::IsThere: break;
    case Outcome::IsAdapter:
      return fmt::format("{} does not have this LID, and a channel adapter sends nothing on",
                         element.name());
    case Outcome::NotInTable:
      return fmt::format("{} has no port for LID {} in its table", element.name(), lid);
    case Outcome::CableIsDown: return no_cable_text(element, *hop.out);
    case Outcome::NotReachable:
      return fmt::format("no port that is reached from {} has LID {}", element.name(), lid);
  }
  return {};
}

Arrival walk_smp(Graph& graph, Port& from, mad::Smp& smp, PacketLids lids) {
  return Walk(graph, from, lids).along(smp);
}

Arrival walk_by_lid(Graph& graph, Port& from, PacketLids lids) {
  return Walk(graph, from, lids).by_lid();
}

}  // namespace ib::fabric
