// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine's snapshot of each interface, row by row, when softib-net sends a request for it.
// Keys about trouble are only there when there is some.
#include "ipoib/report.h"

#include "base/buffers.h"
#include "ipoib/adapter.h"
#include "verbs/gid.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <span>
#include <unordered_map>

namespace ib::ipoib::driver {

namespace {

using Json = nlohmann::ordered_json;

std::string colons(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", static_cast<unsigned>(each));
  }
  return text;
}

// As `ip link` shows it: 20 bytes, "80:00:04:2b:fe:80:..."
std::string text_of(const HardwareAddress& address) {
  const HardwareAddressBytes bytes = to_bytes(address);
  return colons(bytes_of(bytes));
}
std::string text_of(const MacAddress& mac) {
  return colons(std::as_bytes(std::span(mac.bytes)));
}
std::string text_of(const Gid& gid) {
  return verbs::address_text(gid.bytes);
}
std::string text_of(const Ipv4Address& ip) {
  return fmt::format("{}.{}.{}.{}", ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]);
}

// Nothing unless something is wrong.
void add_trouble(Json& json, Trouble trouble, Status status) {
  if (trouble == Trouble::None) return;
  json["trouble"] = trouble_text(trouble);
  if (status != Status::Ok) json["status"] = status_text(status);
}

const char* name_of(NeighbourRow::Source source) {
  switch (source) {
    case NeighbourRow::Source::Arp: return "arp";
    case NeighbourRow::Source::NeighbourDiscovery: return "nd";
    case NeighbourRow::Source::Packet: return "packet";
  }
  return "";
}
const char* name_of(PathRow::State state) {
  switch (state) {
    case PathRow::State::Resolving: return "resolving";
    case PathRow::State::Resolved: return "resolved";
    case PathRow::State::Refreshing: return "refreshing";
    case PathRow::State::Failed: return "failed";
  }
  return "";
}
const char* name_of(GroupRow::State state) {
  switch (state) {
    case GroupRow::State::Waiting: return "waiting";
    case GroupRow::State::Joining: return "joining";
    case GroupRow::State::Joined: return "joined";
    case GroupRow::State::Rejoining: return "rejoining";
    case GroupRow::State::Failed: return "failed";
  }
  return "";
}
const char* name_of(ConnectionRow::State state) {
  switch (state) {
    case ConnectionRow::State::Connecting: return "connecting";
    case ConnectionRow::State::Established: return "established";
    case ConnectionRow::State::Refused: return "refused";
  }
  return "";
}

bool has_record(const PathRow& path) {
  return path.state == PathRow::State::Resolved || path.state == PathRow::State::Refreshing;
}

Json neighbours_json(const Snapshot& snapshot) {
  std::unordered_map<Gid, const PathRow*> paths;
  for (const PathRow& path : snapshot.paths) paths[path.gid] = &path;
  Json rows = Json::array();
  for (const NeighbourRow& row : snapshot.neighbours) {
    Json json = {{"address", text_of(row.address)},
                 {"qpn", fmt::format("{:#x}", static_cast<std::uint32_t>(row.address.qpn))},
                 {"mode", row.address.takes_rc() ? "connected" : "datagram"},
                 {"mac", text_of(row.mac)}};
    if (row.ipv4) json["ipv4"] = text_of(*row.ipv4);
    if (row.ipv6) json["ipv6"] = verbs::address_text(row.ipv6->bytes);
    json["source"] = name_of(row.source);
    json["unused_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(row.unused).count();
    if (const auto path = paths.find(row.address.gid); path != paths.end()) {
      json["path"] = name_of(path->second->state);
      if (has_record(*path->second)) {
        json["lid"] = static_cast<std::uint16_t>(path->second->record.dlid);
      }
    }
    rows.push_back(std::move(json));
  }
  return rows;
}

Json paths_json(const Snapshot& snapshot) {
  Json rows = Json::array();
  for (const PathRow& row : snapshot.paths) {
    Json json = {{"gid", text_of(row.gid)}, {"state", name_of(row.state)}};
    if (has_record(row)) {
      json["lid"] = static_cast<std::uint16_t>(row.record.dlid);
      json["sl"] = row.record.service_level;
      json["mtu"] = mtu_bytes(row.record.mtu);
      json["rate"] = row.record.rate;
      json["is_global"] = row.record.is_global;
    }
    add_trouble(json, row.trouble, row.status);
    json["attempts"] = row.attempts;
    json["waiting_packets"] = row.waiting_packets;
    rows.push_back(std::move(json));
  }
  return rows;
}

Json groups_json(const Snapshot& snapshot) {
  Json rows = Json::array();
  for (const GroupRow& row : snapshot.groups) {
    Json json = {{"mgid", text_of(row.mgid)},
                 {"membership", row.membership == Membership::Full ? "full" : "send_only"},
                 {"state", name_of(row.state)},
                 {"attached", row.attached}};
    if (row.state == GroupRow::State::Joined || row.state == GroupRow::State::Rejoining) {
      json["mlid"] = fmt::format("{:#x}", static_cast<std::uint16_t>(row.parameters.mlid));
      json["qkey"] = fmt::format("{:#x}", static_cast<std::uint32_t>(row.parameters.qkey));
      json["mtu"] = mtu_bytes(row.parameters.mtu);
      json["rate"] = row.parameters.rate;
      json["sl"] = row.parameters.service_level;
    }
    add_trouble(json, row.trouble, row.status);
    json["attempts"] = row.attempts;
    json["waiting_packets"] = row.waiting_packets;
    rows.push_back(std::move(json));
  }
  return rows;
}

Json connections_json(const Snapshot& snapshot) {
  Json rows = Json::array();
  for (const ConnectionRow& row : snapshot.connections) {
    rows.push_back({{"peer", text_of(row.peer)},
                    {"half", row.is_active ? "active" : "passive"},
                    {"state", name_of(row.state)},
                    {"mtu", row.mtu},
                    {"waiting_packets", row.waiting_packets}});
  }
  return rows;
}

Json counters_json(const Counters& counters) {
  Json json = {{"frames_from_kernel", counters.frames_from_kernel},
               {"bytes_from_kernel", counters.bytes_from_kernel},
               {"frames_to_kernel", counters.frames_to_kernel},
               {"bytes_to_kernel", counters.bytes_to_kernel},
               {"datagrams_sent", counters.datagrams_sent},
               {"datagrams_received", counters.datagrams_received},
               {"connection_messages_sent", counters.connection_messages_sent},
               {"connection_messages_received", counters.connection_messages_received},
               {"large_sent", counters.large_sent},
               {"segmented", counters.segmented},
               {"segments", counters.segments},
               {"fragmented", counters.fragmented},
               {"too_big_reports", counters.too_big_reports},
               {"path_queries", counters.path_queries},
               {"join_requests", counters.join_requests},
               {"connect_requests", counters.connect_requests},
               {"neighbours_evicted", counters.neighbours_evicted},
               {"send_errors", counters.send_errors}};
  Json drops = Json::object();
  for (std::size_t i = 0; i < kDropCount; ++i) {
    if (counters.drops[i] != 0) drops[drop_text(static_cast<Drop>(i))] = counters.drops[i];
  }
  json["drops"] = std::move(drops);
  return json;
}

Json interface_json(const std::string& hca, const PortInterface& interface) {
  const Snapshot snapshot = interface.snapshot();
  const auto pkey = static_cast<std::uint16_t>(interface.station().pkey);
  Json json = {{"name", interface.name()},
               {"hca", hca},
               {"port", interface.station().port},
               {"pkey", fmt::format("{:#06x}", pkey)},
               {"mode", interface.connected_mode() ? "connected" : "datagram"},
               {"mtu", interface.mtu()},
               {"carrier", snapshot.link.carrier},
               {"address", text_of(snapshot.address)},
               {"mac", text_of(snapshot.mac)},
               {"broadcast_group", text_of(snapshot.broadcast_group)}};
  add_trouble(json, snapshot.trouble, snapshot.status);
  json["neighbours"] = neighbours_json(snapshot);
  json["paths"] = paths_json(snapshot);
  json["groups"] = groups_json(snapshot);
  json["connections"] = connections_json(snapshot);
  json["counters"] = counters_json(snapshot.counters);
  return json;
}

}  // namespace

std::string report_of(const std::vector<std::unique_ptr<Adapter>>& adapters) {
  Json interfaces = Json::array();
  for (const auto& adapter : adapters) {
    for (const auto& one : adapter->interfaces()) {
      interfaces.push_back(interface_json(adapter->name(), *one));
    }
  }
  return Json{{"interfaces", std::move(interfaces)}}.dump();
}

}  // namespace ib::ipoib::driver
