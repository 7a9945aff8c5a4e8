// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ARP between Ethernet (hardware type 1, 6 bytes) and InfiniBand (type 32, 20 bytes) [RFC 826,
// RFC 4391 9.2].
#pragma once

#include "base/result.h"
#include "ulp/ipoib/neighbours.h"
#include "ulp/ipoib/packets/headers.h"
#include "ulp/ipoib/packets/identity.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ib::ipoib {

struct EthernetArp {
  ArpHeader header;
  std::array<std::uint8_t, 6> sender{};
  std::array<std::uint8_t, 4> sender_ip{};
  std::array<std::uint8_t, 6> target{};
  std::array<std::uint8_t, 4> target_ip{};
};
struct InfinibandArp {
  ArpHeader header;
  HardwareAddressBytes sender;
  std::array<std::uint8_t, 4> sender_ip{};
  HardwareAddressBytes target;
  std::array<std::uint8_t, 4> target_ip{};
};
static_assert(sizeof(EthernetArp) == 28 && sizeof(InfinibandArp) == 56);
static_assert(offsetof(InfinibandArp, target) == 32 && offsetof(InfinibandArp, target_ip) == 52);

inline constexpr std::uint16_t kArpRequest = 1;
inline constexpr std::uint16_t kArpReply = 2;

// A packet of the kernel. AccessDenied: the sender is not this interface. NotFound: nobody has the
// target's MAC.
Result<InfinibandArp> arp_to_fabric(ConstBytes packet, const Identity& own,
                                    const Neighbours& neighbours);

struct ReceivedArp {
  EthernetArp arp;
  std::optional<HardwareAddress> gone;  // a neighbour that this one replaces
};
// A packet of the fabric; its sender is entered in the table.
Result<ReceivedArp> arp_to_ethernet(ConstBytes packet, const Identity& own, Neighbours& neighbours,
                                    Instant now);

}  // namespace ib::ipoib
