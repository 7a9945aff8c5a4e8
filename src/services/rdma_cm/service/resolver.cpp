// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/resolver.h"

#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/words/words.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

using ucma::Event;

std::uint16_t be16(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
}

// A PathRecord as the SA sends it [IBA1 15.2.5.16].
Path read_record(std::span<const std::uint8_t, 64> wire, Path path) {
  std::copy_n(wire.begin() + 8, path.dgid.size(), path.dgid.begin());
  std::copy_n(wire.begin() + 24, path.sgid.size(), path.sgid.begin());
  path.dlid = be16(wire.subspan(40));
  path.slid = be16(wire.subspan(42));
  path.flow_label =
      (std::uint32_t{wire[44]} << 16 | std::uint32_t{wire[45]} << 8 | wire[46]) & 0xfffff;
  path.hop_limit = wire[47];
  path.traffic_class = wire[48];
  path.pkey = be16(wire.subspan(50));
  path.sl = wire[53] & 0xf;
  path.mtu = static_cast<verbs::Mtu>(wire[54] & 0x3f);
  path.rate = wire[55] & 0x3f;
  path.packet_life_time = wire[56] & 0x3f;
  return path;
}

Way way_of(const fabric::Fabric& fabric, const Id& id) {
  const std::uint16_t pkey = id.destination.family == Family::Ib ? id.source.pkey : id.pkey;
  return {id.port, id.peer_port, id.source, id.destination, pkey, fabric.packet_life_time()};
}

}  // namespace

Error Resolver::resolve_address(Id& id, const std::optional<EndpointAddress>& source,
                                EndpointAddress destination) {
  if (id.events.size() >= EventQueue::kMaxUnread) return Error::NoMemory;
  if (id.state == IdState::Idle) {
    if (source && source->family != destination.family) return Error::Invalid;
    EndpointAddress own = source.value_or(any_address(destination.family));
    if (!source) own.pkey = destination.pkey;
    const Error error = binder_.bind(id, own);
    if (error != Error::None) return error;
  }
  if (id.state != IdState::AddrBound || id.source.family != destination.family) {
    return Error::Invalid;
  }
  Way way;
  const fabric::Node& node = fabric_.nodes()[id.node];
  const Error error = find_way(fabric_, node, id.source, destination, way);
  id.destination = destination;
  if (error != Error::None) {
    trace_.report(id, "cannot reach " + place_text(fabric_, destination) + ": ",
                  no_way_text(fabric_, node, id.source, destination, error));
    queue(id, Event::AddrError, ucma::negative(error));
    return Error::None;
  }
  id.source.ip = way.source.ip;
  id.source.scope = way.source.scope;
  id.source.pkey = way.source.pkey;
  if (destination.family != Family::Ib) id.pkey = way.pkey;
  id.destination = way.destination;
  id.port = way.from;
  id.peer_port = way.to;
  id.state = IdState::AddrResolved;
  queue(id, Event::AddrResolved, 0);
  return Error::None;
}

Error Resolver::resolve_route(Id& id, std::uint32_t timeout_ms) {
  if (id.events.size() >= EventQueue::kMaxUnread) return Error::NoMemory;
  if (id.state != IdState::AddrResolved) return Error::Invalid;
  const bool is_unknown = id.peer_port == nullptr && id.destination.family == Family::Ib &&
                          !verbs::is_multicast(id.destination.ip);
  if (id.peer_port == nullptr && !is_unknown) return Error::Invalid;
  id.state = IdState::RouteQuery;
  const std::uint32_t number = id.number;
  if (is_unknown) {
    on_route(number, Error::HostUnreachable, "no InfiniBand port has this GID", {});
    return Error::None;
  }
  auto question =
      routes_.find_path(way_of(fabric_, id), id.tos, std::chrono::milliseconds(timeout_ms),
                        [this, number](Error error, std::string_view reason, const Path& path) {
                          on_route(number, error, reason, path);
                        });
  id.question = std::move(question);
  return Error::None;
}

void Resolver::on_route(std::uint32_t number, Error error, std::string_view reason,
                        const Path& path) {
  Id* const found = ids_.find(number);
  if (found == nullptr || found->state != IdState::RouteQuery) return;
  Id& id = *found;
  std::string obstacle;
  if (error == Error::None &&
      (!is_usable(fabric_, *id.port) || !is_usable(fabric_, *id.peer_port))) {
    error = Error::HostUnreachable;
    obstacle = obstacle_text(fabric_, *id.port, id.peer_port);
    reason = obstacle;
  }
  if (error != Error::None) {
    id.state = IdState::AddrResolved;
    trace_.report(id, "no route to " + place_text(fabric_, id.destination) + ": ", reason);
    return queue(id, Event::RouteError, ucma::negative(error));
  }
  id.path = path;
  id.state = IdState::RouteResolved;
  queue(id, Event::RouteResolved, 0);
}

Error Resolver::set_path(Id& id, std::span<const std::uint8_t> value) {
  constexpr std::uint32_t kPrimary = 1u | 1u << 1 | 1u << 3 | 1u << 5;
  constexpr std::size_t kRecord = sizeof(ucma::PathRecData);
  if (value.empty() || value.size() % kRecord != 0) return Error::Invalid;
  for (; !value.empty(); value = value.subspan(kRecord)) {
    ucma::PathRecData record;
    std::memcpy(&record, value.data(), kRecord);
    if (record.flags != kPrimary) continue;
    if (id.peer_port == nullptr || id.state != IdState::AddrResolved) return Error::Invalid;
    auto path = find_path(way_of(fabric_, id), id.tos);
    if (!path) return Error::Invalid;
    *path = read_record(record.path_rec, *path);
    const auto& pkeys = id.port->pkeys;
    const auto at = std::find(pkeys.begin(), pkeys.end(), path->pkey);
    if (at == pkeys.end() || path->pkey == 0) return Error::Invalid;
    path->pkey_index = static_cast<std::uint16_t>(at - pkeys.begin());
    id.path = path;
    id.state = IdState::RouteResolved;
    queue(id, Event::RouteResolved, 0);
    return Error::None;
  }
  return Error::Invalid;
}

}  // namespace ib::services::rdma_cm
