// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message to a neighbour or group: its path or parameters, connection or datagram, whole, in
// segments, in fragments, or too big.
#include "ulp/ipoib/interface_internal.h"
#include "ulp/ipoib/packets/checksum.h"
#include "ulp/ipoib/packets/icmp.h"
#include "ulp/ipoib/packets/segmentation.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

constexpr std::size_t kIp = sizeof(Encapsulation);

// How a message goes: on a connection, or by datagrams to an address vector.
struct Way {
  std::optional<ConnectionId> connection;
  AddressVector vector;
  Qpn qpn{};
  Qkey qkey{};
  std::size_t mtu = 0;                         // largest IP packet
  const HardwareAddress* neighbour = nullptr;  // null: a group
};

// Returns false if the host did not take it.
bool post(InterfaceParts& parts, const Way& way, const Outgoing& message) {
  if (way.connection) {
    if (!parts.host.send_on_connection(*way.connection, message)) return false;
    ++parts.counters.connection_messages_sent;
    return true;
  }
  if (!parts.host.send_datagram(way.vector, way.qpn, way.qkey, message)) return false;
  ++parts.counters.datagrams_sent;
  return true;
}

// Posts what a Segmenter or Fragmenter makes; returns how many. The rest of a packet of which one
// piece was not taken would be of no use.
template <class Pieces>
std::uint64_t post_pieces(InterfaceParts& parts, const Way& way, Pieces& pieces) {
  std::uint64_t count = 0;
  while (const auto piece = pieces.next()) {
    if (!post(parts, way, *piece)) {
      parts.counters.drop(Drop::SendQueueFull);
      break;
    }
    ++count;
  }
  return count;
}

bool takes_large(InterfaceParts& parts, const Way& way) {
  return way.neighbour != nullptr && parts.host.takes_large(*way.neighbour);
}

void send_large(InterfaceParts& parts, const Way& way, ConstBytes message, const Offload& offload) {
  auto segments = Segmenter::create(message, offload, way.mtu);
  if (!segments) {
    return parts.counters.drop(segments.error() == Status::LimitExceeded ? Drop::TooBig
                                                                         : Drop::FrameMalformed);
  }
  // A receive buffer of a connection has the size of one message.
  const bool has_room = !way.connection || message.size() - kIp <= way.mtu;
  if (has_room && takes_large(parts, way)) {
    Offload rest = offload;
    rest.segment_size = segments->segment_size();
    if (!post(parts, way, {message, {}, rest})) return parts.counters.drop(Drop::SendQueueFull);
    ++parts.counters.large_sent;
    return;
  }
  ++parts.counters.segmented;
  parts.counters.segments += post_pieces(parts, way, *segments);
}

// Returns false if the packet is larger than the way takes; nothing was sent then.
bool send_whole(InterfaceParts& parts, const Way& way, Bytes message, const Offload& offload) {
  if (offload.segmentation != Segmentation::None) {
    send_large(parts, way, message, offload);
    return true;
  }
  if (message.size() - kIp > way.mtu) return false;
  Outgoing outgoing{message, {}, {}};
  if (offload.needs_checksum) {
    if (takes_large(parts, way)) {
      outgoing.offload = offload;
    } else {
      complete_checksum(message.subspan(kIp), offload);
    }
  }
  if (!post(parts, way, outgoing)) parts.counters.drop(Drop::SendQueueFull);
  return true;
}

void report_too_big(InterfaceParts& parts, const Way& way, ConstBytes message, Instant now) {
  parts.counters.drop(Drop::TooBig);
  std::array<std::byte, sizeof(EthernetHeader) + kMostIcmpBytes> frame;
  const std::uint16_t type = get<Encapsulation>(message).type;
  const std::size_t length = write_too_big(type, message.subspan(kIp), way.mtu,
                                           Bytes(frame).subspan(sizeof(EthernetHeader)));
  if (length == 0) return;
  const Neighbour* const neighbour =
      way.neighbour != nullptr ? parts.neighbours.find(*way.neighbour, now) : nullptr;
  const MacAddress source = neighbour != nullptr ? neighbour->mac : kUnknownMac;
  put(Bytes(frame), 0, EthernetHeader{parts.own.mac.bytes, source.bytes, type});
  ++parts.counters.too_big_reports;
  deliver(parts, {}, ConstBytes(frame).first(sizeof(EthernetHeader) + length));
}

// Fragments, or an error to the kernel, which caches the MTU of this neighbour. A group's
// members cannot be told apart, and an IPv4 sender to a group gets no error: its packets are cut
// whatever they say.
void send_too_big(InterfaceParts& parts, const Way& way, Bytes message, const Offload& offload,
                  Instant now) {
  const bool is_group = way.neighbour == nullptr;
  auto fragments = Fragmenter::create(message, way.mtu, is_group);
  if (!fragments) return report_too_big(parts, way, message, now);
  if (offload.needs_checksum) complete_checksum(message.subspan(kIp), offload);
  ++parts.counters.fragmented;
  post_pieces(parts, way, *fragments);
}

WaitingPacket to_wait(const InterfaceParts& parts, const HardwareAddress& to, ConstBytes message,
                      const Offload& offload, bool by_datagram, Instant now) {
  return {{message.begin(), message.end()},
          offload,
          to,
          by_datagram,
          now + parts.settings.times.waiting};
}

AddressVector vector_of(const PathRecord& path, const Gid& destination) {
  AddressVector vector;
  vector.dlid = path.dlid;
  vector.service_level = path.service_level;
  vector.rate = path.rate;
  vector.has_grh = path.is_global;
  vector.dgid = destination;
  vector.flow_label = path.flow_label;
  vector.hop_limit = path.hop_limit;
  vector.traffic_class = path.traffic_class;
  return vector;
}

AddressVector vector_of(const GroupParameters& group, const Gid& mgid) {
  AddressVector vector;
  vector.dlid = group.mlid;
  vector.service_level = group.service_level;
  vector.rate = group.rate;
  vector.has_grh = true;
  vector.dgid = mgid;
  vector.flow_label = group.flow_label;
  vector.hop_limit = group.hop_limit;
  vector.traffic_class = group.traffic_class;
  return vector;
}

std::size_t ip_mtu(MtuCode code) {
  return mtu_bytes(code) - kEncapsulationBytes;
}

}  // namespace

void send_unicast(InterfaceParts& parts, const HardwareAddress& to, Bytes message,
                  const Offload& offload, bool by_datagram, Instant now) {
  const GroupParameters* const link = parts.groups.broadcast();
  if (link == nullptr) return parts.counters.drop(Drop::FrameLinkDown);
  Way way;
  way.neighbour = &to;
  const auto connection = by_datagram ? std::nullopt : parts.connections.use(to, now);
  if (connection) {
    way.connection = connection->id;
    way.mtu = connection->mtu;
    if (!send_whole(parts, way, message, offload)) {
      send_too_big(parts, way, message, offload, now);
    }
    return;
  }
  const PathRecord* const path = parts.paths.use(to.gid, now);
  if (path == nullptr) {
    return parts.paths.wait(to.gid, to_wait(parts, to, message, offload, by_datagram, now));
  }
  way.vector = vector_of(*path, to.gid);
  way.qpn = to.qpn;
  way.qkey = link->qkey;
  way.mtu = ip_mtu(link->mtu);
  const bool is_connecting = !by_datagram && parts.connections.start(to, *path, way.vector, now);
  if (send_whole(parts, way, message, offload)) return;
  if (is_connecting) {
    return parts.connections.wait(to, to_wait(parts, to, message, offload, false, now));
  }
  send_too_big(parts, way, message, offload, now);
}

void send_group(InterfaceParts& parts, const Gid& mgid, Bytes message, const Offload& offload,
                Instant now) {
  const GroupParameters* const group = parts.groups.use(mgid, now);
  if (group == nullptr) {
    return parts.groups.wait(mgid, to_wait(parts, {}, message, offload, true, now));
  }
  Way way;
  way.vector = vector_of(*group, mgid);
  way.qpn = kMulticastQpn;
  way.qkey = group->qkey;
  way.mtu = ip_mtu(group->mtu);
  if (!send_whole(parts, way, message, offload)) send_too_big(parts, way, message, offload, now);
}

void flush_path(InterfaceParts& parts, const Gid& destination, Instant now) {
  for (std::size_t left = parts.settings.limits.packets_per_queue; left > 0; --left) {
    auto packet = parts.paths.take_waiting(destination);
    if (!packet) return;
    send_unicast(parts, packet->to, packet->message, packet->offload, packet->by_datagram, now);
  }
}

void flush_group(InterfaceParts& parts, const Gid& mgid, Instant now) {
  for (std::size_t left = parts.settings.limits.packets_per_queue; left > 0; --left) {
    auto packet = parts.groups.take_waiting(mgid);
    if (!packet) return;
    send_group(parts, mgid, packet->message, packet->offload, now);
  }
}

void flush_connection(InterfaceParts& parts, const HardwareAddress& peer, Instant now) {
  for (std::size_t left = parts.settings.limits.packets_per_queue; left > 0; --left) {
    auto packet = parts.connections.take_waiting(peer);
    if (!packet) return;
    send_unicast(parts, packet->to, packet->message, packet->offload, packet->by_datagram, now);
  }
}

}  // namespace ib::ipoib
