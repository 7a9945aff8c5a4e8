// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/addresses.h"

namespace ib::fabric {
namespace {

// "\2SF", then the position. Byte 5, 6: node, byte 7: HCA, byte 8: port.
constexpr std::uint64_t kGuidBase = 0x0253460000000000ull;
// Of MAC addresses 02:53:46:..., the bit for "locally administered" inverted, ff:fe in the middle.
constexpr std::uint64_t kEthernetBase = 0x005346fffe000000ull;

}  // namespace

std::uint64_t position_guid(std::size_t node, std::uint32_t hca, std::uint32_t port) {
  return kGuidBase | (static_cast<std::uint64_t>(node) << 16) | (std::uint64_t{hca} << 8) | port;
}

std::uint64_t ethernet_guid(std::size_t node, std::uint32_t hca, std::uint32_t port) {
  // 24 bits: 16 for the node, 5 for the HCA, 3 for the port.
  return kEthernetBase | (static_cast<std::uint64_t>(node) << 8) | (std::uint64_t{hca} << 3) | port;
}

verbs::Gid default_address(const AddressBlock& block, std::size_t node, std::uint32_t ordinal) {
  return verbs::ipv4_gid(block.first + ordinal * block.stride + static_cast<std::uint32_t>(node) +
                         1);
}

}  // namespace ib::fabric
