// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ids before they connect: making them, addresses, routes, listening, options.
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/service/service.h"
#include "services/rdma_cm/words/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ib::services::rdma_cm {
namespace {

using ucma::Event;

// The queue pairs of a port space; of "IB" the program says which.
std::optional<verbs::QpType> qp_type_of(PortSpace space, std::uint8_t wanted) {
  switch (space) {
    case PortSpace::Tcp: return verbs::QpType::Rc;
    case PortSpace::Udp:
    case PortSpace::Ipoib: return verbs::QpType::Ud;
    case PortSpace::Ib: break;
  }
  const auto type = static_cast<verbs::QpType>(wanted);
  switch (type) {
    case verbs::QpType::Rc:
    case verbs::QpType::Uc:
    case verbs::QpType::Ud:
    case verbs::QpType::XrcSend:
    case verbs::QpType::XrcRecv: return type;
    case verbs::QpType::Smi:
    case verbs::QpType::Gsi: break;
  }
  return std::nullopt;
}

template <class T>
std::optional<T> value_of(std::span<const std::uint8_t> bytes) {
  T value{};
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

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

Way way_of(const Id& id) {
  const std::uint16_t pkey = id.destination.family == Family::Ib ? id.source.pkey : 0;
  return {id.port, id.peer_port, id.source, id.destination, pkey};
}

// The address that an AF_IB id has with its port: the whole service id.
void complete(EndpointAddress& address, PortSpace space) {
  if (address.family != Family::Ib) return;
  const std::uint64_t beyond_port = service_id(space, std::uint16_t{0});
  address.service_id = beyond_port | address.port;
  address.service_mask = ~std::uint64_t{0};
}

}  // namespace

Error Service::create_id(File& file, const ucma::CreateId& in, std::uint32_t& number) {
  if (!is_port_space(in.ps)) return Error::Invalid;
  const auto space = static_cast<PortSpace>(in.ps);
  const auto type = qp_type_of(space, in.qp_type);
  if (!type) return Error::Invalid;
  if (file.ids.size() >= kMaxIdsOfFile) return Error::NoMemory;
  Id& id = make_id(file);
  id.uid = in.uid;
  id.space = space;
  id.qp_type = *type;
  number = id.number;
  return Error::None;
}

Error Service::bind(Id& id, EndpointAddress address) {
  if (id.state != IdState::Idle) return Error::Invalid;
  const fabric::Node& node = fabric_.nodes()[id.node];
  const fabric::Port* port = nullptr;
  if (!takes_any_address(address)) {
    if (!has_address(fabric_, node, address)) {
      trace(id, "cannot bind: ", not_own_text(node, address));
      return address.family == Family::Ib ? Error::NoDevice : Error::NoAddress;
    }
    port = port_of(fabric_, node, address);
    if (port == nullptr) {
      trace(id, fmt::format("cannot bind to {}: ", text_of(address)),
            no_way_text(fabric_, node, address, address, Error::NoDevice));
      return Error::NoDevice;
    }
  }
  const auto space =
      address.family == Family::Ib ? port_space_of(id.space, address) : std::optional(id.space);
  if (!space) return Error::NoProtocol;
  PortOwner owner;
  owner.id = id.number;
  owner.address = address;
  owner.reuse = id.reuse;
  owner.af_only = id.af_only || address.family == Family::Ipv4;
  const Error error = ports_.bind(id.node, *space, owner);
  id.port_space = *space;
  if (error != Error::None) return address_in_use(id, error, address);
  complete(owner.address, *space);
  id.af_only = owner.af_only;
  id.source = owner.address;
  id.has_port = true;
  id.port = port;
  id.state = IdState::AddrBound;
  return Error::None;
}

Error Service::resolve_address(Id& id, const std::optional<EndpointAddress>& source,
                               EndpointAddress destination) {
  if (id.events_pending >= kMaxUnread) return Error::NoMemory;
  if (id.state == IdState::Idle) {
    if (source && source->family != destination.family) return Error::Invalid;
    EndpointAddress own = source.value_or(any_address(destination.family));
    if (!source) own.pkey = destination.pkey;
    const Error error = bind(id, own);
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
    trace(id, "cannot reach " + place_text(fabric_, destination) + ": ",
          no_way_text(fabric_, node, id.source, destination, error));
    queue(id, Event::AddrError, ucma::negative(error));
    return Error::None;
  }
  id.source.ip = way.source.ip;
  id.source.pkey = way.source.pkey;
  id.destination = way.destination;
  id.port = way.from;
  id.peer_port = way.to;
  id.state = IdState::AddrResolved;
  queue(id, Event::AddrResolved, 0);
  return Error::None;
}

Error Service::resolve_route(Id& id, std::uint32_t timeout_ms) {
  if (id.events_pending >= kMaxUnread) return Error::NoMemory;
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
      routes_.find_path(way_of(id), id.tos, std::chrono::milliseconds(timeout_ms),
                        [this, number](Error error, std::string_view reason, const Path& path) {
                          on_route(number, error, reason, path);
                        });
  id.question = std::move(question);
  return Error::None;
}

void Service::on_route(std::uint32_t number, Error error, std::string_view reason,
                       const Path& path) {
  const auto at = ids_.find(number);
  if (at == ids_.end() || at->second->state != IdState::RouteQuery) return;
  Id& id = *at->second;
  std::string obstacle;
  if (error == Error::None &&
      (!is_usable(fabric_, *id.port) || !is_usable(fabric_, *id.peer_port))) {
    error = Error::HostUnreachable;
    obstacle = obstacle_text(fabric_, *id.port, id.peer_port);
    reason = obstacle;
  }
  if (error != Error::None) {
    id.state = IdState::AddrResolved;
    trace(id, "no route to " + place_text(fabric_, id.destination) + ": ", reason);
    return queue(id, Event::RouteError, ucma::negative(error));
  }
  id.path = path;
  id.state = IdState::RouteResolved;
  queue(id, Event::RouteResolved, 0);
}

Error Service::listen(Id& id, std::uint32_t backlog) {
  if (id.state == IdState::Idle) {
    const Error error = bind(id, any_address(Family::Ipv4));
    if (error != Error::None) return error;
  }
  if (id.state != IdState::AddrBound) return Error::Invalid;
  const Error error = ports_.listen(id.node, id.port_space, id.source.port, id.number);
  if (error != Error::None) return address_in_use(id, error, id.source);
  id.reuse = false;
  id.backlog = backlog > 0 && backlog < kMaxBacklog ? backlog : kMaxBacklog;
  id.requests = cm::WaitingRoom::of_backlog(id.backlog);
  id.state = IdState::Listen;
  return Error::None;
}

Error Service::set_option(Id& id, const ucma::SetOption& in, std::span<const std::uint8_t> value) {
  switch (static_cast<ucma::Level>(in.level)) {
    case ucma::Level::Id: return set_id_option(id, in.optname, value);
    case ucma::Level::Ib:
      return in.optname == ucma::kOptionIbPath ? set_path(id, value) : Error::NotImplemented;
  }
  return Error::NotImplemented;
}

Error Service::set_id_option(Id& id, std::uint32_t name, std::span<const std::uint8_t> value) {
  const auto byte = value_of<std::uint8_t>(value);
  const auto number = value_of<std::int32_t>(value);
  switch (name) {
    case ucma::kOptionTos:
      if (!byte) return Error::Invalid;
      id.tos = *byte;
      return Error::None;
    case ucma::kOptionReuseAddr:
      if (!number) return Error::Invalid;
      if (id.state != IdState::Idle && (*number == 0 || id.state == IdState::Listen)) {
        return Error::Invalid;
      }
      id.reuse = *number != 0;
      if (id.has_port)
        ports_.set_reuse(id.node, id.port_space, id.source.port, id.number, id.reuse);
      return Error::None;
    case ucma::kOptionAfOnly:
      if (!number) return Error::Invalid;
      if (id.state != IdState::Idle && id.state != IdState::AddrBound) return Error::Invalid;
      id.af_only = *number != 0;
      return Error::None;
    case ucma::kOptionAckTimeout:
      if (!byte) return Error::Invalid;
      if (id.qp_type != verbs::QpType::Rc && id.qp_type != verbs::QpType::XrcSend) {
        return Error::Invalid;
      }
      id.ack_timeout = *byte & 0x1f;
      return Error::None;
    default: return Error::NotImplemented;
  }
}

// The program brings the path: the first record that leads both ways.
Error Service::set_path(Id& id, std::span<const std::uint8_t> value) {
  constexpr std::uint32_t kPrimary = 1u | 1u << 1 | 1u << 3 | 1u << 5;
  constexpr std::size_t kRecord = sizeof(ucma::PathRecData);
  if (value.empty() || value.size() % kRecord != 0) return Error::Invalid;
  for (; !value.empty(); value = value.subspan(kRecord)) {
    ucma::PathRecData record;
    std::memcpy(&record, value.data(), kRecord);
    if (record.flags != kPrimary) continue;
    if (id.peer_port == nullptr || id.state != IdState::AddrResolved) return Error::Invalid;
    auto path = find_path(way_of(id), id.tos);
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
