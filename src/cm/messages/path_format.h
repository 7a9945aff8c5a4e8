// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths in REQ [IBA1 12.6.5, table 106] and in LAP [IBA1 12.8.1, table 115], which order the last
// fields in different ways. They are paths as the sender has them.
#pragma once

#include "base/big_endian.h"
#include "cm/types.h"

#include <cstddef>
#include <cstdint>

namespace ib::cm {

struct ReqPathWire {
  Be16 local_lid;
  Be16 remote_lid;
  Gid local_gid{};
  Gid remote_gid{};
  Be24 flow_label;        // 20 bits, and 4 reserved ones
  std::uint8_t rate = 0;  // the last 6 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t sl_subnet_local = 0;  // SL (4), subnet local (1)
  std::uint8_t ack_timeout = 0;      // local ACK timeout (5)
};
static_assert(sizeof(ReqPathWire) == 44 && alignof(ReqPathWire) == 1);
static_assert(offsetof(ReqPathWire, local_gid) == 4 && offsetof(ReqPathWire, remote_gid) == 20);
static_assert(offsetof(ReqPathWire, flow_label) == 36 && offsetof(ReqPathWire, rate) == 39);
static_assert(offsetof(ReqPathWire, traffic_class) == 40 && offsetof(ReqPathWire, hop_limit) == 41);
static_assert(offsetof(ReqPathWire, sl_subnet_local) == 42 &&
              offsetof(ReqPathWire, ack_timeout) == 43);

struct LapPathWire {
  Be16 local_lid;
  Be16 remote_lid;
  Gid local_gid{};
  Gid remote_gid{};
  Be24 flow_label;  // 20 bits, and 4 reserved ones
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t rate = 0;             // the last 6 bits
  std::uint8_t sl_subnet_local = 0;  // SL (4), subnet local (1)
  std::uint8_t ack_timeout = 0;      // local ACK timeout (5)
};
static_assert(sizeof(LapPathWire) == 44 && alignof(LapPathWire) == 1);
static_assert(offsetof(LapPathWire, flow_label) == 36 &&
              offsetof(LapPathWire, traffic_class) == 39);
static_assert(offsetof(LapPathWire, hop_limit) == 40 && offsetof(LapPathWire, rate) == 41);

ReqPathWire to_req_wire(const Path& path);
LapPathWire to_lap_wire(const Path& path);
// The result has the default P_Key and port 1: they are not in the message's path.
Path from_wire(const ReqPathWire& wire);
Path from_wire(const LapPathWire& wire);
// Returns whether the field of an alternate path has one.
bool is_present(const ReqPathWire& wire);

}  // namespace ib::cm
