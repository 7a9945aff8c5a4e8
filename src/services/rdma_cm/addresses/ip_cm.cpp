// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/ip_cm.h"

#include <algorithm>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint8_t kVersion = 0;

struct Layout {  // offsets in the header
  static constexpr std::size_t kVersionAt = 0;
  static constexpr std::size_t kIpVersionAt = 1;
  static constexpr std::size_t kPortAt = 2;
  static constexpr std::size_t kSourceAt = 4;
  static constexpr std::size_t kDestinationAt = 20;
};
static_assert(Layout::kDestinationAt + sizeof(verbs::Gid) == kIpHeaderBytes);

// An IPv4 address stands in the last four bytes of its field; the others are 0.
verbs::Gid field_of(const verbs::Gid& ip, Family family) {
  if (family != Family::Ipv4) return ip;
  verbs::Gid field{};
  std::copy_n(ip.begin() + verbs::kIpv4InGid, 4, field.begin() + verbs::kIpv4InGid);
  return field;
}

verbs::Gid ip_in(std::span<const std::uint8_t> field, Family family) {
  verbs::Gid ip{};
  std::copy_n(field.begin(), ip.size(), ip.begin());
  if (family != Family::Ipv4) return ip;
  verbs::Gid v4 = verbs::ipv4_gid(0);
  std::copy_n(ip.begin() + verbs::kIpv4InGid, 4, v4.begin() + verbs::kIpv4InGid);
  return v4;
}

}  // namespace

bool is_port_space(std::uint16_t number) {
  return std::find(kPortSpaces.begin(), kPortSpaces.end(), static_cast<PortSpace>(number)) !=
         kPortSpaces.end();
}

const char* name_of(PortSpace space) {
  switch (space) {
    case PortSpace::Ipoib: return "IPoIB";
    case PortSpace::Ib: return "IB";
    case PortSpace::Tcp: return "TCP";
    case PortSpace::Udp: return "UDP";
  }
  return "?";
}

std::uint64_t service_id(PortSpace space, std::uint16_t port) {
  return (static_cast<std::uint64_t>(space) << 16) + port;
}

std::uint64_t service_id(PortSpace space, const EndpointAddress& address) {
  return address.family == Family::Ib ? address.service_id : service_id(space, address.port);
}

std::optional<PortSpace> port_space_of(PortSpace of_id, const EndpointAddress& address) {
  const std::uint64_t mask = address.service_mask & ~kServicePortMask;
  const std::uint64_t wanted = address.service_id & mask;
  for (const PortSpace space : {PortSpace::Ib, PortSpace::Tcp, PortSpace::Udp}) {
    const bool allowed = of_id == PortSpace::Ib || of_id == space;
    if (allowed && wanted == (service_id(space, std::uint16_t{0}) & mask)) return space;
  }
  return std::nullopt;
}

std::optional<ServicePort> service_of(std::uint64_t service_id) {
  if ((service_id >> 32) != 0) return std::nullopt;
  const auto space = static_cast<std::uint16_t>(service_id >> 16);
  if (!is_port_space(space)) return std::nullopt;
  return ServicePort{static_cast<PortSpace>(space),
                     static_cast<std::uint16_t>(service_id & kServicePortMask)};
}

void write_ip_header(const IpHeader& header, std::span<std::uint8_t, kIpHeaderBytes> bytes) {
  bytes[Layout::kVersionAt] = kVersion;
  bytes[Layout::kIpVersionAt] = header.family == Family::Ipv4 ? 4 << 4 : 6 << 4;
  bytes[Layout::kPortAt] = static_cast<std::uint8_t>(header.port >> 8);
  bytes[Layout::kPortAt + 1] = static_cast<std::uint8_t>(header.port);
  const verbs::Gid source = field_of(header.source, header.family);
  const verbs::Gid destination = field_of(header.destination, header.family);
  std::copy(source.begin(), source.end(), bytes.begin() + Layout::kSourceAt);
  std::copy(destination.begin(), destination.end(), bytes.begin() + Layout::kDestinationAt);
}

std::optional<IpHeader> read_ip_header(std::span<const std::uint8_t> private_data) {
  if (private_data.size() < kIpHeaderBytes) return std::nullopt;
  if (private_data[Layout::kVersionAt] != kVersion) return std::nullopt;
  IpHeader header;
  switch (private_data[Layout::kIpVersionAt] >> 4) {
    case 4: header.family = Family::Ipv4; break;
    case 6: header.family = Family::Ipv6; break;
    default: return std::nullopt;
  }
  header.port = static_cast<std::uint16_t>(private_data[Layout::kPortAt] << 8 |
                                           private_data[Layout::kPortAt + 1]);
  header.source = ip_in(private_data.subspan(Layout::kSourceAt), header.family);
  header.destination = ip_in(private_data.subspan(Layout::kDestinationAt), header.family);
  return header;
}

verbs::Gid multicast_gid(const EndpointAddress& group, PortSpace space, std::uint16_t pkey) {
  constexpr std::uint8_t kLinkLocal = 0x12;  // transient, scope 2, as the broadcast group has it
  constexpr std::uint8_t kSignature = 0x1b;  // second byte of 401b and 601b
  constexpr std::uint8_t kOwnSignature = 0x01;
  const verbs::Gid& ip = group.ip;
  if (is_any(group)) return {};
  const bool is_v6 = group.family == Family::Ipv6;
  if (group.family == Family::Ib) return ip;
  // An IPv6 address that is a multicast GID already.
  if (is_v6 && ip[0] == 0xff && (ip[1] & 0xf0) == 0x10 && ip[2] == 0xa0 && ip[3] == kSignature)
    return ip;
  verbs::Gid gid{};
  gid[0] = 0xff;
  gid[1] = kLinkLocal;
  gid[2] = is_v6 ? 0x60 : 0x40;
  gid[3] = space == PortSpace::Udp ? kOwnSignature : kSignature;
  gid[4] = static_cast<std::uint8_t>(pkey >> 8);
  gid[5] = static_cast<std::uint8_t>(pkey);
  if (is_v6) {
    std::copy_n(ip.begin() + 6, 10, gid.begin() + 6);
  } else {
    std::copy_n(ip.begin() + verbs::kIpv4InGid, 4, gid.begin() + 12);
    gid[12] &= 0x0f;
  }
  return gid;
}

}  // namespace ib::services::rdma_cm
