// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/grh.h"

#include "base/big_endian.h"
#include "verbs/gid.h"

#include <cstring>

namespace ib::hca {
namespace {

constexpr std::uint8_t kNextIsBth = 0x1b;  // [IBA1 8.3.4]
constexpr std::uint8_t kNextIsUdp = 17;
constexpr std::uint8_t kUdpOverIpv6 = 9;  // as a service level
constexpr std::uint8_t kUdpOverIpv4 = 10;
constexpr std::uint32_t kUdpBytes = 8;
constexpr std::uint32_t kIpv4Bytes = 20;
// Where the consumer names none, as the route of an IP packet would.
constexpr std::uint8_t kDefaultHops = 64;

// An IPv6 header has the same fields in the same places.
struct Grh {
  Be32 version_class_flow;
  Be16 payload_length;
  std::uint8_t next_header = kNextIsBth;
  std::uint8_t hop_limit = 0;
  verbs::Gid source{};
  verbs::Gid destination{};
};
static_assert(sizeof(Grh) == verbs::kGrhBytes);

struct Ipv4 {
  std::uint8_t version_length = 0x45;  // no options
  std::uint8_t type_of_service = 0;
  Be16 total_length;
  Be16 identification;
  Be16 fragment = 0x4000;  // don't fragment
  std::uint8_t time_to_live = 0;
  std::uint8_t protocol = kNextIsUdp;
  Be16 checksum;
  std::array<std::uint8_t, 4> source{};
  std::array<std::uint8_t, 4> destination{};
};
static_assert(sizeof(Ipv4) == kIpv4Bytes);

std::uint16_t checksum_of(const Ipv4& header) {  // [RFC 791 3.1]
  std::array<std::uint8_t, kIpv4Bytes> bytes;
  std::memcpy(bytes.data(), &header, sizeof bytes);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2)
    sum += std::uint32_t{bytes[i]} << 8 | bytes[i + 1];
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~(sum + (sum >> 16)));
}

void describe_ipv4(const verbs::AddressVector& av, const verbs::Gid& source, std::uint32_t payload,
                   std::uint8_t hops, RouteHeader& header) {
  Ipv4 ip;
  ip.type_of_service = av.traffic_class;
  ip.total_length = static_cast<std::uint16_t>(kIpv4Bytes + payload);
  ip.time_to_live = hops;
  std::memcpy(ip.source.data(), source.data() + verbs::kIpv4InGid, ip.source.size());
  std::memcpy(ip.destination.data(), av.dgid.data() + verbs::kIpv4InGid, ip.destination.size());
  ip.checksum = checksum_of(ip);
  header.fill(std::byte{0});
  std::memcpy(header.data() + verbs::kGrhBytes - kIpv4Bytes, &ip, kIpv4Bytes);
}

}  // namespace

std::uint8_t describe_route(const verbs::AddressVector& av, const PortEntry& from,
                            std::uint32_t bytes, bool immediate, RouteHeader& header) {
  const bool is_ethernet =
      from.link_layer.load(std::memory_order_relaxed) == verbs::LinkLayer::Ethernet;
  const verbs::Gid source =
      av.sgid_index < from.gids.size() ? verbs::Gid(from.gids[av.sgid_index]) : verbs::Gid{};
  // BTH 12, DETH 8, immediate 4, payload padded to 4, ICRC 4.
  std::uint32_t payload = (bytes + 3) / 4 * 4 + 24 + (immediate ? 4 : 0);
  std::uint8_t hops = av.hop_limit;
  if (is_ethernet) {
    payload += kUdpBytes;
    if (hops == 0) hops = kDefaultHops;
    if (verbs::is_ipv4(source)) {
      describe_ipv4(av, source, payload, hops, header);
      return kUdpOverIpv4;
    }
  }
  Grh grh;
  grh.version_class_flow =
      6u << 28 | std::uint32_t{av.traffic_class} << 20 | (av.flow_label & 0xfffff);
  grh.payload_length = static_cast<std::uint16_t>(payload);
  grh.next_header = is_ethernet ? kNextIsUdp : kNextIsBth;
  grh.hop_limit = hops;
  grh.source = source;
  grh.destination = av.dgid;
  std::memcpy(header.data(), &grh, sizeof grh);
  return is_ethernet ? kUdpOverIpv6 : av.sl;
}

std::optional<Route> read_route(const RouteHeader& header, verbs::LinkLayer link_layer) {
  constexpr unsigned kIpv6 = 6;
  Route route;
  Grh grh;
  std::memcpy(&grh, header.data(), sizeof grh);
  const std::uint32_t first = grh.version_class_flow;
  const bool is_ethernet = link_layer == verbs::LinkLayer::Ethernet;
  if (first >> 28 == kIpv6) {
    route.source = grh.source;
    route.destination = grh.destination;
    route.flow_label = first & 0xfffff;
    route.traffic_class = static_cast<std::uint8_t>(first >> 20);
    route.hop_limit = grh.hop_limit;
    return route;
  }
  Ipv4 ip;
  std::memcpy(&ip, header.data() + verbs::kGrhBytes - kIpv4Bytes, sizeof ip);
  if (!is_ethernet || ip.version_length != Ipv4().version_length) return std::nullopt;
  route.source = route.destination = verbs::ipv4_gid(0);
  std::memcpy(route.source.data() + verbs::kIpv4InGid, ip.source.data(), ip.source.size());
  std::memcpy(route.destination.data() + verbs::kIpv4InGid, ip.destination.data(),
              ip.destination.size());
  route.traffic_class = ip.type_of_service;
  route.hop_limit = ip.time_to_live;
  return route;
}

}  // namespace ib::hca
