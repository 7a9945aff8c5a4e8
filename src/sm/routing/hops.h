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

// Two switches: where a way begins, and where it leads to.
struct Pair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

class HopTable {
 public:
  static constexpr unsigned kMostHops = 126;

  // The shortest ways.
  void compute(const Graph& graph);
  // Up, then down. `place`: by switch, its place in the order; 0 is the uppermost.
  void compute_up_down(const Graph& graph, std::vector<std::uint32_t> place);
  // These switches have lost links, and nothing else of the graph has changed. Hops stay where a
  // way is left, also if another one has become shorter. Adds the pairs that have lost all their
  // ways, whether they have others now or none.
  void lose(const Graph& graph, std::span<const std::uint32_t> ends, std::vector<Pair>& changed);

  bool is_reached(std::uint32_t from, std::uint32_t to) const { return cell(from, to) != kFar; }
  // Whether ways between all pairs of switches with channel adapters are there.
  bool joins_adapters(const Graph& graph) const;
  // Calls `use` for each neighbor of `from` by which a way to another switch may begin.
  template <class Use>
  void each_first(const Graph& graph, std::uint32_t from, std::uint32_t to, const Use& use) const {
    const std::uint8_t here = cell(from, to);
    if (here == kFar) return;
    for (const Neighbor& neighbor : graph.switches[from].neighbors) {
      if (is_first(from, here, neighbor.to, to)) use(neighbor);
    }
  }

 private:
  // Whether a way to another switch may begin by this neighbor. `here`: the cell of the two, which
  // have a way. A neighbor that has none counts as one hop too far.
  bool is_first(std::uint32_t from, std::uint8_t here, std::uint32_t neighbor,
                std::uint32_t to) const {
    const std::uint8_t there = cell(neighbor, to);
    if ((there >> 1) + 1 != here >> 1) return false;
    if (place_.empty()) return true;
    const bool is_up = is_above(neighbor, from);
    return (here & 1) != 0 ? is_up : !is_up && (there & 1) == 0;
  }
  bool is_above(std::uint32_t a, std::uint32_t b) const { return place_[a] < place_[b]; }
  bool has_first(const Graph& graph, std::uint32_t from, std::uint32_t to) const;
  void drop(const Graph& graph, std::uint32_t to, std::vector<std::uint32_t>& dropped);
  void find_shortest(const Graph& graph, std::uint32_t to, std::span<const std::uint32_t> dropped);
  void find_up_first(const Graph& graph, std::uint32_t to, std::vector<std::uint32_t>& dropped);
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
