// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet for tools, as text and JSON out of the graph: nothing of it is an HCA's, so these
// requests of file 0 need no process behind them.
#include "drivers/root/subnet_requests.h"

#include "base/buffers.h"
#include "drivers/diagnostics/status.h"
#include "drivers/root/element_names.h"
#include "drivers/root/tree_requests.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "fabric/forwarding/data_way.h"
#include "fabric/health/take_survey.h"
#include "fabric/management/counter_values.h"
#include "fabric/management/walk.h"
#include "fabric/topology/ibnetdiscover.h"
#include "fabric/topology/ibsim.h"
#include "fabric/topology/link_names.h"
#include "fabric/topology/snapshot.h"
#include "fabric/topology/tree_text.h"
#include "fabric/topology_toml.h"
#include "verbs/explanation.h"
#include "verbs/link_speed.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace ib::drivers {
namespace {

using Json = nlohmann::ordered_json;
using verbs::control::PathEnd;
using verbs::control::TopologyForm;

std::string guid_text(const fabric::Element& element) {
  return fmt::format("{:#018x}", element.node_guid);
}

// Those that are not 0, since a client of performance management has cleared them.
Json counters_json(const fabric::PortCounters& counters) {
  constexpr std::array<const char*, fabric::kCounters> kNames = {"symbol_errors",
                                                                 "link_error_recovery",
                                                                 "link_downed",
                                                                 "receive_errors",
                                                                 "remote_physical_errors",
                                                                 "switch_relay_errors",
                                                                 "transmit_discards",
                                                                 "transmit_constraint_errors",
                                                                 "receive_constraint_errors",
                                                                 "local_link_integrity_errors",
                                                                 "buffer_overrun_errors",
                                                                 "vl15_dropped",
                                                                 "sent_data",
                                                                 "received_data",
                                                                 "sent_packets",
                                                                 "received_packets",
                                                                 "transmit_wait",
                                                                 "sent_unicast",
                                                                 "received_unicast",
                                                                 "sent_multicast",
                                                                 "received_multicast",
                                                                 "local_physical_errors",
                                                                 "buffer_overruns",
                                                                 "inactive_discards"};
  Json json = Json::object();
  std::size_t i = 0;
  each_counter(counters, [&](auto value) {
    if (value != 0) json[kNames[i]] = value;
    ++i;
  });
  return json;
}

Json port_json(Core& core, const fabric::Port& port) {
  const fabric::Graph& graph = core.fabric.graph();
  Json json = {{"port", port.number}, {"state", port_state_name(port.state)}};
  if (port.lid != 0) json["lid"] = port.lid;
  if (port.sm_lid != 0 && port.lid != 0) json["sm_lid"] = port.sm_lid;
  Json counters =
      counters_json(core.gmp_agents.perf().since_cleared(port, settled_port_counters(core, port)));
  if (!counters.empty()) json["counters"] = std::move(counters);
  const fabric::Port* peer = graph.peer_of(port);
  if (peer == nullptr) return json;
  json["width"] = fmt::format("{}x", verbs::link_lanes(port.width));
  json["speed"] = fabric::speed_name(port.speed);
  json["gbit_per_lane"] = verbs::link_speed(port.speed).tenths / 10.0;
  json["peer"] = {{"guid", guid_text(graph.element_of(*peer))},
                  {"description", graph.element_of(*peer).description},
                  {"port", peer->number}};
  return json;
}

std::string topology_json(Core& core) {
  settle_traffic(core);
  const fabric::Fabric& fabric = core.fabric;
  const fabric::Graph& graph = fabric.graph();
  Json elements = Json::array();
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    const fabric::Element& element = graph.element(i);
    if (element.is_gone) continue;
    Json json = {{"kind", element.is_switch() ? "switch" : "adapter"},
                 {"guid", guid_text(element)},
                 {"description", element.description}};
    if (const fabric::Hca* hca = fabric.find_hca(element.hca); hca != nullptr) {
      json["node"] = fabric.node_of(*hca).name;
      json["hca"] = hca->name;
      json["present"] = hca->present;
    } else {
      json["power"] = element.has_power;
    }
    Json ports = Json::array();
    for (const fabric::Port& port : graph.ports_of(element)) {
      if (!port.is_ethernet()) ports.push_back(port_json(core, port));
    }
    json["ports"] = std::move(ports);
    elements.push_back(std::move(json));
  }
  return Json{{"version", 1}, {"elements", std::move(elements)}}.dump(
             2, ' ', false, Json::error_handler_t::replace) +
         '\n';
}

const fabric::Port* find_end(const Core& core, const PathEnd& end, std::string& reason) {
  const std::string name(text_in(end.node));
  if (name.empty()) {
    const fabric::Port* port = core.fabric.graph().find_port(static_cast<std::uint16_t>(end.lid));
    if (port == nullptr) reason = fmt::format("no port of this fabric has LID {}", end.lid);
    return port;
  }
  const fabric::Node* node = core.fabric.find_node(name);
  if (node == nullptr) {
    reason = no_node(name);
    return nullptr;
  }
  for (const fabric::Hca& hca : node->hcas) {
    for (const fabric::Port& port : hca.ports) {
      if (hca.present && !port.is_ethernet()) return &port;
    }
  }
  reason = fmt::format("{} has no InfiniBand port", name);
  return nullptr;
}

Json step_json(const fabric::Graph& graph, const fabric::Port& out, const fabric::Port& in) {
  const auto guid = [&](const fabric::Port& port) { return guid_text(graph.element_of(port)); };
  return {{"from", graph.element_of(out).description},
          {"out", out.number},
          {"to", graph.element_of(in).description},
          {"in", in.number},
          {"from_guid", guid(out)},
          {"from_lid", graph.end_port_of(out).lid},
          {"to_guid", guid(in)},
          {"to_lid", graph.end_port_of(in).lid}};
}

// Why a port with a LID takes nothing; empty: it does.
std::string end_fault(const fabric::Port& to) {
  if (to.state == verbs::PortState::Active) return {};
  return fmt::format("the last port is in state {}: data does not pass", port_state_name(to.state));
}

// Why data of the first partition of the sender does not get there, although SMPs do; empty: it
// does.
std::string data_fault(fabric::Graph& graph, fabric::Port& from, const fabric::Port& to,
                       std::uint16_t lid, Json& json) {
  const fabric::DataWay way = find_data_way(graph, from, lid, from.pkeys.front());
  json["pkey"] = fmt::format("{:#06x}", from.pkeys.front());
  json["mtu"] = verbs::mtu_bytes(way.mtu);
  if (way.stop == verbs::control::Cause::None) return end_fault(to);
  const fabric::Port& at = *graph.port(way.stop_at);
  return fmt::format("data ends at port {} of {}: {}", at.number, graph.element_of(at).description,
                     verbs::explain(way.stop).meaning);
}

// By the tables of the switches, as a packet to this LID of the port would go; nothing is counted.
Json way_json(fabric::Fabric& fabric, const fabric::Port& from, const fabric::Port& to,
              std::uint16_t lid) {
  fabric::Graph& graph = fabric.graph();
  Json json = {{"from_lid", from.lid},
               {"to_lid", lid},
               {"from_guid", guid_text(graph.element_of(from))},
               {"to_guid", guid_text(graph.element_of(to))},
               {"hops", Json::array()}};
  const auto end = [&](bool arrives, std::string why) {
    json["arrives"] = arrives;
    json["why"] = std::move(why);
    return json;
  };
  if (from.lid == 0 || to.lid == 0) {
    return end(false, "a port at an end of the way has no LID: no subnet manager has been here");
  }
  if (graph.peer_of(from) == nullptr && graph.reaches(from, to)) {
    return end(true, "both ports are on the ideal network, without a switch between them");
  }
  fabric::Port* at = graph.port(graph.index_of(from));
  for (std::uint32_t i = 0; i < fabric::kMostCables; ++i) {
    const fabric::LidHop hop = fabric::hop_by_lid(graph, *at, i != 0, lid);
    if (hop.outcome == fabric::LidHop::Outcome::IsThere) {
      const std::string fault = data_fault(graph, *graph.port(graph.index_of(from)), to, lid, json);
      return end(fault.empty(), fault);
    }
    if (hop.outcome != fabric::LidHop::Outcome::Crosses) {
      return end(false, fabric::stop_text(graph, *at, hop, lid));
    }
    json["hops"].push_back(step_json(graph, *hop.out, *hop.in));
    at = hop.in;
  }
  return end(false, "the tables of the switches send it in a circle");
}

}  // namespace

void topology_text(FabricTree& tree, const verbs::control::TopologyIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  switch (in.form) {
    case TopologyForm::Json: return answer_text(core, std::move(irp), topology_json(core));
    case TopologyForm::Ibnetdiscover:
      return answer_text(core, std::move(irp), write_ibnetdiscover(snapshot_of(core.fabric)));
    case TopologyForm::Ibsim:
      return answer_text(core, std::move(irp), write_ibsim(snapshot_of(core.fabric)));
    case TopologyForm::Tree: {
      const fabric::Topology topology = snapshot_of(core.fabric);
      return answer_text(core, std::move(irp),
                         topology_summary(topology) + "\n" + topology_tree(topology));
    }
    case TopologyForm::Toml:
      return answer_text(core, std::move(irp), write_toml_topology(snapshot_of(core.fabric)));
    case TopologyForm::Table:
      return answer_text(core, std::move(irp), topology_table(snapshot_of(core.fabric)));
    case TopologyForm::Survey:
      return answer_text(core, std::move(irp),
                         fabric::health::to_bytes(fabric::health::take_survey(core.fabric)));
    case TopologyForm::Tables:
      return answer_text(core, std::move(irp),
                         fabric::health::table_bytes(core.fabric.graph(), in.first));
  }
  fail(core, std::move(irp), Status::InvalidParameter,
       fmt::format("there is no form {} of a topology", static_cast<std::uint32_t>(in.form)));
}

void path_text(FabricTree& tree, const verbs::control::PathIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  std::string reason;
  const fabric::Port* from = find_end(core, in.from, reason);
  const fabric::Port* to = from != nullptr ? find_end(core, in.to, reason) : nullptr;
  if (to == nullptr) return fail(core, std::move(irp), Status::NotFound, std::move(reason));
  const bool is_lid = text_in(in.to.node).empty();
  const std::uint16_t lid = is_lid ? static_cast<std::uint16_t>(in.to.lid) : to->lid;
  const Json json = way_json(core.fabric, *from, *to, lid);
  answer_text(core, std::move(irp),
              json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

void set_cable(FabricTree& tree, const verbs::control::SetCableIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  std::string reason;
  fabric::Element* element = find_switch(core.fabric, text_in(in.element), reason);
  fabric::Port* port =
      element != nullptr ? find_outer_port(core.fabric, *element, in.port, reason) : nullptr;
  if (port == nullptr) return fail(core, std::move(irp), Status::NotFound, std::move(reason));
  set_port_state(core, *port, in.up != 0);
  succeed(std::move(irp));
}

}  // namespace ib::drivers
