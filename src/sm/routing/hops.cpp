// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/hops.h"

#include <algorithm>
#include <functional>
#include <queue>
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

// --- After a loss ---

bool HopTable::has_first(const Graph& graph, std::uint32_t from, std::uint32_t to) const {
  const std::uint8_t here = cell(from, to);
  return std::ranges::any_of(graph.switches[from].neighbors, [&](const Neighbor& neighbor) {
    return is_first(from, here, neighbor.to, to);
  });
}

// In: switches that may have lost their ways. Out: those that have, with all that had theirs over
// them. Hops decrease on each way, so that no two hold each other up.
void HopTable::drop(const Graph& graph, std::uint32_t to, std::vector<std::uint32_t>& dropped) {
  std::vector<std::uint32_t> doubtful = std::exchange(dropped, {});
  while (!doubtful.empty()) {
    const std::uint32_t at = doubtful.back();
    doubtful.pop_back();
    if (at == to || cell(at, to) == kFar || has_first(graph, at, to)) continue;
    for (const Neighbor& neighbor : graph.switches[at].neighbors) {
      const std::uint8_t there = cell(neighbor.to, to);
      if (there != kFar && is_first(neighbor.to, there, at, to)) doubtful.push_back(neighbor.to);
    }
    cells_[std::size_t{at} * size_ + to] = kFar;
    dropped.push_back(at);
  }
}

// The shortest ways of those that have none; with an order, ways that only go down.
void HopTable::find_shortest(const Graph& graph, std::uint32_t to,
                             std::span<const std::uint32_t> dropped) {
  const auto leads_on = [&](std::uint32_t from, std::uint32_t next) {
    const std::uint8_t there = cell(next, to);
    return there != kFar && (place_.empty() || (is_above(from, next) && (there & 1) == 0));
  };
  using Found = std::pair<unsigned, std::uint32_t>;  // hops, switch
  std::priority_queue<Found, std::vector<Found>, std::greater<>> found;
  for (const std::uint32_t at : dropped) {
    unsigned best = kMostHops + 1;
    for (const Neighbor& neighbor : graph.switches[at].neighbors) {
      if (leads_on(at, neighbor.to)) best = std::min(best, (cell(neighbor.to, to) >> 1) + 1u);
    }
    if (best <= kMostHops) found.emplace(best, at);
  }
  while (!found.empty()) {
    const auto [hops, at] = found.top();
    found.pop();
    if (cell(at, to) != kFar) continue;
    set(at, to, hops, false);
    if (hops == kMostHops) continue;
    for (const Neighbor& neighbor : graph.switches[at].neighbors) {
      const bool is_open = cell(neighbor.to, to) == kFar && leads_on(neighbor.to, at);
      if (is_open) found.emplace(hops + 1, neighbor.to);
    }
  }
}

void HopTable::find_up_first(const Graph& graph, std::uint32_t to,
                             std::vector<std::uint32_t>& dropped) {
  std::ranges::sort(dropped, {}, [&](std::uint32_t at) { return place_[at]; });
  for (const std::uint32_t at : dropped) {
    if (cell(at, to) != kFar) continue;
    unsigned best = kMostHops + 1;
    for (const Neighbor& neighbor : graph.switches[at].neighbors) {
      const std::uint8_t there = cell(neighbor.to, to);
      if (there != kFar && is_above(neighbor.to, at)) best = std::min(best, (there >> 1) + 1u);
    }
    if (best <= kMostHops) set(at, to, best, true);
  }
}

void HopTable::lose(const Graph& graph, std::span<const std::uint32_t> ends,
                    std::vector<Pair>& changed) {
  std::vector<std::uint32_t> dropped;
  for (std::uint32_t to = 0; to < size_; ++to) {
    dropped.assign(ends.begin(), ends.end());
    drop(graph, to, dropped);
    if (dropped.empty()) continue;
    find_shortest(graph, to, dropped);
    if (!place_.empty()) find_up_first(graph, to, dropped);
    for (const std::uint32_t at : dropped) changed.push_back({at, to});
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
