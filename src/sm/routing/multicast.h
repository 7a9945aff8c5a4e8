// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Trees for multicast [IBA1 18.2.4.3.3]: which ports of which switches pass the packets of a group
// on, so that each member gets one copy.
#pragma once

#include "sm/routing/graph.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ib::sm {

using PortSet = std::array<std::uint64_t, 4>;  // ports 0 to 255, a bit each

inline void put_port(PortSet& set, std::uint8_t port) {
  set[port / 64] |= std::uint64_t{1} << port % 64;
}

inline void take_port(PortSet& set, std::uint8_t port) {
  set[port / 64] &= ~(std::uint64_t{1} << port % 64);
}

struct Member {
  std::uint32_t at = 0;   // switch
  std::uint8_t port = 0;  // of it
  bool receives = true;   // else it only sends
  bool operator==(const Member&) const = default;
};

// By switch, those that take part. The tree hangs from a switch that `seed` and the levels of
// switches choose; members that it does not reach are left out.
std::map<std::uint32_t, PortSet> make_tree(const Graph& graph, std::span<const Member> members,
                                           std::uint32_t seed);

}  // namespace ib::sm
