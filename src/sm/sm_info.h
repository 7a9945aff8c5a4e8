// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SMInfo: what subnet managers tell each other [IBA1 14.2.5.13, 14.4.1].
#pragma once

#include "base/big_endian.h"

#include <cstdint>

namespace ib::sm {

enum class SmState : std::uint8_t { NotActive, Discovering, Standby, Master };

constexpr const char* state_name(SmState state) {
  switch (state) {
    case SmState::NotActive: return "not active";
    case SmState::Discovering: return "discovering";
    case SmState::Standby: return "standby";
    case SmState::Master: return "master";
  }
  return "unknown";
}

// The attribute modifier of a Set.
namespace sm_control {
inline constexpr std::uint32_t kHandover = 1;
inline constexpr std::uint32_t kAcknowledge = 2;
inline constexpr std::uint32_t kDisable = 3;
inline constexpr std::uint32_t kStandby = 4;
inline constexpr std::uint32_t kDiscover = 5;
}  // namespace sm_control

struct SmInfo {
  Be64 guid;  // of its port
  Be64 sm_key;
  Be32 activity;  // it counts on as long as the manager lives
  std::uint8_t priority_state = 0;

  unsigned priority() const { return priority_state >> 4; }
  SmState state() const { return static_cast<SmState>(priority_state & 3); }
};
static_assert(sizeof(SmInfo) == 21);

// Whether a manager comes before another one: the higher priority, then the lower GUID.
inline bool outranks(const SmInfo& a, const SmInfo& b) {
  if (a.priority() != b.priority()) return a.priority() > b.priority();
  return std::uint64_t{a.guid} < std::uint64_t{b.guid};
}

}  // namespace ib::sm
