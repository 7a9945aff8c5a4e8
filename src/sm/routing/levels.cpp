// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/levels.h"

#include <algorithm>
#include <numeric>

namespace ib::sm {
namespace {

constexpr std::uint32_t kFar = 0xffffffffu;

// Distances from the switches in `queue`, which have one.
void spread(const Graph& graph, std::vector<std::uint32_t>& queue,
            std::vector<std::uint32_t>& distance) {
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Neighbor& neighbor : graph.switches[queue[i]].neighbors) {
      if (distance[neighbor.to] != kFar) continue;
      distance[neighbor.to] = distance[queue[i]] + 1;
      queue.push_back(neighbor.to);
    }
  }
}

}  // namespace

std::vector<std::uint32_t> levels_of(const Graph& graph) {
  std::vector<std::uint32_t> level(graph.size(), kFar);
  std::vector<std::uint32_t> queue;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (!graph.switches[i].has_adapters) continue;
    level[i] = 0;
    queue.push_back(i);
  }
  spread(graph, queue, level);
  std::ranges::replace(level, kFar, 0u);
  return level;
}

std::vector<std::uint32_t> order_by_level(const std::vector<std::uint32_t>& levels) {
  std::vector<std::uint32_t> from_above(levels.size());
  std::iota(from_above.begin(), from_above.end(), 0u);
  std::ranges::stable_sort(from_above, std::greater{}, [&](std::uint32_t i) { return levels[i]; });
  std::vector<std::uint32_t> place(levels.size());
  for (std::uint32_t i = 0; i < from_above.size(); ++i) place[from_above[i]] = i;
  return place;
}

// The root is a switch far from adapters, with the most cables of those.
std::vector<std::uint32_t> order_by_root(const Graph& graph) {
  const std::vector<std::uint32_t> levels = levels_of(graph);
  std::vector<std::uint32_t> wanted(graph.size());
  std::iota(wanted.begin(), wanted.end(), 0u);
  std::ranges::stable_sort(wanted, [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t i) {
      return std::pair(levels[i], graph.switches[i].links.size());
    };
    return key(a) > key(b);
  });
  std::vector<std::uint32_t> distance(graph.size(), kFar);
  std::vector<std::uint32_t> from_above;
  for (const std::uint32_t root : wanted) {
    if (distance[root] != kFar) continue;
    std::vector<std::uint32_t> queue{root};
    distance[root] = 0;
    spread(graph, queue, distance);
    from_above.insert(from_above.end(), queue.begin(), queue.end());
  }
  std::vector<std::uint32_t> place(graph.size());
  for (std::uint32_t i = 0; i < from_above.size(); ++i) place[from_above[i]] = i;
  return place;
}

}  // namespace ib::sm
