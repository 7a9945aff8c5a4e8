// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The codes of a port's speed and width [IBA1 14.2.5.6].
#pragma once

#include <array>
#include <cstdint>

namespace ib::verbs {

struct LinkSpeed {
  std::uint8_t code = 0;    // ibv_port_attr::active_speed
  unsigned tenths = 0;      // of Gb/s, one lane
  const char* name = "";    // as sysfs has it
  std::uint64_t kbits = 0;  // kb/s on the wire, one lane, with the bits of its coding
};

// An unknown code is taken for the slowest.
constexpr LinkSpeed link_speed(std::uint8_t code) {
  constexpr std::array<LinkSpeed, 8> kSpeeds{{{1, 25, "", 2'500'000},
                                              {2, 50, " DDR", 5'000'000},
                                              {4, 100, " QDR", 10'000'000},
                                              {8, 100, " FDR10", 10'312'500},
                                              {16, 140, " FDR", 14'062'500},
                                              {32, 250, " EDR", 25'781'250},
                                              {64, 500, " HDR", 53'125'000},
                                              {128, 1000, " NDR", 106'250'000}}};
  for (const LinkSpeed& speed : kSpeeds) {
    if (speed.code == code) return speed;
  }
  return kSpeeds.front();
}

// PortInfo:LinkWidthActive is one bit.
constexpr unsigned link_lanes(std::uint8_t width) {
  switch (width) {
    case 2: return 4;
    case 4: return 8;
    case 8: return 12;
    case 16: return 2;
    default: return 1;
  }
}

}  // namespace ib::verbs
