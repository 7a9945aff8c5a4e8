// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ways of datagrams through the switches of a subnet: for a port and a LID whether packets get
// there, and why not. softibd enters a way when a poster requests it, and takes it out when
// something on it has changed.
#pragma once

#include "hca/layout/shared_field.h"
#include "verbs/cause.h"
#include "verbs/types.h"

#include <atomic>
#include <cstdint>

namespace ib::hca {

inline constexpr std::uint32_t kMaxWays = 1u << 17;
inline constexpr std::uint32_t kWaysLookedAt = 16;  // from way_place() on

// The facts that a way depends on. One to a group has a key for each port that has members, and one
// without a port, by which its packets are counted.
struct WayKey {
  static constexpr std::uint16_t kNoPort = 0xffff;
  std::uint16_t from = 0;  // index in the port table
  std::uint16_t lid = 0;   // never 0
  std::uint16_t pkey = 0;
  std::uint16_t member = kNoPort;  // of a multicast LID: index of the port in the port table

  constexpr std::uint64_t word() const {
    return std::uint64_t{from} << 48 | std::uint64_t{lid} << 32 | std::uint64_t{pkey} << 16 |
           member;
  }
  static constexpr WayKey of(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word >> 48), static_cast<std::uint16_t>(word >> 32),
            static_cast<std::uint16_t>(word >> 16), static_cast<std::uint16_t>(word)};
  }
};

// Where the search for a key begins; its entry is this one or one of those that follow.
constexpr std::uint32_t way_place(std::uint64_t key) {
  const std::uint64_t mix = (key ^ key >> 29) * 0x9e3779b97f4a7c15ull;
  return static_cast<std::uint32_t>(mix >> 47);
}
static_assert(kMaxWays == 1u << (64 - 47));

// The outcome for packets.
struct WayWord {
  verbs::control::Cause stop = verbs::control::Cause::None;  // None: they arrive
  std::uint16_t port = 0;                                    // index in the port table
  std::uint16_t levels = 0xffff;  // service levels with a lane, a bit each
  verbs::Mtu mtu = verbs::Mtu::B4096;

  constexpr std::uint64_t word() const {
    return 1 | static_cast<std::uint64_t>(stop) << 8 | std::uint64_t{port} << 16 |
           std::uint64_t{levels} << 32 | static_cast<std::uint64_t>(mtu) << 48;
  }
  static constexpr WayWord of(std::uint64_t word) {
    return {static_cast<verbs::control::Cause>(word >> 8 & 0xff),
            static_cast<std::uint16_t>(word >> 16), static_cast<std::uint16_t>(word >> 32),
            static_cast<verbs::Mtu>(word >> 48 & 0xff)};
  }
};

struct alignas(64) WayEntry {
  std::atomic<std::uint64_t> key;      // WayKey; 0: free (control)
  std::atomic<std::uint64_t> word;     // WayWord; 0: not yet, or not any more (control)
  Relaxed<std::uint32_t> end;          // where it ends before the LID: a port of the graph
  std::atomic<std::uint64_t> packets;  // that went there (poster)
  std::atomic<std::uint64_t> bytes;    // on the wire
};

}  // namespace ib::hca
