// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/walk.h"

#include "fabric/subnet_setup.h"

#include <fmt/format.h>

namespace ib::fabric {
namespace {

using mad::kPermissiveLid;
using mad::RouteStep;

// More than any way without a circle has: a directed route there and ways by LID before and behind.
constexpr int kMostSteps = 256;

std::string name_of(const Element& element) {
  return element.description.empty() ? fmt::format("{:#018x}", element.node_guid)
                                     : element.description;
}

class Walk {
 public:
  Walk(Graph& graph, Port& from, PacketLids lids) : graph_(graph), at_(&from), lids_(lids) {}

  Arrival by_lid() {
    for (int i = 0; i < kMostSteps; ++i) {
      if (is_there()) return end();
      if (!go_on_by_lid()) return lost();
    }
    return circles();
  }

  Arrival along(mad::Smp& smp) {
    const bool is_directed = smp.header.mgmt_class == mad::mgmt_class::kSubnDirected;
    for (int i = 0; i < kMostSteps; ++i) {
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
  const Port& addressed() const {
    return element().is_switch() ? *graph_.port_of(element(), 0) : *at_;
  }
  std::uint16_t own_lid() const { return addressed().lid; }
  bool is_there() const { return addressed().has_lid(lids_.destination); }

  bool go_on_by_lid() {
    if (has_come_ && !element().is_switch()) {
      reason_ = fmt::format("it came to {}, which does not have LID {}", name_of(element()),
                            lids_.destination);
      return false;
    }
    if (!element().is_switch() && graph_.peer_of(*at_) == nullptr) return cross_ideal_network();
    Port* out = next_hop(graph_, element(), *at_, lids_.destination, reason_);
    return out != nullptr && leave(*out);
  }

  // It joins the ports without a cable, and has no tables.
  bool cross_ideal_network() {
    const Port* to = graph_.route(*at_, lids_.destination);
    if (to == nullptr) {
      reason_ = fmt::format("no port that is reached from {} has LID {}", name_of(element()),
                            lids_.destination);
      return false;
    }
    cross(*at_, *graph_.port(graph_.index_of(*to)));
    return true;
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
      ++out.counters.transmit_discards;
      reason_ = fmt::format("the way leads out of {} by port {}, which has no cable that is up",
                            name_of(element()), out.number);
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

Port* next_hop(Graph& graph, const Element& element, Port& from, std::uint16_t lid,
               std::string& reason) {
  if (!element.is_switch()) return &from;
  const std::uint8_t number = fresh_tables(graph, element).port_to(lid);
  Port* out = number != kNoPort ? graph.port_of(element, number) : nullptr;
  if (out != nullptr && number != 0) return out;
  reason = fmt::format("{} has no port for LID {} in its table", name_of(element), lid);
  ++from.counters.switch_relay_errors;
  return nullptr;
}

Arrival walk_smp(Graph& graph, Port& from, mad::Smp& smp, PacketLids lids) {
  return Walk(graph, from, lids).along(smp);
}

Arrival walk_by_lid(Graph& graph, Port& from, PacketLids lids) {
  return Walk(graph, from, lids).by_lid();
}

}  // namespace ib::fabric
