// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The first 40 bytes that the receiver of a global datagram finds in front of its data: the Global
// Route Header [IBA1 8.3]; of RoCE v2 the IP header of the packet, IPv4 in the last 20 of them
// [IBA1 annex A17].
#pragma once

#include "hca/layout/layout.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ib::hca {

using RouteHeader = std::array<std::byte, verbs::kGrhBytes>;

// Of a datagram of `bytes` that port `from` sends along `av`, which is global. Returns what the
// receive completion has as its service level: RoCE has none, so the kind of packet is there [IBA1
// annex A17.4.5.1], in the numbers of mlx5, which UCX relies on: 8 (UDP) + 1 (IPv6) or 2 (IPv4).
std::uint8_t describe_route(const verbs::AddressVector& av, const PortEntry& from,
                            std::uint32_t bytes, bool immediate, RouteHeader& header);

// The fields of such a header, as its receiver reads them.
struct Route {
  verbs::Gid source{};
  verbs::Gid destination{};
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
};
// Returns nothing if it is no header of that link layer.
std::optional<Route> read_route(const RouteHeader& header, verbs::LinkLayer link_layer);

}  // namespace ib::hca
