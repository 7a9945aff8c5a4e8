// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Global identifiers [IBA1 4.1]: 128 bits in the form of an IPv6 address, most significant byte
// first. The GID of a RoCE port is one of its IP addresses, IPv4 as ::ffff:a.b.c.d [IBA1 annex
// A17].
#pragma once

#include "verbs/types.h"

#include <cstddef>
#include <string>

namespace ib::verbs {

inline constexpr std::size_t kIpv4InGid = 12;  // first byte of an IPv4 address in a GID

constexpr Gid ipv4_gid(std::uint32_t address) {  // 127.0.0.1: 0x7f000001
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  for (std::size_t i = 0; i < 4; ++i) {
    gid[kIpv4InGid + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
  }
  return gid;
}
constexpr Gid make_gid(std::uint64_t prefix, std::uint64_t interface) {
  Gid gid{};
  for (std::size_t i = 0; i < 8; ++i) {
    gid[i] = static_cast<std::uint8_t>(prefix >> (56 - 8 * i));
    gid[8 + i] = static_cast<std::uint8_t>(interface >> (56 - 8 * i));
  }
  return gid;
}
// The halves of a GID, as make_gid() takes them.
constexpr std::uint64_t half_of_gid(const Gid& gid, std::size_t first) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = value << 8 | gid[first + i];
  return value;
}
constexpr std::uint64_t prefix_of(const Gid& gid) {
  return half_of_gid(gid, 0);
}
constexpr std::uint64_t interface_of(const Gid& gid) {
  return half_of_gid(gid, 8);
}
// As ipv4_gid() takes it, of a GID that is_ipv4().
constexpr std::uint32_t ipv4_of(const Gid& gid) {
  return static_cast<std::uint32_t>(interface_of(gid));
}
constexpr bool is_zero(const Gid& gid) {
  return gid == Gid{};
}
constexpr bool is_ipv4(const Gid& gid) {
  for (std::size_t i = 0; i < 10; ++i) {
    if (gid[i] != 0) return false;
  }
  return gid[10] == 0xff && gid[11] == 0xff;
}
// ff00::/8, or 224.0.0.0/4 as an IPv4 address.
constexpr bool is_multicast(const Gid& gid) {
  return gid[0] == 0xff || (is_ipv4(gid) && (gid[kIpv4InGid] & 0xf0) == 0xe0);
}
// fe80::/10 [RFC 4291 2.4]
constexpr bool is_link_local(const Gid& gid) {
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}
// An address that one machine can have: not unspecified, not multicast, not broadcast.
constexpr bool is_host_address(const Gid& gid) {
  return !is_zero(gid) && !is_multicast(gid) && gid != ipv4_gid(0) && gid != ipv4_gid(0xffffffff);
}

// As sysfs has it: eight groups of four digits.
std::string long_text(const Gid& gid);
// As people write the address: "10.0.0.2", "fe80::253:46ff:fe00:5".
std::string address_text(const Gid& gid);

}  // namespace ib::verbs
