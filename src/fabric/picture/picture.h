// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Picture: the boxes and lines that a subnet is drawn as, and what is written at them.
//
// Its structure (which elements are in which box, which cables in which line) follows from the
// elements and cables; its looks (states, loads, programs) are refreshed from a newer subnet of the
// same elements and cables, while boxes stay where they are.
#pragma once

#include "fabric/picture/folding.h"
#include "fabric/picture/shown_subnet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ib::fabric {

struct Box {
  // Structure.
  std::vector<std::uint32_t> members;  // elements; several: they are folded
  std::uint32_t level = 0;
  bool has_switches = false;
  bool has_adapters = false;
  bool is_ideal = false;
  // Looks. Texts are clean (fabric/picture/escape.h).
  std::string name;
  std::vector<std::string> texts;       // lines below the name, always as many
  LinkState state = LinkState::Active;  // the worst of its cables'; of a switch: whether it works
  bool has_errors = false;
  bool is_there = true;
  bool is_on_route = false;
  // Layout, in points; x and y of the middle, y grows downwards.
  double width = 0, height = 0, x = 0, y = 0;
  double numbers_above = 0;  // room inside of it for numbers of ports, on the side to higher levels
  double numbers_below = 0;

  bool is_folded() const { return members.size() > 1; }
};

struct Line {
  // Structure.
  std::uint32_t upper = 0, lower = 0;  // boxes; the level of `upper` is not the lower one
  std::vector<TopologyEnd> cables;     // the end of each in `upper`
  // Looks.
  LinkState state = LinkState::Active;  // of the worst cable
  std::array<std::uint32_t, kLinkStates> counts{};
  std::uint64_t data = 0;  // of the cable with the most
  std::uint64_t packets = 0;
  std::uint64_t errors = 0;
  bool has_errors = false;             // of one of its ports, worth a warning
  std::uint32_t hop = 0;               // of the route, from 1; 0: not on it
  bool is_hop_upwards = false;         // the packet goes from `lower` to `upper`
  double load = 0;                     // data, from 0 to 1, of that of the hottest line
  std::string upper_port, lower_port;  // numbers at its ends
  std::string note;                    // what is not usual: "2 of 16 down", "1xSDR", "5 errors"
  std::string title;                   // a sentence for the pointer
};

struct Picture {
  std::vector<Box> boxes;
  std::vector<Line> lines;
  bool has_levels = false;
  bool lies = false;                // levels run from left to right, not from top to bottom
  bool has_programs = false;        // boxes of adapters have a line for their programs
  bool is_live = false;             // refreshed while somebody looks at it
  std::vector<std::string> folded;  // sentences: what shares boxes
  std::string summary;
  std::string usual_rate;
  std::uint64_t hottest = 0;  // data of the hottest line; 0: too little to compare
  std::string route_text;
  double width = 0, height = 0;  // of the layout
};

// Less data than this on the hottest line is that of management, and makes no line thicker.
inline constexpr std::uint64_t kLeastHot = 16384;  // 64 KiB

// `is_live`: it keeps room for programs that come.
Picture make_picture(const ShownSubnet& subnet, bool is_live = false,
                     const FoldingLimits& limits = {});
// `subnet` has the same elements and cables.
void refresh(Picture& picture, const ShownSubnet& subnet);

}  // namespace ib::fabric
