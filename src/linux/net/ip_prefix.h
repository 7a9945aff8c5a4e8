// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An IP address with the length of its network's prefix, as `ip addr` shows it: 10.1.0.2/24.
#pragma once

#include "verbs/gid.h"

#include <cstdint>
#include <string>

namespace ib::os::net {

struct IpPrefix {
  verbs::Gid ip{};         // IPv4: ::ffff:a.b.c.d
  std::uint32_t bits = 0;  // of IPv4 at most 32, of IPv6 128

  bool is_ipv4() const { return verbs::is_ipv4(ip); }
  std::uint32_t max_bits() const { return is_ipv4() ? 32 : 128; }
  friend bool operator==(const IpPrefix&, const IpPrefix&) = default;
};

// The network: all bits behind the prefix are 0.
constexpr IpPrefix network_of(const IpPrefix& prefix) {
  IpPrefix network = prefix;
  const std::size_t first = verbs::is_ipv4(prefix.ip) ? verbs::kIpv4InGid : 0;
  for (std::size_t i = first; i < network.ip.size(); ++i) {
    const std::size_t before = (i - first) * 8;
    const std::size_t kept =
        prefix.bits <= before ? 0 : (prefix.bits - before < 8 ? prefix.bits - before : 8);
    network.ip[i] = static_cast<std::uint8_t>(network.ip[i] & (0xff00u >> kept));
  }
  return network;
}

inline std::string text_of(const IpPrefix& prefix) {
  return verbs::address_text(prefix.ip) + "/" + std::to_string(prefix.bits);
}

}  // namespace ib::os::net
