// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tori and dragonflies: HCAs at every switch, whose first ports are theirs.
#include "fabric/topology/preset_parts_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ib::fabric {
namespace {

struct Grid {
  std::array<std::uint32_t, 3> sizes{1, 1, 1};
  std::uint32_t dimensions = 0;
  std::uint64_t switches = 1;
};

Grid take_grid(PresetArguments& arguments) {
  Grid grid;
  const std::string_view all = arguments.take_first();
  std::string_view text = all;
  bool is_good = !text.empty();
  while (is_good && !text.empty()) {
    const std::string_view size = text.substr(0, text.find('x'));
    is_good = grid.dimensions < 3 && text.back() != 'x' &&
              parse_decimal(size, grid.sizes[grid.dimensions]) &&
              grid.sizes[grid.dimensions] >= 1 && grid.sizes[grid.dimensions] <= kMaxTopologyLids;
    if (!is_good) break;
    grid.switches *= grid.sizes[grid.dimensions++];
    text.remove_prefix(std::min(text.size(), size.size() + 1));
  }
  if (!is_good || grid.dimensions < 2) {
    arguments.fail(Status::InvalidParameter,
                   fmt::format("its size is '{}'; it is two or three numbers from 1 to {}, as in "
                               "4x4 or 4x4x2",
                               all, kMaxTopologyLids));
  }
  return grid;
}

}  // namespace

// After those of its HCAs a switch has two ports for each dimension: to the next switch and to the
// one before. Dimension-ordered routing needs the same order everywhere.
void build_torus(PresetArguments& arguments, TopologyBuilder& builder) {
  const Grid grid = take_grid(arguments);
  const std::uint32_t links = 2 * grid.dimensions;
  const std::uint32_t hosts = arguments.take_number("hosts", 1, 1, kMaxSwitchPorts - links);
  const std::uint32_t ports = hosts + links;
  if (builder.begin(grid.switches * hosts, grid.switches, ports, arguments) != Status::Ok) return;
  const std::uint32_t first = builder.hca_count();
  for (std::uint32_t i = 0; i < grid.switches; ++i) {
    const std::array<std::uint32_t, 3> at{i % grid.sizes[0], i / grid.sizes[0] % grid.sizes[1],
                                          i / grid.sizes[0] / grid.sizes[1]};
    builder.add_switch(grid.dimensions == 2 ? fmt::format("switch-{}-{}", at[0], at[1])
                                            : fmt::format("switch-{}-{}-{}", at[0], at[1], at[2]),
                       ports);
    for (std::uint32_t n = 0; n < hosts; ++n) {
      builder.connect({i * hosts + n, 1}, {first + i, n + 1});
    }
    std::uint32_t stride = 1;
    for (std::uint32_t d = 0; d < grid.dimensions; ++d) {
      const std::uint32_t size = grid.sizes[d];
      const bool is_last = at[d] + 1 == size;
      // Two switches have one cable, not one in each direction.
      if (size > 2 || (size == 2 && !is_last)) {
        const std::uint32_t next = is_last ? i - at[d] * stride : i + stride;
        builder.connect({first + i, hosts + 2 * d + 1}, {first + next, hosts + 2 * d + 2});
      }
      stride *= size;
    }
  }
}

// The groups are joined pairwise by as many cables as their ports allow; the switches of a group
// are all joined. Ports of a switch: HCAs, its group, other groups.
void build_dragonfly(PresetArguments& arguments, TopologyBuilder& builder) {
  const std::uint32_t a = arguments.take_number("a", 4, 1, kMaxSwitchPorts);
  const std::uint32_t p = arguments.take_number("p", 2, 1, kMaxSwitchPorts);
  const std::uint32_t h = arguments.take_number("h", 2, 1, kMaxSwitchPorts);
  const std::uint32_t ports = p + a - 1 + h;
  if (ports > kMaxSwitchPorts) {
    arguments.fail(Status::InvalidParameter,
                   fmt::format("its switches need {} ports, p + a - 1 + h; they can have {}", ports,
                               kMaxSwitchPorts));
  }
  const std::uint32_t global = a * h;  // cables of a group to others
  const std::uint32_t groups = arguments.take_number("groups", global + 1, 1, global + 1);
  const std::uint64_t switches = std::uint64_t{groups} * a;
  if (builder.begin(switches * p, switches, ports, arguments) != Status::Ok) return;
  const std::uint32_t first = builder.hca_count();
  for (std::uint32_t i = 0; i < switches; ++i) {
    const std::uint32_t here = i % a;
    builder.add_switch(fmt::format("switch-{}-{}", i / a, here), ports);
    for (std::uint32_t n = 0; n < p; ++n) builder.connect({i * p + n, 1}, {first + i, n + 1});
    for (std::uint32_t other = 0; other < here; ++other) {
      builder.connect({first + i - here + other, p + here}, {first + i, p + other + 1});
    }
  }
  // Cable j of a group leads (j mod (groups - 1)) + 1 groups on, and is there a cable that leads
  // as many groups back.
  const auto end = [&](std::uint32_t group, std::uint32_t j) {
    return TopologyEnd{first + group * a + j / h, p + a + j % h};
  };
  for (std::uint32_t group = 0; group < groups; ++group) {
    for (std::uint32_t other = group + 1; other < groups; ++other) {
      const std::uint32_t on = other - group - 1;
      const std::uint32_t back = groups - 2 - on;
      for (std::uint32_t c = 0; c + groups - 2 < global; c += groups - 1) {
        builder.connect(end(group, c + on), end(other, c + back));
      }
    }
  }
}

}  // namespace ib::fabric
