// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses of IP over InfiniBand: the 20-byte hardware address [RFC 4391 9.1.1], multicast GIDs
// [RFC 4391 4], and the MAC addresses that stand for them on the kernel's Ethernet interface.
#pragma once

#include "base/big_endian.h"
#include "base/result.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace ib::ipoib {

enum class Lid : std::uint16_t {};
enum class Qpn : std::uint32_t {};  // 24 bits
enum class Qkey : std::uint32_t {};
enum class Pkey : std::uint16_t {};

inline constexpr Qpn kMulticastQpn{0xffffff};
inline constexpr std::uint16_t kFullMember = 0x8000;  // bit of a P_Key

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  bool is_group() const { return (bytes[0] & 1) != 0; }
  auto operator<=>(const MacAddress&) const = default;
};
inline constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
// The source of frames whose sender nobody has seen: a message without a GRH from an unknown queue
// pair. Locally administered; a table of neighbours never gives it to one.
inline constexpr MacAddress kUnknownMac{{0x02, 0, 0, 0, 0, 0}};

struct Gid {
  std::array<std::uint8_t, 16> bytes{};
  bool is_multicast() const { return bytes[0] == 0xff; }
  auto operator<=>(const Gid&) const = default;
};

struct Ipv4Address {
  std::array<std::uint8_t, 4> bytes{};
  bool is_multicast() const { return bytes[0] >> 4 == 0xe; }
  auto operator<=>(const Ipv4Address&) const = default;
};
struct Ipv6Address {
  std::array<std::uint8_t, 16> bytes{};
  bool is_multicast() const { return bytes[0] == 0xff; }
  bool is_unspecified() const { return bytes == std::array<std::uint8_t, 16>{}; }
  auto operator<=>(const Ipv6Address&) const = default;
};

// Bits of the first byte of a hardware address [RFC 4755 3.1]: the modes in which its owner takes
// connections.
inline constexpr std::uint8_t kFlagRc = 0x80;
inline constexpr std::uint8_t kFlagUc = 0x40;

// As it is in ARP and neighbour discovery: flags, queue pair number, GID.
struct HardwareAddressBytes {
  std::uint8_t flags = 0;
  Be24 qpn;
  std::array<std::uint8_t, 16> gid{};
};
static_assert(sizeof(HardwareAddressBytes) == 20 && alignof(HardwareAddressBytes) == 1 &&
              std::is_trivially_copyable_v<HardwareAddressBytes>);
static_assert(offsetof(HardwareAddressBytes, qpn) == 1 && offsetof(HardwareAddressBytes, gid) == 4);

struct HardwareAddress {
  Qpn qpn{};
  Gid gid;
  std::uint8_t flags = 0;

  bool takes_rc() const { return (flags & kFlagRc) != 0; }
  // The flags are no part of the identity: they change with the owner's mode.
  bool is_same_end(const HardwareAddress& other) const {
    return qpn == other.qpn && gid == other.gid;
  }
  bool operator==(const HardwareAddress&) const = default;
};

HardwareAddress from_bytes(const HardwareAddressBytes& bytes);
HardwareAddressBytes to_bytes(const HardwareAddress& address);
// Of unicast: a GID that is neither zero nor multicast, a queue pair that is neither 0, 1 nor the
// multicast one.
bool is_valid_unicast(const HardwareAddress& address);

// The MGIDs of one interface: they carry its scope and its P_Key with the membership bit set.
class GroupMapping {
 public:
  GroupMapping(std::uint8_t scope, Pkey pkey);

  Gid broadcast() const;                   // ff1s:401b:<P_Key>::ffff:ffff
  Gid of(const Ipv4Address& group) const;  // its low 28 bits
  Gid of(const Ipv6Address& group) const;  // its low 80 bits
  HardwareAddress broadcast_address() const;

  // True for a MGID of IPv4 or IPv6 multicast of this scope and P_Key.
  bool is_ours(const Gid& mgid) const;

 private:
  Gid start(std::uint16_t signature) const;

  std::uint8_t scope_;
  Pkey pkey_;
};

// The Ethernet addresses of IP multicast [RFC 1112 6.4, RFC 2464 7].
MacAddress mac_of(const Ipv4Address& group);
MacAddress mac_of(const Ipv6Address& group);

// A locally administered unicast MAC from a GUID, GID or hardware address and an attempt number;
// the same for the same arguments. A table takes attempt after attempt until it finds a free one.
MacAddress derive_mac(std::span<const std::uint8_t> identity, std::uint32_t attempt);

}  // namespace ib::ipoib

template <>
struct std::hash<ib::ipoib::Gid> {
  std::size_t operator()(const ib::ipoib::Gid& gid) const noexcept;
};
template <>
struct std::hash<ib::ipoib::MacAddress> {
  std::size_t operator()(const ib::ipoib::MacAddress& mac) const noexcept;
};
