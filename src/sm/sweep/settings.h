// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settings of a subnet manager.
#pragma once

#include "base/time.h"
#include "sm/partitions/partitions.h"
#include "sm/routing/engine.h"
#include "sm/sweep/window.h"

#include <cstdint>
#include <optional>

namespace ib::sm {

struct Settings {
  std::uint64_t subnet_prefix = 0xfe80000000000000ull;
  std::uint8_t lmc = 0;
  Routing routing = Routing::Automatic;
  std::optional<PartitionList> partitions;  // without one P_Key tables stay as they are
  std::uint64_t m_key = 0;
  std::uint8_t m_key_protect = 0;
  std::uint16_t m_key_lease = 0;       // seconds
  std::uint8_t subnet_timeout = 18;    // 4.096 us * 2^n between two traps of a port
  std::uint8_t packet_life_time = 18;  // LifeTimeValue of switches
  std::uint8_t priority = 0;           // 0 to 15: the highest becomes the master
  std::uint64_t sm_key = 0;
  Window::Limits window;
  Duration sweep_interval = std::chrono::seconds(10);  // between light sweeps
  Duration poll_interval = std::chrono::seconds(2);    // of a standby, at its master
  std::uint32_t polls = 3;  // without an answer, until the master counts as dead
};

}  // namespace ib::sm
