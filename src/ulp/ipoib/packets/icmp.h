// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ICMP packets that the interface itself gives to the kernel: errors for packets that are too big
// [RFC 792, RFC 1191, RFC 4443 3.2], and queries for the groups of which the kernel is a member
// [RFC 3376 4.1, RFC 3810 5.1].
#pragma once

#include "ulp/ipoib/packets/headers.h"

#include <cstddef>
#include <cstdint>

namespace ib::ipoib {

inline constexpr std::size_t kMostIcmpBytes = 1280;

// Writes the error for `packet` to `out`, which has kMostIcmpBytes; returns its length. 0: none may
// be sent for this packet [RFC 1122 3.2.2, RFC 4443 2.4].
std::size_t write_too_big(std::uint16_t type, ConstBytes packet, std::size_t mtu, Bytes out);

// General queries; `out` as above. Each member answers within about a second.
std::size_t write_igmp_query(Bytes out);
std::size_t write_mld_query(Bytes out);

}  // namespace ib::ipoib
