// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Folding: which elements of a subnet share a box of its picture, so that a picture of thousands of
// elements can be read.
//
// Elements are alike, and may be folded, if they have the same neighbours: the adapters of a leaf
// switch; then, as long as there are more boxes than wanted, the switches of a level with the same
// switches above (the leaves of a pod) or below them. A subnet without levels (a torus) gets many
// adapters into the boxes of their switches and, if that does not suffice, is cut into regions of
// switches with many cables among themselves.
#pragma once

#include "fabric/picture/shown_subnet.h"

#include <cstdint>
#include <vector>

namespace ib::fabric {

struct FoldingLimits {
  std::uint32_t adapters = 32;  // with more, those of one leaf are folded
  std::uint32_t boxes = 120;    // with more, switches are folded too
};

struct Levels {
  std::vector<std::uint32_t> of;  // by element: cables to the nearest adapter
  bool are_levels = false;        // each cable leads from one level to the next
  std::uint32_t highest = 0;
};
Levels levels_of(const ShownSubnet& subnet);

struct Folding {
  std::vector<std::uint32_t> box;  // by element
  std::uint32_t boxes = 0;
};
// Elements of the chosen route have boxes of their own.
Folding fold(const ShownSubnet& subnet, const Levels& levels, const FoldingLimits& limits = {});

}  // namespace ib::fabric
