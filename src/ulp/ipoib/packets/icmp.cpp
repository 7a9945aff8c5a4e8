// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes ICMP errors and membership queries.
#include "ulp/ipoib/packets/icmp.h"

#include "ulp/ipoib/packets/checksum.h"

#include <algorithm>

namespace ib::ipoib {
namespace {

constexpr std::uint8_t kUnreachable = 3;  // its code for "fragmentation needed" is 4
constexpr std::uint8_t kFragmentationNeeded = 4;
constexpr std::uint8_t kPacketTooBig = 2;
constexpr std::uint8_t kMldQuery = 130;
constexpr std::uint8_t kIgmpQuery = 0x11;
constexpr std::size_t kMostIpv4ErrorBytes = 576;
// fe80::1: sender of what has no unicast address of its own.
constexpr std::array<std::uint8_t, 16> kLinkLocal = {0xfe, 0x80, 0, 0, 0, 0, 0, 0,
                                                     0,    0,    0, 0, 0, 0, 0, 1};
constexpr std::array<std::uint8_t, 16> kAllNodes = {0xff, 2, 0, 0, 0, 0, 0, 0,
                                                    0,    0, 0, 0, 0, 0, 0, 1};

bool is_icmp_error(std::uint8_t type) {
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

std::size_t write_too_big4(ConstBytes packet, std::size_t mtu, Bytes out) {
  const auto ip = parse_ipv4(packet);
  if (!ip) return 0;
  const auto original = get<Ipv4Header>(packet);
  if ((original.fragment & kFragmentOffset) != 0) return 0;
  if (Ipv4Address{original.destination}.is_multicast()) return 0;
  if (ip->protocol == kIcmp && ip->length > ip->payload &&
      is_icmp_error(std::to_integer<std::uint8_t>(packet[ip->payload]))) {
    return 0;
  }
  constexpr std::size_t kStart = sizeof(Ipv4Header) + sizeof(IcmpHeader);
  const std::size_t quoted = std::min(ip->length, kMostIpv4ErrorBytes - kStart);
  Ipv4Header header;
  header.version_length = 0x45;
  header.total_length = static_cast<std::uint16_t>(kStart + quoted);
  header.ttl = 64;
  header.protocol = kIcmp;
  // In the name of the far end: the kernel accepts the error from any address.
  header.source = original.destination;
  header.destination = original.source;
  put(out, 0, with_checksum(header));
  IcmpHeader icmp{kUnreachable, kFragmentationNeeded, 0, static_cast<std::uint16_t>(mtu)};
  put(out, sizeof header, icmp);
  std::copy_n(packet.begin(), quoted, out.begin() + kStart);
  icmp.checksum = checksum(out.subspan(sizeof header, sizeof icmp + quoted));
  put(out, sizeof header, icmp);
  return kStart + quoted;
}

std::size_t write_too_big6(ConstBytes packet, std::size_t mtu, Bytes out) {
  const auto ip = parse_ipv6(packet);
  if (!ip) return 0;
  const auto original = get<Ipv6Header>(packet);
  if (Ipv6Address{original.source}.is_multicast() ||
      Ipv6Address{original.source}.is_unspecified()) {
    return 0;
  }
  constexpr std::uint8_t kFirstInformational = 128;
  if (ip->protocol == kIcmpv6 && ip->length > ip->payload &&
      std::to_integer<std::uint8_t>(packet[ip->payload]) < kFirstInformational) {
    return 0;
  }
  constexpr std::size_t kStart = sizeof(Ipv6Header) + sizeof(IcmpHeader);
  const std::size_t quoted = std::min(ip->length, kMostIcmpBytes - kStart);
  Ipv6Header header;
  header.version_class_flow = 6u << 28;
  header.payload_length = static_cast<std::uint16_t>(sizeof(IcmpHeader) + quoted);
  header.next_header = kIcmpv6;
  header.hop_limit = 64;
  const bool multicast = Ipv6Address{original.destination}.is_multicast();
  header.source = multicast ? kLinkLocal : original.destination;
  header.destination = original.source;
  put(out, 0, header);
  put(out, sizeof header, IcmpHeader{kPacketTooBig, 0, 0, static_cast<std::uint32_t>(mtu)});
  std::copy_n(packet.begin(), quoted, out.begin() + kStart);
  const IpPacket whole{true, kIcmpv6, sizeof header, kStart + quoted, false};
  put(out, sizeof header + offsetof(IcmpHeader, checksum),
      Be16(transport_checksum(out.first(whole.length), whole)));
  return whole.length;
}

}  // namespace

std::size_t write_too_big(std::uint16_t type, ConstBytes packet, std::size_t mtu, Bytes out) {
  return type == kTypeIpv4 ? write_too_big4(packet, mtu, out) : write_too_big6(packet, mtu, out);
}

std::size_t write_igmp_query(Bytes out) {
  struct Query {
    std::uint8_t type = kIgmpQuery;
    std::uint8_t response_time = 10;  // in units of 100 ms
    Be16 checksum;
    std::array<std::uint8_t, 4> group{};
    std::uint8_t robustness = 2;
    std::uint8_t interval = 125;
    Be16 sources;
  };
  static_assert(sizeof(Query) == 12);
  constexpr std::array<std::uint8_t, 4> kRouterAlert = {0x94, 4, 0, 0};
  constexpr std::size_t kStart = sizeof(Ipv4Header) + kRouterAlert.size();
  Ipv4Header header;
  header.version_length = 0x46;
  header.total_length = kStart + sizeof(Query);
  header.ttl = 1;
  header.protocol = kIgmp;
  header.destination = {224, 0, 0, 1};
  put(out, 0, with_checksum(header, std::as_bytes(std::span(kRouterAlert))));
  put(out, sizeof header, kRouterAlert);
  Query query;
  put(out, kStart, query);
  query.checksum = checksum(out.subspan(kStart, sizeof query));
  put(out, kStart, query);
  return kStart + sizeof query;
}

std::size_t write_mld_query(Bytes out) {
  struct Query {
    std::uint8_t type = kMldQuery;
    std::uint8_t code = 0;
    Be16 checksum;
    Be16 response_time = std::uint16_t{1000};  // in ms
    Be16 reserved;
    std::array<std::uint8_t, 16> group{};
    std::uint8_t robustness = 2;
    std::uint8_t interval = 125;
    Be16 sources;
  };
  static_assert(sizeof(Query) == 28);
  constexpr std::array<std::uint8_t, 8> kHopByHopAlert = {kIcmpv6, 0, 5, 2, 0, 0, 1, 0};
  constexpr std::size_t kStart = sizeof(Ipv6Header) + kHopByHopAlert.size();
  Ipv6Header header;
  header.version_class_flow = 6u << 28;
  header.payload_length = kHopByHopAlert.size() + sizeof(Query);
  header.next_header = kHopByHop;
  header.hop_limit = 1;
  header.source = kLinkLocal;
  header.destination = kAllNodes;
  put(out, 0, header);
  put(out, sizeof header, kHopByHopAlert);
  put(out, kStart, Query{});
  const IpPacket whole{true, kIcmpv6, kStart, kStart + sizeof(Query), false};
  put(out, kStart + offsetof(Query, checksum),
      Be16(transport_checksum(out.first(whole.length), whole)));
  return whole.length;
}

}  // namespace ib::ipoib
