// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The codes of a port's speed and width [IBA1 14.2.5.6].
#pragma once

#include <array>
#include <cstdint>

namespace ib::verbs {

struct LinkSpeed {
  std::uint8_t code = 0;  // ibv_port_attr::active_speed
  unsigned tenths = 0;    // of Gb/s, one lane
  const char* name = "";  // as sysfs has it
};

// An unknown code is taken for the slowest.
constexpr LinkSpeed link_speed(std::uint8_t code) {
  constexpr std::array<LinkSpeed, 8> kSpeeds{{{1, 25, ""},
                                              {2, 50, " DDR"},
                                              {4, 100, " QDR"},
                                              {8, 100, " FDR10"},
                                              {16, 140, " FDR"},
                                              {32, 250, " EDR"},
                                              {64, 500, " HDR"},
                                              {128, 1000, " NDR"}}};
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
