// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/diagnostics/status.h"

#include "base/buffers.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "drivers/trace/code_name.h"
#include "fabric/port_attributes.h"
#include "verbs/explanation.h"
#include "verbs/gid.h"
#include "verbs/link_layer.h"
#include "verbs/qp_state.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ib::drivers {
namespace {

using Json = nlohmann::ordered_json;
using verbs::PortState;

constexpr std::array<const char*, kKinds> kKindKeys = {"qp", "srq", "cq",   "ah", "mw",
                                                       "mr", "dm",  "xrcd", "pd"};

Json objects_json(const Counts& counts) {
  Json json;
  for (std::size_t k = 0; k < kKinds; ++k) json[kKindKeys[k]] = counts[k];
  return json;
}

const char* gid_type_name(verbs::GidType type) {
  switch (type) {
    case verbs::GidType::InfiniBand: return "infiniband";
    case verbs::GidType::RoceV1: return "roce_v1";
    case verbs::GidType::RoceV2: return "roce_v2";
  }
  return "unknown";
}

// Those that are set.
Json gids_json(const fabric::Port& port) {
  Json gids = Json::array();
  for (std::size_t i = 0; i < port.gids.size(); ++i) {
    const fabric::GidEntry& entry = port.gids[i];
    if (verbs::is_zero(entry.gid)) continue;
    gids.push_back({{"index", i},
                    {"gid", verbs::address_text(entry.gid)},
                    {"type", gid_type_name(entry.type)},
                    {"interface", entry.interface}});
  }
  return gids;
}

Json addresses_json(const fabric::Node& node) {
  Json addresses = Json::array();
  for (const fabric::Address& address : node.addresses) {
    addresses.push_back(
        {{"ip", verbs::address_text(address.ip)}, {"interface", address.interface}});
  }
  return addresses;
}

const char* address_source_name(fabric::AddressSource source) {
  switch (source) {
    case fabric::AddressSource::Default: return "default";
    case fabric::AddressSource::Configured: return "configured";
    case fabric::AddressSource::Interfaces: return "interfaces";
  }
  return "unknown";
}

Json port_json(const Core& core, const fabric::Hca& hca, const fabric::Port& port,
               const PortTotals& totals) {
  Json json = {{"number", port.number},
               {"link_layer", verbs::link_layer_name(port.link_layer)},
               {"guid", fmt::format("{:#x}", port.guid)},
               {"lid", port.lid},
               {"gids", gids_json(port)},
               {"state", hca.asleep ? "asleep" : port_state_name(port.state)},
               {"counters",
                {{"sent_messages", totals.sent_messages},
                 {"sent_bytes", totals.sent_bytes},
                 {"received_messages", totals.received_messages},
                 {"received_bytes", totals.received_bytes}}}};
  if (const fabric::Port* peer = core.fabric.graph().peer_of(port); peer != nullptr) {
    if (const fabric::Hca* other = core.fabric.hca_of(*peer); other != nullptr) {
      json["peer"] = {
          {"node", core.fabric.node_of(*other).name}, {"hca", other->name}, {"port", peer->number}};
    } else {
      json["peer"] = {{"switch", core.fabric.graph().element_of(*peer).description},
                      {"port", peer->number}};
    }
  }
  return json;
}

Json hcas_json(const Core& core, const fabric::Node& node, const std::vector<PortTotals>& totals) {
  Json hcas = Json::array();
  for (const fabric::Hca& hca : node.hcas) {
    if (!hca.present) continue;
    Json ports = Json::array();
    for (const fabric::Port& port : hca.ports) {
      ports.push_back(port_json(core, hca, port, totals[hca.first_port + port.number - 1]));
    }
    hcas.push_back({{"name", hca.name},
                    {"node_guid", fmt::format("{:#x}", hca.node_guid)},
                    {"objects", objects_json(core.counts[hca.index])},
                    {"ports", std::move(ports)}});
  }
  return hcas;
}

std::span<const fabric::Node> chosen_nodes(const Core& core, const control::StatusIn* part) {
  const std::vector<fabric::Node>& all = core.fabric.nodes();
  if (part == nullptr) return all;
  const std::string_view name = text_in(part->node);
  if (name.empty()) {
    const bool is_there = part->number < all.size();
    return is_there ? std::span(all).subspan(part->number, 1) : std::span<const fabric::Node>();
  }
  const fabric::Node* node = core.fabric.find_node(name);
  return node != nullptr ? std::span(node, 1) : std::span<const fabric::Node>();
}

Json nodes_json(Core& core, const control::StatusIn* part) {
  const std::vector<PortTotals> totals = all_port_totals(core);
  Json nodes = Json::array();
  for (const fabric::Node& node : chosen_nodes(core, part)) {
    nodes.push_back(
        {{"name", node.name},
         {"addresses", addresses_json(node)},
         {"address_source", address_source_name(node.address_source)},
         {"default_address", verbs::address_text(core.fabric.default_addresses(node).front().ip)},
         {"hcas", hcas_json(core, node, totals)}});
  }
  return nodes;
}

// The numbers of nodes, and of HCAs and ports that are present, the smallest and the largest.
Json shape_json(const fabric::Fabric& fabric) {
  struct Range {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    std::size_t most = 0;
    void add(std::size_t n) {
      least = std::min(least, n);
      most = std::max(most, n);
    }
    Json json() const { return Json::array({std::min(least, most), most}); }
  };
  std::size_t all_hcas = 0;
  Range hcas;
  Range ports;
  for (const fabric::Node& node : fabric.nodes()) {
    std::size_t present = 0;
    for (const fabric::Hca& hca : node.hcas) {
      if (!hca.present) continue;
      ++present;
      ports.add(hca.ports.size());
    }
    hcas.add(present);
    all_hcas += present;
  }
  return {{"nodes", fabric.nodes().size()},
          {"hcas", all_hcas},
          {"hcas_per_node", hcas.json()},
          {"ports_per_hca", ports.json()}};
}

Json clients_json(Core& core) {
  Json clients = Json::array();
  for (const auto& [id, session] : core.sessions) {
    if (session->slot == hca::kNone) continue;
    Counts counts{};
    for (const auto& file : session->files) {
      for (std::size_t k = 0; k < kKinds; ++k) {
        counts[k] += static_cast<std::uint32_t>(file->objects[k].size());
      }
    }
    clients.push_back({{"pid", session->pid},
                       {"program", session->program},
                       {"node", session->node->name},
                       {"slot", session->slot},
                       {"ending", session->ending},
                       {"objects", objects_json(counts)},
                       {"channels", session->channels.size()},
                       {"backings", session->backings.size()},
                       {"events_lost", session->events_lost}});
  }
  return clients;
}

Json blocked_json(Core& core) {
  Json blocked = Json::array();
  core.qps.for_each([&](const Qp& qp) {
    const hca::QpEntry& entry = *core.arena().qp(qp.index);
    const control::Cause cause = entry.requester.blocked.load();
    if (cause == control::Cause::None || qp.dying) return;
    blocked.push_back({{"qpn", fmt::format("{:#x}", qp.qpn)},
                       {"type", qp_type_name(qp.type)},
                       {"state", qp_state_name(current_state(core, qp))},
                       {"peer_qpn", fmt::format("{:#x}", qp.attr.dest_qpn)},
                       {"pid", qp.file->session->pid},
                       {"node", qp.file->session->node->name},
                       {"cause", verbs::cause_name(cause)}});
  });
  return blocked;
}

// Threads in the middle of a work request that others wait for: stopped ones, if it takes long.
Json posters_json(Core& core) {
  Json posters = Json::array();
  for (const Later::Holder& holder : core.later.holders()) {
    const Session* session = session_of_slot(core, holder.slot);
    if (session == nullptr) continue;
    const Qp* qp = core.qps.find(holder.qp);
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(core.later.now() - holder.since);
    posters.push_back({{"pid", session->pid},
                       {"program", session->program},
                       {"node", session->node->name},
                       {"qpn", qp != nullptr ? Json(fmt::format("{:#x}", qp->qpn)) : Json()},
                       {"requests_waiting", holder.waiting},
                       {"waited_ms", waited.count()}});
  }
  return posters;
}

// Traffic between hosts: what connected queue pairs that are alive have sent, by both ends.
Json traffic_json(Core& core) {
  struct Sum {
    std::uint64_t queue_pairs = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  core.qps.for_each([&](const Qp& qp) {
    const Qp* peer = core.qps.find(hca::qp_index(qp.attr.dest_qpn));
    if (qp.attr.dest_qpn == 0 || peer == nullptr || peer->qpn != qp.attr.dest_qpn) return;
    const hca::QpEntry& entry = *core.arena().qp(qp.index);
    const std::string& from = qp.file->session->node->name;
    const std::string& to = peer->file->session->node->name;
    Sum& sum = sums[{from, to}];
    ++sum.queue_pairs;
    sum.messages += entry.requester.messages.load();
    sum.bytes += entry.requester.bytes.load();
    const std::uint64_t atomics = entry.lock.answers.atomics.load();
    const std::uint64_t answers = entry.lock.answers.reads.load() + atomics;
    if (answers == 0) return;
    Sum& back = sums[{to, from}];
    back.messages += answers;
    back.bytes += entry.lock.answers.bytes.load() + atomics * sizeof(std::uint64_t);
  });
  Json traffic = Json::array();
  for (const auto& [ends, sum] : sums) {
    traffic.push_back({{"from", ends.first},
                       {"to", ends.second},
                       {"queue_pairs", sum.queue_pairs},
                       {"messages", sum.messages},
                       {"bytes", sum.bytes}});
  }
  return traffic;
}

}  // namespace

const char* port_state_name(PortState state) {
  switch (state) {
    case PortState::Nop: return "nop";
    case PortState::Down: return "down";
    case PortState::Init: return "init";
    case PortState::Armed: return "armed";
    case PortState::Active: return "active";
    case PortState::ActiveDefer: return "active_defer";
  }
  return "unknown";
}

Json status(Core& core, const control::StatusIn* part) {
  Counts totals{};
  for (const Counts& counts : core.counts) {
    for (std::size_t k = 0; k < kKinds; ++k) totals[k] += counts[k];
  }
  const auto uptime =
      std::chrono::duration_cast<std::chrono::milliseconds>(core.executor.now() - core.started);
  const Heap& heap = core.memory.heap();
  return {
      {"version", 1},
      {"pid", core.memory.host().pid()},
      {"uptime_ms", uptime.count()},
      {"memory",
       {{"used", heap.used()},
        {"limit", heap.limit()},
        {"resident", core.memory.host().used_bytes()}}},
      {"objects", objects_json(totals)},
      {"waiting_for_posters", core.later.waiting_for_posters()},
      {"posters_waited_for", posters_json(core)},
      {"clients", clients_json(core)},
      {"shape", shape_json(core.fabric)},
      {"nodes", nodes_json(core, part)},
      {"switches", core.fabric.graph().switch_count()},
      {"traffic", traffic_json(core)},
      {"blocked", blocked_json(core)},
      {"trace_last", core.trace.last()},
  };
}

std::string status_json(Core& core, const control::StatusIn* part) {
  return json_text(status(core, part));
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace ib::drivers
