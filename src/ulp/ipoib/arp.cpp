// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Translates ARP packets and enters their senders in the table of neighbours.
#include "ulp/ipoib/arp.h"

namespace ib::ipoib {
namespace {

constexpr std::uint16_t kEthernet = 1;
constexpr std::uint16_t kInfiniband = 32;
constexpr std::uint8_t kIpv4Length = 4;

bool is_arp(const ArpHeader& header, std::uint16_t hardware_type, std::uint8_t length) {
  return header.hardware_type == hardware_type && header.hardware_length == length &&
         header.protocol_type == kTypeIpv4 && header.protocol_length == kIpv4Length &&
         (header.operation == kArpRequest || header.operation == kArpReply);
}

ArpHeader header_of(std::uint16_t hardware_type, std::size_t length, std::uint16_t operation) {
  return {hardware_type, kTypeIpv4, static_cast<std::uint8_t>(length), kIpv4Length, operation};
}

// Requests have no target yet; announcements may have the broadcast address there.
Result<HardwareAddressBytes> target_on_fabric(const MacAddress& target, const Identity& own,
                                              const Neighbours& neighbours) {
  if (target == MacAddress{}) return HardwareAddressBytes{};
  if (target == own.mac) return to_bytes(own.address);
  if (target.is_group()) return to_bytes(own.groups.broadcast_address());
  const Neighbour* const neighbour = neighbours.peek(target);
  if (neighbour == nullptr) return Status::NotFound;
  return to_bytes(neighbour->address);
}

MacAddress target_on_ethernet(const HardwareAddress& target, const Identity& own,
                              const Neighbours& neighbours) {
  if (target.is_same_end(own.address)) return own.mac;
  if (target.gid.is_multicast()) return kBroadcastMac;
  const Neighbour* const neighbour = neighbours.peek(target);
  return neighbour != nullptr ? neighbour->mac : MacAddress{};
}

}  // namespace

Result<InfinibandArp> arp_to_fabric(ConstBytes packet, const Identity& own,
                                    const Neighbours& neighbours) {
  if (packet.size() < sizeof(EthernetArp)) return Status::Malformed;
  const auto arp = get<EthernetArp>(packet);
  if (!is_arp(arp.header, kEthernet, sizeof arp.sender)) return Status::Malformed;
  if (arp.sender != own.mac.bytes) return Status::AccessDenied;
  // The target address of a request has no meaning [RFC 826].
  const bool is_request = arp.header.operation == kArpRequest;
  auto target = target_on_fabric(MacAddress{arp.target}, own, neighbours);
  if (!target && !is_request) return target.error();
  return InfinibandArp{header_of(kInfiniband, sizeof(HardwareAddressBytes), arp.header.operation),
                       to_bytes(own.address), arp.sender_ip,
                       target ? *target : HardwareAddressBytes{}, arp.target_ip};
}

Result<ReceivedArp> arp_to_ethernet(ConstBytes packet, const Identity& own, Neighbours& neighbours,
                                    Instant now) {
  if (packet.size() < sizeof(InfinibandArp)) return Status::Malformed;
  const auto arp = get<InfinibandArp>(packet);
  if (!is_arp(arp.header, kInfiniband, sizeof arp.sender)) return Status::Malformed;
  const HardwareAddress sender = from_bytes(arp.sender);
  if (!is_valid_unicast(sender)) return Status::Malformed;
  // A node that sends with the address of this interface is no neighbour.
  if (sender.is_same_end(own.address)) return Status::AccessDenied;
  // A probe for a duplicate claims no address yet [RFC 5227].
  ClaimedAddress claimed;
  if (arp.sender_ip != std::array<std::uint8_t, 4>{}) claimed = Ipv4Address{arp.sender_ip};
  const LearntNeighbour learnt = neighbours.learn(sender, claimed, NeighbourRow::Source::Arp, now);
  const MacAddress target = target_on_ethernet(from_bytes(arp.target), own, neighbours);
  return ReceivedArp{{header_of(kEthernet, sizeof target.bytes, arp.header.operation),
                      learnt.mac.bytes, arp.sender_ip, target.bytes, arp.target_ip},
                     learnt.gone};
}

}  // namespace ib::ipoib
