// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the requests of a connection travel: the plane that carries them, or the reason why none does
// (verbs::control::Cause). softibd decides it when the queue pair connects, and again when
// something on the way through the switches changes.
#pragma once

#include "verbs/cause.h"
#include "verbs/types.h"

#include <cstdint>

namespace ib::hca::flow {

inline constexpr std::uint32_t kNoPlane = 0;
inline constexpr std::uint32_t kMemory = 1;

constexpr std::uint32_t blocked(verbs::control::Cause cause) {
  return static_cast<std::uint32_t>(cause) << 8 | kNoPlane;
}
// The least MTU of its links; of one with the longest packets there is nothing to say.
constexpr std::uint32_t memory(verbs::Mtu mtu) {
  const bool is_short = mtu < verbs::Mtu::B4096;
  return (is_short ? static_cast<std::uint32_t>(mtu) << 8 : 0) | kMemory;
}
constexpr std::uint32_t plane_of(std::uint32_t word) {
  return word & 0xff;
}
constexpr verbs::control::Cause cause_of(std::uint32_t word) {
  return static_cast<verbs::control::Cause>(word >> 8);
}
// Of one that the memory plane carries.
constexpr verbs::Mtu mtu_of(std::uint32_t word) {
  const std::uint32_t mtu = word >> 8;
  return mtu == 0 ? verbs::Mtu::B4096 : static_cast<verbs::Mtu>(mtu);
}

}  // namespace ib::hca::flow
