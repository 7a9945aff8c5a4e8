// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The forwarding tables of a switch [IBA1 18.2.4.3], and what its subnet manager has set beside
// them [IBA1 14.2.5.4].
#pragma once

#include "mad/agent.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ib::fabric {

inline constexpr std::uint8_t kNoPort = 0xff;  // of a forwarding table: such packets are dropped

// Ports 0 to 255, a bit each.
using PortMask = std::array<std::uint64_t, 4>;

struct Switch {
  mad::SwitchFacts facts;
  // By LID, as far as something was written, in whole blocks; the rest is kNoPort.
  std::vector<std::uint8_t> linear;
  std::map<std::uint16_t, PortMask> groups;  // by multicast LID; no empty ones
  // softib manages the subnet, and `linear` is out of date: to be computed before it is read.
  bool is_stale = false;

  std::uint8_t port_to(std::uint16_t lid) const {
    return lid < linear.size() && lid <= facts.linear_top ? linear[lid] : kNoPort;
  }
  void set_linear(std::size_t lid, std::uint8_t port) {
    constexpr std::size_t kBlock = mad::kLinearPerBlock;
    if (linear.size() <= lid) linear.resize((lid / kBlock + 1) * kBlock, kNoPort);
    linear[lid] = port;
  }
};

}  // namespace ib::fabric
