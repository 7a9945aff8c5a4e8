// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GUIDs and addresses that follow from a position in the fabric.
#pragma once

#include "verbs/gid.h"

#include <cstddef>
#include <cstdint>

namespace ib::fabric {

// Of port `port` (1-based; 0: of the HCA itself) of an HCA of a node: locally administered EUI-64
// that no real adapter has.
std::uint64_t position_guid(std::size_t node, std::uint32_t hca, std::uint32_t port);
// The position of the first switch of a subnet that is made here, behind those of nodes.
inline constexpr std::size_t kFirstSwitch = std::size_t{1} << 23;
// Of an Ethernet port: the modified EUI-64 of its MAC address [RFC 4291 appendix A], which is also
// locally administered.
std::uint64_t ethernet_guid(std::size_t node, std::uint32_t hca, std::uint32_t port);

// A block of 127.0.0.0/8, which every machine takes as its own without any configuration.
struct AddressBlock {
  std::uint32_t first = 127u << 24 | 77u << 16;
  std::uint32_t stride = 1u << 16;  // from the addresses of first ports to those of second ones
};
// The address of a node unless it is given another. `ordinal` counts the Ethernet ports of the
// node, each of which has one.
verbs::Gid default_address(const AddressBlock& block, std::size_t node, std::uint32_t ordinal);
inline constexpr const char* kLoopbackInterface = "lo";

}  // namespace ib::fabric
