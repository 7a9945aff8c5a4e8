// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Fat trees of two and three levels of switches with the same number of ports, half of which lead
// down but at the top level, where all do.
#include "fabric/topology/preset_parts_internal.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::fabric {
namespace {

struct TreeShape {
  std::uint32_t levels = 2;
  std::uint32_t ports = 36;
  std::uint32_t half = 18;
  std::uint64_t hcas = 0;
  std::uint64_t leaves = 0;
  std::uint64_t pods = 0;    // of three levels: `half` middle switches and as many leaves at most
  std::uint64_t spines = 0;  // none if the level below is one switch or one pod
};

std::uint64_t most_hcas(std::uint32_t levels, std::uint32_t ports) {
  const std::uint64_t two = std::uint64_t{ports} * ports / 2;
  return levels == 2 ? two : two * ports / 2;
}

TreeShape take_shape(PresetArguments& arguments) {
  TreeShape shape;
  shape.ports = arguments.take_number("ports", 36, 2, kMaxSwitchPorts);
  shape.half = shape.ports / 2;
  if (shape.ports % 2 != 0) {
    arguments.fail(
        Status::InvalidParameter,
        fmt::format("ports is {}; it must be even: half of them lead down", shape.ports));
  }
  const bool has_levels = arguments.has("levels");
  shape.levels = arguments.take_number("levels", 2, 2, 3);
  shape.hcas = arguments.take_number("hcas", 0, 1, kMaxTopologyLids);
  if (shape.hcas == 0) {
    if (!has_levels) {
      arguments.fail(Status::InvalidParameter,
                     "its size is missing; give hcas=H or levels=2 or levels=3");
    }
    shape.hcas = most_hcas(shape.levels, shape.ports);
  } else if (!has_levels && shape.hcas > most_hcas(2, shape.ports)) {
    shape.levels = 3;
  }
  const std::uint64_t most = most_hcas(shape.levels, shape.ports);
  if (shape.hcas > most) {
    arguments.fail(Status::InvalidParameter,
                   fmt::format("{} levels of switches with {} ports carry {} HCAs, not {}; give "
                               "more ports{}",
                               shape.levels, shape.ports, most, shape.hcas,
                               shape.levels == 2 ? " or levels=3" : ""));
  }
  const auto parts = [](std::uint64_t all, std::uint64_t each) { return (all + each - 1) / each; };
  shape.leaves = parts(shape.hcas, shape.half);
  if (shape.levels == 2) {
    shape.spines = shape.leaves > 1 ? shape.half : 0;
  } else {
    shape.pods = parts(shape.leaves, shape.half);
    shape.spines = shape.pods > 1 ? std::uint64_t{shape.half} * shape.half : 0;
  }
  return shape;
}

}  // namespace

// Port 1 and on of a switch lead down, those after them up. Names: level from below, number.
void build_fat_tree(PresetArguments& arguments, TopologyBuilder& builder) {
  const TreeShape shape = take_shape(arguments);
  const std::uint32_t half = shape.half;
  const std::uint64_t middles = shape.pods * half;
  const std::uint64_t switches = shape.leaves + middles + shape.spines;
  if (builder.begin(shape.hcas, switches, shape.ports, arguments) != Status::Ok) return;
  const std::uint32_t first_leaf = builder.hca_count();
  const auto add = [&](std::uint32_t level, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      builder.add_switch(fmt::format("switch-{}-{}", level, i), shape.ports);
    }
  };
  const auto first_middle = first_leaf + static_cast<std::uint32_t>(shape.leaves);
  const auto first_spine = first_middle + static_cast<std::uint32_t>(middles);
  add(1, shape.leaves);
  add(2, middles);
  add(shape.levels, shape.spines);
  for (std::uint32_t i = 0; i < builder.hca_count(); ++i) {
    builder.connect({i, 1}, {first_leaf + i / half, i % half + 1});
  }
  for (std::uint32_t leaf = 0; leaf < shape.leaves; ++leaf) {
    const std::uint32_t pod = leaf / half;
    for (std::uint32_t up = 0; up < half && (shape.levels == 3 || shape.spines != 0); ++up) {
      // Of two levels all leaves are below the same switches, of three those of a pod.
      const TopologyEnd above = shape.levels == 2
                                    ? TopologyEnd{first_spine + up, leaf + 1}
                                    : TopologyEnd{first_middle + pod * half + up, leaf % half + 1};
      builder.connect({first_leaf + leaf, half + up + 1}, above);
    }
  }
  for (std::uint32_t middle = 0; middle < middles && shape.spines != 0; ++middle) {
    for (std::uint32_t up = 0; up < half; ++up) {
      builder.connect({first_middle + middle, half + up + 1},
                      {first_spine + middle % half * half + up, middle / half + 1});
    }
  }
}

}  // namespace ib::fabric
