// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/connections_json.h"

#include "services/streams/stream_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace ib::softib {
namespace {

using Json = nlohmann::ordered_json;
using services::rdma_cm::EndpointAddress;
using services::rdma_cm::Family;
using services::rdma_cm::Listing;
using verbs::QpType;

std::string address(const EndpointAddress& address) {
  return address.family == Family::None ? "" : services::rdma_cm::text_of(address);
}

const char* type_name(QpType type) {
  switch (type) {
    case QpType::Smi: return "SMI";
    case QpType::Gsi: return "GSI";
    case QpType::Rc: return "RC";
    case QpType::Uc: return "UC";
    case QpType::Ud: return "UD";
    case QpType::XrcSend:
    case QpType::XrcRecv: return "XRC";
  }
  return "";
}

Json owner_json(const Listing& one, const fabric::Fabric& fabric) {
  Json json = {{"node", fabric.nodes()[one.node].name}, {"program", one.program}};
  if (one.is_driver) {
    json["is_driver"] = true;
  } else {
    json["pid"] = one.pid;
  }
  return json;
}

Json groups_json(const Listing& one) {
  Json groups = Json::array();
  for (const verbs::Gid& group : one.groups) groups.push_back(verbs::address_text(group));
  return groups;
}

// Keys that are there only while they mean something.
void add_details(Json& json, const Listing& one) {
  if (one.port != nullptr) json["port"] = one.port->number;
  if (one.qpn != 0) json["qpn"] = fmt::format("{:#x}", one.qpn);
  if (one.peer_qpn != 0) json["peer_qpn"] = fmt::format("{:#x}", one.peer_qpn);
  if (one.progress.state[0] != '\0') json["cm_state"] = one.progress.state;
  if (one.progress.waiting.times_sent > 0) {
    json["times_sent"] = one.progress.waiting.times_sent;
    json["retries_left"] = one.progress.waiting.retries_left;
  }
  if (!one.waits_for.empty()) json["waits_for"] = one.waits_for;
  if (one.backlog > 0) {
    json["backlog"] = one.backlog;
    json["backlog_used"] = one.backlog_used;
  }
  if (!one.groups.empty()) json["groups"] = groups_json(one);
}

}  // namespace

Json connections_json(const fabric::Fabric& fabric, const std::vector<Listing>& all) {
  Json array = Json::array();
  for (const Listing& one : all) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(one.age);
    Json json = {{"node", fabric.nodes()[one.node].name},
                 {"pid", one.pid},
                 {"program", one.program},
                 {"port_space", one.space},
                 {"state", one.state},
                 {"local", address(one.local)},
                 {"peer", address(one.peer)},
                 {"events_waiting", one.events_waiting},
                 {"is_driver", one.is_driver},
                 {"qp_type", type_name(one.qp_type)},
                 {"service_id", fmt::format("{:#018x}", one.service_id)},
                 {"age_ms", age.count()}};
    if (one.port != nullptr) json["hca"] = fabric.hca_of(*one.port)->name;
    add_details(json, one);
    if (one.other_end) json["other_end"] = owner_json(all[*one.other_end], fabric);
    array.push_back(std::move(json));
  }
  return array;
}

namespace {

using services::StreamListing;

// The process that has worked with the end last: it may have inherited it.
StreamListing::End with_last_user(StreamListing::End end, const drivers::Core& core) {
  const std::uint32_t slot = end.last_slot - 1;  // 0: none, and out of range
  const drivers::Session* session = slot < core.by_slot.size() ? core.by_slot[slot] : nullptr;
  if (session == nullptr) return end;
  end.pid = session->pid;
  end.program = session->program;
  return end;
}

Json stream_row(const StreamListing& one, const StreamListing::End& own,
                const fabric::Fabric& fabric) {
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(one.age);
  Json json = {{"node", fabric.nodes()[own.node].name},
               {"pid", own.pid},
               {"program", own.program},
               {"port_space", "SDP"},
               {"state", one.state},
               {"local", own.name.port == 0 ? "" : services::text_of(own.name)},
               {"peer", ""},
               {"events_waiting", 0},
               {"is_driver", false},
               {"qp_type", "RC"},
               {"service_id", fmt::format("{:#018x}", one.service_id)},
               {"age_ms", age.count()}};
  return json;
}

void add_ends(Json& rows, const StreamListing& one, const drivers::Core& core) {
  const fabric::Fabric& fabric = core.fabric;
  const std::array<StreamListing::End, 2> ends{with_last_user(one.ends[0], core),
                                               with_last_user(one.ends[1], core)};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const StreamListing::End& own = ends[i];
    const StreamListing::End& peer = ends[1 - i];
    if (own.pid == 0) continue;  // nobody has accepted it yet
    Json json = stream_row(one, own, fabric);
    if (peer.name.port != 0) json["peer"] = services::text_of(peer.name);
    if (own.port != nullptr) {
      json["hca"] = fabric.hca_of(*own.port)->name;
      json["port"] = own.port->number;
    }
    if (own.qpn != 0) json["qpn"] = fmt::format("{:#x}", own.qpn);
    if (peer.qpn != 0) json["peer_qpn"] = fmt::format("{:#x}", peer.qpn);
    json["stream"] = one.stream;
    json["bytes_sent"] = own.bytes_sent;
    json["bytes_received"] = own.bytes_received;
    if (!one.waits_for.empty()) json["waits_for"] = one.waits_for;
    if (peer.pid != 0) {
      json["other_end"] = {
          {"node", fabric.nodes()[peer.node].name}, {"program", peer.program}, {"pid", peer.pid}};
    }
    rows.push_back(std::move(json));
  }
}

}  // namespace

void add_streams(Json& rows, const drivers::Core& core, const std::vector<StreamListing>& all) {
  for (const StreamListing& one : all) {
    if (one.is_listener) {
      rows.push_back(stream_row(one, one.ends[0], core.fabric));
    } else {
      add_ends(rows, one, core);
    }
  }
}

Json programs_json(const DaemonClients& present, std::uint32_t own_pid, Json& clients) {
  std::map<std::uint32_t, DaemonClients::Program> programs = present.programs();
  const std::vector<std::uint32_t> pids = present.pids();
  std::set<std::uint32_t> with_hca;
  for (Json& client : clients) {
    const auto pid = client["pid"].get<std::uint32_t>();
    if (pid == own_pid) {
      client["is_driver"] = true;
      continue;
    }
    if (std::find(pids.begin(), pids.end(), pid) == pids.end()) client["ending"] = true;
    if (client["ending"] == true) continue;
    with_hca.insert(pid);
    programs[pid] = {client["program"], client["node"]};
  }
  Json list = Json::array();
  for (const auto& [pid, program] : programs) {
    list.push_back({{"pid", pid},
                    {"program", program.name},
                    {"node", program.node.empty() ? Json() : Json(program.node)},
                    {"has_hca", with_hca.contains(pid)}});
  }
  return list;
}

}  // namespace ib::softib
