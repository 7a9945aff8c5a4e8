// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A frame of the kernel: which protocol it is, what has to be rewritten, and to which neighbour or
// group it goes. The Ethernet header becomes the encapsulation header where it lies.
#include "ulp/ipoib/arp.h"
#include "ulp/ipoib/interface_internal.h"
#include "ulp/ipoib/neighbour_discovery.h"
#include "ulp/ipoib/packets/membership_reports.h"

namespace ib::ipoib {
namespace {

Drop drop_of(Status status) {
  if (status == Status::AccessDenied) return Drop::FrameForeignMac;
  if (status == Status::NotFound) return Drop::UnknownNeighbour;
  return Drop::FrameMalformed;
}

// The group of a frame to a group address; nothing if the IP address is not one of a group.
std::optional<Gid> group_of(const InterfaceParts& parts, const MacAddress& mac, ConstBytes packet,
                            const IpPacket& ip) {
  if (ip.is_v6) {
    const Ipv6Address group{get<Ipv6Header>(packet).destination};
    if (group.is_multicast()) return parts.own.groups.of(group);
  } else {
    const Ipv4Address group{get<Ipv4Header>(packet).destination};
    if (group.is_multicast()) return parts.own.groups.of(group);
    // Limited and directed broadcasts.
    if (mac == kBroadcastMac) return parts.own.groups.broadcast();
  }
  return std::nullopt;
}

void send_to_mac(InterfaceParts& parts, const MacAddress& mac, Bytes message,
                 const Offload& offload, bool by_datagram, Instant now) {
  const Neighbour* const neighbour = parts.neighbours.find(mac, now);
  if (neighbour == nullptr) return parts.counters.drop(Drop::UnknownNeighbour);
  send_unicast(parts, neighbour->address, message, offload, by_datagram, now);
}

void transmit_arp(InterfaceParts& parts, const MacAddress& destination, ConstBytes packet,
                  Instant now) {
  const auto arp = arp_to_fabric(packet, parts.own, parts.neighbours);
  if (!arp) return parts.counters.drop(drop_of(arp.error()));
  std::array<std::byte, sizeof(Encapsulation) + sizeof(InfinibandArp)> message;
  put(Bytes(message), 0, Encapsulation{kTypeArp, std::uint16_t{0}});
  put(Bytes(message), sizeof(Encapsulation), *arp);
  // A probe of a neighbour that has left the table finds it again by broadcast.
  const bool is_lost = arp->header.operation == kArpRequest && !destination.is_group() &&
                       parts.neighbours.peek(destination) == nullptr;
  if (destination.is_group() || is_lost) {
    return send_group(parts, parts.own.groups.broadcast(), message, {}, now);
  }
  send_to_mac(parts, destination, message, {}, true, now);
}

void transmit_discovery(InterfaceParts& parts, const MacAddress& destination, ConstBytes packet,
                        const IpPacket& ip, Instant now) {
  const Bytes scratch(parts.scratch);
  const auto length = discovery_to_fabric(packet, ip, parts.own, parts.neighbours,
                                          scratch.subspan(sizeof(Encapsulation)));
  if (!length) return parts.counters.drop(drop_of(length.error()));
  put(scratch, 0, Encapsulation{kTypeIpv6, std::uint16_t{0}});
  const Bytes message = scratch.first(sizeof(Encapsulation) + *length);
  if (destination.is_group()) {
    const auto mgid = group_of(parts, destination, packet, ip);
    if (!mgid) return parts.counters.drop(Drop::FrameMalformed);
    return send_group(parts, *mgid, message, {}, now);
  }
  // As with ARP: the neighbour is a member of the group of its address.
  const auto target = solicited_target(packet, ip);
  if (target && parts.neighbours.peek(destination) == nullptr) {
    return send_group(parts, parts.own.groups.of(solicited_node_group(*target)), message, {}, now);
  }
  send_to_mac(parts, destination, message, {}, true, now);
}

void transmit_dhcp(InterfaceParts& parts, const MacAddress& destination, ConstBytes packet,
                   const IpPacket& ip, Instant now) {
  const Bytes scratch(parts.scratch);
  const auto length =
      parts.dhcp.to_fabric(packet, ip, parts.own, scratch.subspan(sizeof(Encapsulation)));
  if (!length) return parts.counters.drop(drop_of(length.error()));
  put(scratch, 0, Encapsulation{kTypeIpv4, std::uint16_t{0}});
  const Bytes message = scratch.first(sizeof(Encapsulation) + *length);
  if (destination.is_group()) {
    return send_group(parts, parts.own.groups.broadcast(), message, {}, now);
  }
  send_to_mac(parts, destination, message, {}, false, now);
}

void apply_reports(InterfaceParts& parts, ConstBytes packet, const IpPacket& ip, Instant now) {
  for (const MembershipChange& change : parse_reports(packet, ip)) {
    parts.groups.set_member(change.group, change.joins, now);
  }
}

void transmit_ip(InterfaceParts& parts, const Frame& frame, const EthernetHeader& ethernet,
                 Instant now) {
  const MacAddress destination{ethernet.destination};
  const Bytes packet = frame.bytes.subspan(sizeof ethernet);
  const auto ip = parse_ip(ethernet.type, packet);
  if (!ip) return parts.counters.drop(Drop::FrameMalformed);
  const auto offload = from_virtio(frame.header, ip->length);
  if (!offload) return parts.counters.drop(Drop::FrameMalformed);
  const Bytes whole = packet.first(ip->length);  // without what Ethernet may have added

  if (is_neighbour_discovery(whole, *ip)) {
    return transmit_discovery(parts, destination, whole, *ip, now);
  }
  if (offload->segmentation == Segmentation::None && Dhcp::role(whole, *ip) != Dhcp::Role::None) {
    return transmit_dhcp(parts, destination, whole, *ip, now);
  }
  constexpr std::size_t kBefore = sizeof(EthernetHeader) - sizeof(Encapsulation);
  const Bytes message = frame.bytes.subspan(kBefore, sizeof(Encapsulation) + ip->length);
  put(message, 0, Encapsulation{ethernet.type, std::uint16_t{0}});
  if (!destination.is_group()) {
    return send_to_mac(parts, destination, message, *offload, false, now);
  }
  if (may_be_report(whole, *ip)) apply_reports(parts, whole, *ip, now);
  const auto mgid = group_of(parts, destination, whole, *ip);
  if (!mgid) return parts.counters.drop(Drop::FrameForeignMac);
  send_group(parts, *mgid, message, *offload, now);
}

}  // namespace

void transmit(InterfaceParts& parts, const Frame& frame, Instant now) {
  ++parts.counters.frames_from_kernel;
  parts.counters.bytes_from_kernel += frame.bytes.size();
  if (frame.bytes.size() < sizeof(EthernetHeader)) {
    return parts.counters.drop(Drop::FrameMalformed);
  }
  if (!parts.link.carrier) return parts.counters.drop(Drop::FrameLinkDown);
  const auto ethernet = get<EthernetHeader>(frame.bytes);
  switch (std::uint16_t{ethernet.type}) {
    case kTypeIpv4:
    case kTypeIpv6: return transmit_ip(parts, frame, ethernet, now);
    case kTypeArp:
      return transmit_arp(parts, MacAddress{ethernet.destination},
                          frame.bytes.subspan(sizeof ethernet), now);
    default: return parts.counters.drop(Drop::FrameNotIp);
  }
}

}  // namespace ib::ipoib
