// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/hops.h"

#include <numeric>
#include <utility>

namespace ib::sm {

void HopTable::reset(std::size_t size) {
  size_ = size;
  cells_.assign(size * size, kFar);
  place_.clear();
}

void HopTable::compute(const Graph& graph) {
  reset(graph.size());
  std::vector<std::uint32_t> queue;
  for (std::uint32_t to = 0; to < size_; ++to) {
    std::uint8_t* const row = &cells_[std::size_t{to} * size_];  // links lead both ways
    queue.assign(1, to);
    row[to] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const unsigned hops = row[queue[i]] >> 1;
      if (hops == kMostHops) break;
      for (const Neighbor& neighbor : graph.switches[queue[i]].neighbors) {
        if (row[neighbor.to] != kFar) continue;
        row[neighbor.to] = static_cast<std::uint8_t>((hops + 1) << 1);
        queue.push_back(neighbor.to);
      }
    }
  }
}

namespace {

// The upper neighbors of all switches, in one array.
struct UpperNeighbors {
  std::vector<std::uint32_t> first, to;
  UpperNeighbors(const Graph& graph, std::span<const std::uint32_t> place) {
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      first.push_back(static_cast<std::uint32_t>(to.size()));
      for (const Neighbor& neighbor : graph.switches[i].neighbors) {
        if (place[neighbor.to] < place[i]) to.push_back(neighbor.to);
      }
    }
    first.push_back(static_cast<std::uint32_t>(to.size()));
  }
  std::span<const std::uint32_t> of(std::uint32_t at) const {
    return std::span(to).subspan(first[at], first[at + 1] - first[at]);
  }
};

}  // namespace

void HopTable::compute_up_down(const Graph& graph, std::vector<std::uint32_t> place) {
  reset(graph.size());
  place_ = std::move(place);
  const UpperNeighbors upper(graph, place_);
  std::vector<std::uint32_t> from_above(size_);
  for (std::uint32_t i = 0; i < size_; ++i) from_above[place_[i]] = i;
  constexpr unsigned kNoWay = kMostHops + 1;
  std::vector<std::uint8_t> hops(size_);
  std::vector<std::uint32_t> queue;
  for (std::uint32_t to = 0; to < size_; ++to) {
    std::fill(hops.begin(), hops.end(), std::uint8_t{kNoWay});
    hops[to] = 0;
    queue.assign(1, to);
    set(to, to, 0, false);
    for (std::size_t i = 0; i < queue.size(); ++i) {  // those above it: ways that only go down
      for (const std::uint32_t above : upper.of(queue[i])) {
        const unsigned next = hops[queue[i]] + 1u;
        if (hops[above] != kNoWay || next > kMostHops) continue;
        hops[above] = static_cast<std::uint8_t>(next);
        set(above, to, next, false);
        queue.push_back(above);
      }
    }
    for (const std::uint32_t at : from_above) {  // the others go up to one of those
      if (hops[at] != kNoWay) continue;
      unsigned best = kNoWay;
      for (const std::uint32_t above : upper.of(at)) best = std::min(best, hops[above] + 1u);
      if (best >= kNoWay) continue;
      hops[at] = static_cast<std::uint8_t>(best);
      set(at, to, best, true);
    }
  }
}

bool HopTable::joins_adapters(const Graph& graph) const {
  std::vector<std::uint32_t> with;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (graph.switches[i].has_adapters) with.push_back(i);
  }
  for (const std::uint32_t from : with) {
    for (const std::uint32_t to : with) {
      if (!is_reached(from, to)) return false;
    }
  }
  return true;
}

}  // namespace ib::sm
