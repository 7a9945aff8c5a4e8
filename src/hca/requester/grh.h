// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Global Route Header [IBA1 8.3], as the receiver of a datagram finds it in front of its data.
#pragma once

#include "base/big_endian.h"
#include "verbs/types.h"

#include <cstdint>

namespace ib::hca {

struct Grh {
  Be32 version_class_flow;
  Be16 payload_length;
  std::uint8_t next_header = 0x1b;
  std::uint8_t hop_limit = 0;
  verbs::Gid source{};
  verbs::Gid destination{};
};
static_assert(sizeof(Grh) == verbs::kGrhBytes);

// Of a datagram of `bytes` from `source` along `av`.
inline void describe_route(const verbs::AddressVector& av, const verbs::Gid& source,
                           std::uint32_t bytes, bool immediate, Grh& grh) {
  grh.version_class_flow =
      6u << 28 | std::uint32_t{av.traffic_class} << 20 | (av.flow_label & 0xfffff);
  // BTH 12, DETH 8, immediate 4, payload padded to 4, ICRC 4.
  grh.payload_length = static_cast<std::uint16_t>((bytes + 3) / 4 * 4 + 24 + (immediate ? 4 : 0));
  grh.hop_limit = av.hop_limit;
  grh.source = source;
  grh.destination = av.dgid;
}

}  // namespace ib::hca
