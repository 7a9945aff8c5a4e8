// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Neighbour discovery [RFC 4861] between link-layer addresses of 6 and of 20 bytes [RFC 4391 9.3].
//
//   option     0       1        2..
//   Ethernet | type | 1 unit  | 6 bytes |
//   IPoIB    | type | 3 units | 2 reserved bytes | 20 bytes |     (units of 8 bytes)
//
// The source and target options change their size, with them the length of the packet and its
// checksum. All other options stay.
#pragma once

#include "base/result.h"
#include "ulp/ipoib/neighbours.h"
#include "ulp/ipoib/packets/headers.h"
#include "ulp/ipoib/packets/identity.h"

#include <cstddef>
#include <optional>

namespace ib::ipoib {

// A solicitation, an advertisement or a redirect, directly behind the IPv6 header.
bool is_neighbour_discovery(ConstBytes packet, const IpPacket& ip);
// The target of a neighbour solicitation.
std::optional<Ipv6Address> solicited_target(ConstBytes packet, const IpPacket& ip);
// ff02::1:ffXX:XXXX
Ipv6Address solicited_node_group(const Ipv6Address& target);

// Both write the packet to `out` and return its length. Malformed: lengths or options are wrong;
// NotFound: nobody has a MAC that the packet names; AccessDenied: its sender is not this interface.
Result<std::size_t> discovery_to_fabric(ConstBytes packet, const IpPacket& ip, const Identity& own,
                                        const Neighbours& neighbours, Bytes out);

struct ReceivedDiscovery {
  std::size_t length = 0;
  std::optional<HardwareAddress> gone;  // a neighbour that this one replaces
};
// The owners of the addresses are entered in the table. IoError: the checksum is wrong.
Result<ReceivedDiscovery> discovery_to_ethernet(ConstBytes packet, const IpPacket& ip,
                                                const Identity& own, Neighbours& neighbours,
                                                Instant now, Bytes out);

}  // namespace ib::ipoib
