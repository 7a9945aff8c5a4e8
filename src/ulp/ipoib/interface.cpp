// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events of an interface: its port, answers, connections and time; the link as the kernel sees
// it.
#include "ulp/ipoib/interface.h"

#include "ulp/ipoib/interface_internal.h"
#include "ulp/ipoib/packets/icmp.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

constexpr unsigned kMembershipQueries = 2;
// The kernel has to see the carrier before it sends reports.
constexpr Duration kFirstQuery = std::chrono::milliseconds(200);
constexpr Duration kSecondQuery = std::chrono::seconds(3);

Identity identity_of(const Settings& settings) {
  Identity own;
  std::array<std::uint8_t, 12> name{};
  put(std::as_writable_bytes(std::span(name)), 0, Be64(settings.port_guid));
  put(std::as_writable_bytes(std::span(name)), 8,
      Be32(std::uint32_t{static_cast<std::uint16_t>(settings.pkey)}));
  own.mac = derive_mac(name, 0);
  own.address = {settings.qpn, {}, settings.connected_mode ? kFlagRc : std::uint8_t{0}};
  own.groups = GroupMapping(settings.scope, settings.pkey);
  own.port_guid = settings.port_guid;
  own.pkey = settings.pkey;
  return own;
}

bool is_usable(const InterfaceParts& parts) {
  return parts.port.active && parts.port.has_pkey && !parts.is_stopped;
}

Trouble trouble_of(const InterfaceParts& parts) {
  if (!parts.port.active) return Trouble::PortDown;
  if (!parts.port.has_pkey) return Trouble::PkeyMissing;
  if (parts.groups.broadcast() != nullptr) return Trouble::None;
  return parts.groups.trouble();
}

// Tells the host what has changed of the carrier and the MTU.
void update_link(InterfaceParts& parts, Instant now) {
  LinkState link = parts.link;
  const GroupParameters* const broadcast = parts.groups.broadcast();
  link.carrier = is_usable(parts) && broadcast != nullptr;
  if (link.carrier) {
    link.mtu = parts.settings.connected_mode ? kConnectedMtu
                                             : mtu_bytes(broadcast->mtu) - kEncapsulationBytes;
  }
  const Trouble trouble = trouble_of(parts);
  // Of the broadcast group, Groups reports itself.
  const auto is_of_port = [](Trouble which) {
    return which == Trouble::PortDown || which == Trouble::PkeyMissing;
  };
  if (trouble != parts.trouble && (is_of_port(trouble) || is_of_port(parts.trouble))) {
    parts.host.report({is_of_port(trouble) ? trouble : Trouble::None, Status::Ok, {}});
  }
  parts.trouble = trouble;
  if (link == parts.link) return;
  if (link.carrier && !parts.link.carrier) {
    parts.queries = {now + kFirstQuery, kMembershipQueries};
  }
  if (!link.carrier) parts.queries = {};
  parts.link = link;
  parts.host.set_link(link);
}

void bring_down(InterfaceParts& parts) {
  parts.connections.clear();
  parts.paths.clear();
  parts.groups.stop();
}

void query_memberships(InterfaceParts& parts, Instant now) {
  if (!parts.queries.at || *parts.queries.at > now) return;
  std::array<std::byte, sizeof(EthernetHeader) + kMostIcmpBytes> frame;
  const Bytes packet = Bytes(frame).subspan(sizeof(EthernetHeader));
  const auto give = [&](std::uint16_t type, const MacAddress& to, std::size_t length) {
    put(Bytes(frame), 0, EthernetHeader{to.bytes, kUnknownMac.bytes, type});
    deliver(parts, {}, ConstBytes(frame).first(sizeof(EthernetHeader) + length));
  };
  give(kTypeIpv4, {{0x01, 0x00, 0x5e, 0, 0, 1}}, write_igmp_query(packet));
  give(kTypeIpv6, {{0x33, 0x33, 0, 0, 0, 1}}, write_mld_query(packet));
  parts.queries.at.reset();
  if (--parts.queries.left > 0) parts.queries.at = now + kSecondQuery;
}

void sweep_neighbours(InterfaceParts& parts, Instant now) {
  const Duration unused = parts.settings.times.neighbour;
  if (!parts.sweep_at) {
    if (!parts.neighbours.all().empty()) parts.sweep_at = now + unused / 4;
    return;
  }
  if (*parts.sweep_at > now) return;
  while (const auto gone = parts.neighbours.take_unused(now - unused)) {
    parts.connections.forget(*gone);
  }
  parts.sweep_at.reset();
  if (!parts.neighbours.all().empty()) parts.sweep_at = now + unused / 4;
}

}  // namespace

InterfaceParts::InterfaceParts(const Settings& given, Host& given_host)
    : settings(given),
      host(given_host),
      own(identity_of(given)),
      budget{given.limits.waiting_packets, given.limits.waiting_bytes},
      neighbours(given.limits.neighbours, own.mac, given.seed),
      paths(settings, host, counters, budget),
      groups(settings, host, counters, budget),
      connections(settings, host, counters, budget) {}

Interface::Interface(const Settings& settings, Host& host)
    : parts_(std::make_unique<InterfaceParts>(settings, host)) {}

Interface::~Interface() = default;

MacAddress Interface::mac() const {
  return parts_->own.mac;
}

HardwareAddress Interface::address() const {
  return parts_->own.address;
}

const Counters& Interface::counters() const {
  return parts_->counters;
}

void Interface::on_frame(Frame frame, Instant now) {
  transmit(*parts_, frame, now);
}

void Interface::on_datagram(const DatagramSource& source, Message message, Instant now) {
  if (parts_->is_stopped) return;
  receive_datagram(*parts_, source, message, now);
  sweep_neighbours(*parts_, now);
}

void Interface::on_connection_message(ConnectionId id, Message message, Instant now) {
  receive_connected(*parts_, id, message, now);
}

void Interface::on_send_error(const Gid& destination, Instant now) {
  ++parts_->counters.send_errors;
  parts_->paths.invalidate(destination, false, now);
}

void Interface::on_path_answer(RequestId id, const Result<PathRecord>& answer, Instant now) {
  if (const auto ready = parts_->paths.on_answer(id, answer, now)) {
    flush_path(*parts_, *ready, now);
  }
}

void Interface::on_join_answer(RequestId id, const Result<GroupParameters>& answer, Instant now) {
  const JoinOutcome outcome = parts_->groups.on_answer(id, answer, now);
  if (outcome.is_broadcast) update_link(*parts_, now);
  if (outcome.ready) flush_group(*parts_, *outcome.ready, now);
}

void Interface::on_connected(ConnectionId id, std::span<const std::byte> private_data,
                             Instant now) {
  if (const auto peer = parts_->connections.on_connected(id, private_data, now)) {
    flush_connection(*parts_, *peer, now);
  }
}

void Interface::on_connection_lost(ConnectionId id, Status reason, Instant now) {
  const auto peer = parts_->connections.on_lost(id, reason, now);
  if (!peer) return;
  // A neighbour that has gone may have come back elsewhere.
  parts_->paths.invalidate(peer->gid, false, now);
  flush_connection(*parts_, *peer, now);
}

Result<AcceptedConnection> Interface::on_connect_request(const IncomingConnection& request,
                                                         Instant now) {
  InterfaceParts& parts = *parts_;
  if (!parts.settings.connected_mode) return Status::NotSupported;
  if (!is_usable(parts)) return Status::InvalidState;
  if (request.private_data.size() < sizeof(ConnectionData)) return Status::Malformed;
  const auto data = get<ConnectionData>(request.private_data);
  const HardwareAddress peer{Qpn{std::uint32_t{data.qpn}}, request.gid, kFlagRc};
  if (!is_valid_unicast(peer) || peer.is_same_end(parts.own.address)) return Status::Malformed;
  IB_TRY(id, parts.connections.on_request(peer, now));
  heard(parts, peer, now);
  sweep_neighbours(parts, now);
  return AcceptedConnection{
      id, {static_cast<std::uint32_t>(parts.settings.qpn), kConnectionBufferBytes}};
}

void Interface::on_port(const PortState& port, Instant now) {
  InterfaceParts& parts = *parts_;
  const PortState before = parts.port;
  const bool was_usable = is_usable(parts);
  parts.port = port;
  parts.own.address.gid = port.gid;
  const bool is_same_link =
      before.gid == port.gid && before.mtu == port.mtu && before.rate == port.rate;
  const bool goes_on = was_usable && is_usable(parts) && is_same_link;
  if (was_usable && !goes_on) {
    bring_down(parts);
    // The kernel sees the interruption, too.
    if (is_usable(parts)) update_link(parts, now);
  }
  if (is_usable(parts) && !goes_on) parts.groups.start(port, now);
  if (goes_on && before.lid != port.lid) {
    parts.connections.clear();
    parts.paths.make_stale(now);
    parts.groups.join_all_again(now);
  }
  update_link(parts, now);
}

void Interface::on_port_event(PortEvent event, Instant now) {
  switch (event) {
    case PortEvent::SubnetManagerChanged:
    case PortEvent::ClientReregister:
      parts_->paths.make_stale(now);
      parts_->groups.join_all_again(now);
      break;
    case PortEvent::PathsChanged: parts_->paths.make_stale(now); break;
  }
}

void Interface::on_path_changed(const Gid& destination, Instant now) {
  parts_->paths.invalidate(destination, true, now);
}

void Interface::on_time(Instant now) {
  InterfaceParts& parts = *parts_;
  parts.paths.on_time(now);
  if (parts.groups.on_time(now)) update_link(parts, now);
  parts.connections.on_time(now);
  query_memberships(parts, now);
  sweep_neighbours(parts, now);
}

std::optional<Instant> Interface::next_deadline() const {
  NextDeadline next;
  next.at(parts_->paths.deadline());
  next.at(parts_->groups.deadline());
  next.at(parts_->connections.deadline());
  next.at(parts_->queries.at);
  next.at(parts_->sweep_at);
  return next.get();
}

void Interface::stop(Instant now) {
  InterfaceParts& parts = *parts_;
  if (parts.is_stopped) return;
  parts.is_stopped = true;
  bring_down(parts);
  update_link(parts, now);
}

Snapshot Interface::snapshot(Instant now) const {
  const InterfaceParts& parts = *parts_;
  Snapshot snapshot;
  snapshot.link = parts.link;
  snapshot.trouble = parts.trouble;
  snapshot.status = parts.groups.status();
  snapshot.address = parts.own.address;
  snapshot.mac = parts.own.mac;
  snapshot.broadcast_group = parts.own.groups.broadcast();
  for (const Neighbour& neighbour : parts.neighbours.all()) {
    snapshot.neighbours.push_back({neighbour.address, neighbour.mac, neighbour.ipv4, neighbour.ipv6,
                                   neighbour.source, now - neighbour.last_used});
  }
  snapshot.paths = parts.paths.rows(now);
  snapshot.groups = parts.groups.rows();
  snapshot.connections = parts.connections.rows();
  snapshot.counters = parts.counters;
  snapshot.counters.neighbours_evicted = parts.neighbours.evicted();
  return snapshot;
}

}  // namespace ib::ipoib
