// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The multicast memberships of a kernel, as its reports show them: IGMP versions 1 to 3 [RFC 1112,
// 2236, 3376], MLD versions 1 and 2 [RFC 2710, 3810].
#pragma once

#include "ulp/ipoib/packets/headers.h"

#include <cstdint>
#include <vector>

namespace ib::ipoib {

struct MembershipChange {
  Ipv6Address group;  // of IPv4: mapped (::ffff:a.b.c.d)
  bool joins = false;
  bool operator==(const MembershipChange&) const = default;
};

bool is_ipv4_mapped(const Ipv6Address& address);
Ipv4Address ipv4_of(const Ipv6Address& mapped);

// True if this packet may be a report; cheap, for each packet to a group.
bool may_be_report(ConstBytes packet, const IpPacket& ip);
// Empty for other packets and malformed ones. At most kMostChanges.
inline constexpr std::size_t kMostChanges = 512;
std::vector<MembershipChange> parse_reports(ConstBytes packet, const IpPacket& ip);

}  // namespace ib::ipoib
