// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HopTable: by pairs of switches, how many hops a way has, and how it begins. One byte each.
//
// With an order of the switches each link has an upper end, and a way goes up first, then down, and
// never up again: so no dependency of buffers is a circle. From a switch that has a way down it
// goes down, even if one up and down is shorter, since packets come there from above.
#pragma once

#include "sm/routing/graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ib::sm {

class HopTable {
 public:
  static constexpr unsigned kMostHops = 126;

  // The shortest ways.
  void compute(const Graph& graph);
  // Up, then down. `place`: by switch, its place in the order; 0 is the uppermost.
  void compute_up_down(const Graph& graph, std::vector<std::uint32_t> place);

  bool is_reached(std::uint32_t from, std::uint32_t to) const { return cell(from, to) != kFar; }
  // Whether ways between all pairs of switches with channel adapters are there.
  bool joins_adapters(const Graph& graph) const;
  // Calls `use` for each neighbor of `from` by which a way to another switch may begin.
  template <class Use>
  void each_first(const Graph& graph, std::uint32_t from, std::uint32_t to, const Use& use) const {
    const std::uint8_t here = cell(from, to);
    if (here == kFar) return;
    for (const Neighbor& neighbor : graph.switches[from].neighbors) {
      const std::uint8_t there = cell(neighbor.to, to);
      if (there == kFar || (there >> 1) + 1 != here >> 1) continue;
      const bool is_up = !place_.empty() && place_[neighbor.to] < place_[from];
      const bool fits = place_.empty() || ((here & 1) != 0 ? is_up : !is_up && (there & 1) == 0);
      if (fits) use(neighbor);
    }
  }

 private:
  static constexpr std::uint8_t kFar = 0xff;  // no way
  // Hops, and in the lowest bit whether the way begins upwards.
  std::uint8_t cell(std::uint32_t from, std::uint32_t to) const {
    return cells_[std::size_t{from} * size_ + to];
  }
  void set(std::uint32_t from, std::uint32_t to, unsigned hops, bool is_up) {
    cells_[std::size_t{from} * size_ + to] = static_cast<std::uint8_t>(hops << 1 | (is_up ? 1 : 0));
  }
  void reset(std::size_t size);

  std::size_t size_ = 0;
  std::vector<std::uint8_t> cells_;
  std::vector<std::uint32_t> place_;  // empty: no order
};

}  // namespace ib::sm
