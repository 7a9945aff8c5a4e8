// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Headers of Ethernet, IPoIB encapsulation [RFC 4391 6], ARP, IP, UDP, TCP and ICMPv6 as they lie
// in packets, and the checked meaning of the start of an IP packet.
#pragma once

#include "base/big_endian.h"
#include "ulp/ipoib/packets/addresses.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace ib::ipoib {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

inline constexpr std::uint16_t kTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kTypeArp = 0x0806;
inline constexpr std::uint16_t kTypeIpv6 = 0x86dd;

inline constexpr std::uint8_t kHopByHop = 0;
inline constexpr std::uint8_t kIcmp = 1;
inline constexpr std::uint8_t kIgmp = 2;
inline constexpr std::uint8_t kTcp = 6;
inline constexpr std::uint8_t kUdp = 17;
inline constexpr std::uint8_t kIcmpv6 = 58;

struct EthernetHeader {
  std::array<std::uint8_t, 6> destination{};
  std::array<std::uint8_t, 6> source{};
  Be16 type;
};
struct Encapsulation {
  Be16 type;
  Be16 reserved;
};
struct ArpHeader {
  Be16 hardware_type;
  Be16 protocol_type;
  std::uint8_t hardware_length = 0;
  std::uint8_t protocol_length = 0;
  Be16 operation;
};
struct Ipv4Header {
  std::uint8_t version_length = 0;
  std::uint8_t tos = 0;
  Be16 total_length;
  Be16 id;
  Be16 fragment;  // flags and offset
  std::uint8_t ttl = 0;
  std::uint8_t protocol = 0;
  Be16 checksum;
  std::array<std::uint8_t, 4> source{};
  std::array<std::uint8_t, 4> destination{};
};
struct Ipv6Header {
  Be32 version_class_flow;
  Be16 payload_length;
  std::uint8_t next_header = 0;
  std::uint8_t hop_limit = 0;
  std::array<std::uint8_t, 16> source{};
  std::array<std::uint8_t, 16> destination{};
};
struct UdpHeader {
  Be16 source;
  Be16 destination;
  Be16 length;
  Be16 checksum;
};
struct TcpHeader {
  Be16 source;
  Be16 destination;
  Be32 sequence;
  Be32 acknowledged;
  std::uint8_t data_offset = 0;  // upper half: words of 4 bytes
  std::uint8_t flags = 0;
  Be16 window;
  Be16 checksum;
  Be16 urgent;
};
struct IcmpHeader {  // of both versions, with the four bytes that depend on the type
  std::uint8_t type = 0;
  std::uint8_t code = 0;
  Be16 checksum;
  Be32 rest;
};
static_assert(sizeof(EthernetHeader) == 14 && sizeof(Encapsulation) == 4 && sizeof(ArpHeader) == 8);
static_assert(sizeof(Ipv4Header) == 20 && offsetof(Ipv4Header, checksum) == 10);
static_assert(sizeof(Ipv6Header) == 40 && offsetof(Ipv6Header, destination) == 24);
static_assert(sizeof(UdpHeader) == 8 && sizeof(TcpHeader) == 20 && sizeof(IcmpHeader) == 8);
static_assert(offsetof(TcpHeader, flags) == 13 && offsetof(TcpHeader, checksum) == 16);

inline constexpr std::uint16_t kDontFragment = 0x4000;
inline constexpr std::uint16_t kMoreFragments = 0x2000;
inline constexpr std::uint16_t kFragmentOffset = 0x1fff;

// The caller has checked that the header is within the bytes.
template <class Header>
Header get(ConstBytes bytes, std::size_t offset = 0) {
  static_assert(std::is_trivially_copyable_v<Header> && alignof(Header) == 1);
  Header header;
  std::memcpy(&header, bytes.data() + offset, sizeof header);
  return header;
}
template <class Header>
void put(Bytes bytes, std::size_t offset, const Header& header) {
  static_assert(std::is_trivially_copyable_v<Header>);
  std::memcpy(bytes.data() + offset, &header, sizeof header);
}

// An IP packet whose lengths hold: `length` is that of the packet, at most the bytes that are
// there; `payload` the offset of what follows its (first) header.
struct IpPacket {
  bool is_v6 = false;
  std::uint8_t protocol = 0;  // of IPv6: the next header, which may be an extension
  std::size_t payload = 0;
  std::size_t length = 0;
  bool is_fragment = false;  // IPv4 only
};
std::optional<IpPacket> parse_ipv4(ConstBytes bytes);
std::optional<IpPacket> parse_ipv6(ConstBytes bytes);
inline std::optional<IpPacket> parse_ip(std::uint16_t type, ConstBytes bytes) {
  return type == kTypeIpv4 ? parse_ipv4(bytes) : parse_ipv6(bytes);
}

}  // namespace ib::ipoib
