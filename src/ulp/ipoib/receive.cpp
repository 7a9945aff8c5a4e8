// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message of the fabric: who has sent it, what has to be rewritten, and its frame for the kernel.
// The Ethernet header is written over the encapsulation header and the bytes before it.
#include "ulp/ipoib/arp.h"
#include "ulp/ipoib/interface_internal.h"
#include "ulp/ipoib/neighbour_discovery.h"

namespace ib::ipoib {
namespace {

Drop drop_of(Status status) {
  if (status == Status::IoError) return Drop::MessageBadChecksum;
  if (status == Status::AccessDenied) return Drop::MessageOwn;
  return Drop::MessageMalformed;
}

// Where a message comes from, and to whom it was sent.
struct Arrival {
  std::optional<HardwareAddress> sender;  // if the message shows it
  std::optional<Gid> group;               // of a multicast
};

// The MAC of the sender. ARP and neighbour discovery have entered theirs with more than a packet
// shows. Multicasts of many senders shall not fill the table; but a DHCP client has to have a MAC.
MacAddress sender_of(InterfaceParts& parts, const Arrival& arrival, Instant now) {
  if (!arrival.sender) return kUnknownMac;
  if (const Neighbour* neighbour = parts.neighbours.find(*arrival.sender, now)) {
    return neighbour->mac;
  }
  if (arrival.group && *arrival.group != parts.own.groups.broadcast()) return kUnknownMac;
  return heard(parts, *arrival.sender, now);
}

MacAddress destination_of(const InterfaceParts& parts, const Arrival& arrival, ConstBytes packet,
                          const IpPacket& ip) {
  if (!arrival.group) return parts.own.mac;
  if (ip.is_v6) {
    const Ipv6Address group{get<Ipv6Header>(packet).destination};
    if (group.is_multicast()) return mac_of(group);
  } else {
    const Ipv4Address group{get<Ipv4Header>(packet).destination};
    if (group.is_multicast()) return mac_of(group);
  }
  return kBroadcastMac;
}

void forget(InterfaceParts& parts, const std::optional<HardwareAddress>& gone) {
  if (gone) parts.connections.forget(*gone);
}

void receive_arp(InterfaceParts& parts, const Arrival& arrival, ConstBytes packet, Instant now) {
  const auto received = arp_to_ethernet(packet, parts.own, parts.neighbours, now);
  if (!received) return parts.counters.drop(drop_of(received.error()));
  forget(parts, received->gone);
  std::array<std::byte, sizeof(EthernetHeader) + sizeof(EthernetArp)> frame;
  const MacAddress destination = arrival.group ? kBroadcastMac : parts.own.mac;
  put(Bytes(frame), 0, EthernetHeader{destination.bytes, received->arp.sender, kTypeArp});
  put(Bytes(frame), sizeof(EthernetHeader), received->arp);
  deliver(parts, {}, frame);
}

// A rewritten packet, behind room for the Ethernet header.
void deliver_scratch(InterfaceParts& parts, const MacAddress& destination, const MacAddress& sender,
                     std::uint16_t type, std::size_t length) {
  put(Bytes(parts.scratch), 0, EthernetHeader{destination.bytes, sender.bytes, type});
  deliver(parts, {}, ConstBytes(parts.scratch).first(sizeof(EthernetHeader) + length));
}

void receive_discovery(InterfaceParts& parts, const Arrival& arrival, ConstBytes packet,
                       const IpPacket& ip, Instant now) {
  const auto received = discovery_to_ethernet(packet, ip, parts.own, parts.neighbours, now,
                                              Bytes(parts.scratch).subspan(sizeof(EthernetHeader)));
  if (!received) return parts.counters.drop(drop_of(received.error()));
  forget(parts, received->gone);
  deliver_scratch(parts, destination_of(parts, arrival, packet, ip), sender_of(parts, arrival, now),
                  kTypeIpv6, received->length);
}

void receive_dhcp(InterfaceParts& parts, const Arrival& arrival, ConstBytes packet,
                  const IpPacket& ip, Instant now) {
  const MacAddress sender = sender_of(parts, arrival, now);
  const auto length = parts.dhcp.to_ethernet(packet, ip, parts.own, sender,
                                             Bytes(parts.scratch).subspan(sizeof(EthernetHeader)));
  if (!length) return parts.counters.drop(drop_of(length.error()));
  deliver_scratch(parts, destination_of(parts, arrival, packet, ip), sender, kTypeIpv4, *length);
}

void receive_ip(InterfaceParts& parts, const Arrival& arrival, const Message& message,
                std::uint16_t type, Instant now) {
  const Bytes bytes = message.bytes.subspan(sizeof(Encapsulation));
  const auto ip = parse_ip(type, bytes);
  if (!ip || check(message.offload, ip->length) != Status::Ok) {
    return parts.counters.drop(Drop::MessageMalformed);
  }
  const Bytes packet = bytes.first(ip->length);
  if (message.offload.segmentation == Segmentation::None) {
    if (is_neighbour_discovery(packet, *ip)) {
      return receive_discovery(parts, arrival, packet, *ip, now);
    }
    if (Dhcp::role(packet, *ip) != Dhcp::Role::None) {
      return receive_dhcp(parts, arrival, packet, *ip, now);
    }
  }
  const MacAddress destination = destination_of(parts, arrival, packet, *ip);
  const MacAddress sender = sender_of(parts, arrival, now);
  const Bytes frame(packet.data() - sizeof(EthernetHeader), sizeof(EthernetHeader) + ip->length);
  put(frame, 0, EthernetHeader{destination.bytes, sender.bytes, type});
  deliver(parts, to_virtio(message.offload), frame);
}

void receive(InterfaceParts& parts, const Arrival& arrival, const Message& message, Instant now) {
  if (message.bytes.size() < sizeof(Encapsulation)) {
    return parts.counters.drop(Drop::MessageMalformed);
  }
  const std::uint16_t type = get<Encapsulation>(message.bytes).type;
  switch (type) {
    case kTypeIpv4:
    case kTypeIpv6: return receive_ip(parts, arrival, message, type, now);
    case kTypeArp:
      return receive_arp(parts, arrival, message.bytes.subspan(sizeof(Encapsulation)), now);
    default: return parts.counters.drop(Drop::MessageNotIp);
  }
}

bool is_own(const InterfaceParts& parts, const DatagramSource& source) {
  if (source.qpn != parts.own.address.qpn) return false;
  return source.has_grh ? source.sgid == parts.own.address.gid : source.slid == parts.port.lid;
}

}  // namespace

void receive_datagram(InterfaceParts& parts, const DatagramSource& source, const Message& message,
                      Instant now) {
  ++parts.counters.datagrams_received;
  if (is_own(parts, source)) return parts.counters.drop(Drop::MessageOwn);
  Arrival arrival;
  if (source.has_grh && source.dgid.is_multicast()) {
    if (!parts.own.groups.is_ours(source.dgid)) {
      return parts.counters.drop(Drop::MessageForeignGroup);
    }
    arrival.group = source.dgid;
  }
  const HardwareAddress address{source.qpn, source.sgid, 0};
  if (source.has_grh && is_valid_unicast(address)) arrival.sender = address;
  receive(parts, arrival, message, now);
}

void receive_connected(InterfaceParts& parts, ConnectionId id, const Message& message,
                       Instant now) {
  ++parts.counters.connection_messages_received;
  const auto peer = parts.connections.on_message(id, now);
  if (!peer) return parts.counters.drop(Drop::MessageUnknownConnection);
  receive(parts, {*peer, std::nullopt}, message, now);
}

void deliver(InterfaceParts& parts, const VirtioHeader& header, ConstBytes frame) {
  if (!parts.host.deliver(header, frame)) return parts.counters.drop(Drop::KernelQueueFull);
  ++parts.counters.frames_to_kernel;
  parts.counters.bytes_to_kernel += frame.size();
}

MacAddress heard(InterfaceParts& parts, const HardwareAddress& address, Instant now) {
  if (const Neighbour* neighbour = parts.neighbours.find(address, now)) return neighbour->mac;
  const LearntNeighbour learnt =
      parts.neighbours.learn(address, {}, NeighbourRow::Source::Packet, now);
  forget(parts, learnt.gone);
  return learnt.mac;
}

}  // namespace ib::ipoib
