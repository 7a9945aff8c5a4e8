// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks that make a byte sequence an IP packet.
#include "ulp/ipoib/packets/headers.h"

namespace ib::ipoib {

std::optional<IpPacket> parse_ipv4(ConstBytes bytes) {
  if (bytes.size() < sizeof(Ipv4Header)) return std::nullopt;
  const auto header = get<Ipv4Header>(bytes);
  const std::size_t header_length = std::size_t{header.version_length & 0xfu} * 4;
  const std::size_t length = header.total_length;
  if (header.version_length >> 4 != 4 || header_length < sizeof(Ipv4Header)) return std::nullopt;
  if (length < header_length || length > bytes.size()) return std::nullopt;
  const bool is_fragment = (header.fragment & (kMoreFragments | kFragmentOffset)) != 0;
  return IpPacket{false, header.protocol, header_length, length, is_fragment};
}

std::optional<IpPacket> parse_ipv6(ConstBytes bytes) {
  if (bytes.size() < sizeof(Ipv6Header)) return std::nullopt;
  const auto header = get<Ipv6Header>(bytes);
  const std::size_t length = sizeof header + header.payload_length;
  if (header.version_class_flow >> 28 != 6 || length > bytes.size()) return std::nullopt;
  return IpPacket{true, header.next_header, sizeof header, length, false};
}

}  // namespace ib::ipoib
