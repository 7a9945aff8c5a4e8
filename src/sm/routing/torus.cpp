// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shape is read from the cables first; then each switch gets its table by coordinates, and each
// pair its service level and lanes.
#include "sm/routing/torus.h"

#include "sm/subnet/subnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ib::sm {

std::uint32_t Torus::behind(std::uint32_t at, std::uint8_t port) const {
  for (const Link& link : graph_->switches[at].links) {
    if (link.port == port) return link.to;
  }
  return kNone;
}

// The pairs of port numbers that cables join.
bool Torus::find_dimensions(std::string& reason) {
  dimensions_.clear();
  std::set<std::pair<std::uint8_t, std::uint8_t>> pairs;
  for (const GraphSwitch& each : graph_->switches) {
    for (const Link& link : each.links) {
      pairs.insert({std::min(link.port, link.to_port), std::max(link.port, link.to_port)});
    }
  }
  std::set<std::uint8_t> ports;
  for (const auto& [next, before] : pairs) {
    if (next == before || !ports.insert(next).second || !ports.insert(before).second) {
      reason = fmt::format("a cable joins ports {} and {}, others join one of them to others", next,
                           before);
      return false;
    }
    dimensions_.push_back({next, before});
  }
  if (dimensions_.empty() || dimensions_.size() > kMostDimensions) {
    reason = fmt::format("its cables lead in {} dimensions; it can be 1 to {}", dimensions_.size(),
                         kMostDimensions);
    return false;
  }
  return true;
}

// How long each dimension is, from the ring or line that a switch is part of.
bool Torus::measure(std::uint32_t first, std::string& reason) {
  for (Dimension& dimension : dimensions_) {
    std::uint32_t at = first;
    dimension.size = 1;
    const auto walk = [&](std::uint8_t port) {
      for (at = behind(first, port); at != kNone && at != first; at = behind(at, port)) {
        if (++dimension.size > graph_->size()) return;
      }
    };
    walk(dimension.next);
    dimension.is_ring = at == first;
    if (!dimension.is_ring) walk(dimension.before);
  }
  std::uint64_t all = 1;
  for (const Dimension& dimension : dimensions_) all *= dimension.size;
  if (all == graph_->size()) return true;
  reason = fmt::format("its dimensions make {} switches, and there are {}", all, graph_->size());
  return false;
}

std::uint32_t Torus::step(const Dimension& dimension, std::uint32_t place, bool is_forth) const {
  if (is_forth) return place + 1 < dimension.size ? place + 1 : 0;
  return place > 0 ? place - 1 : dimension.size - 1;
}

// From one switch on; that of a line is as far from its beginning as switches are before it.
bool Torus::give_places(std::uint32_t first, std::string& reason) {
  std::vector<bool> is_placed(graph_->size());
  places_.assign(graph_->size(), {});
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    if (dimensions_[d].is_ring) continue;
    for (std::uint32_t at = behind(first, dimensions_[d].before); at != kNone;
         at = behind(at, dimensions_[d].before)) {
      ++places_[first][d];
    }
  }
  std::vector<std::uint32_t> queue{first};
  is_placed[first] = true;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      for (const bool is_forth : {true, false}) {
        const std::uint32_t to =
            behind(queue[i], is_forth ? dimensions_[d].next : dimensions_[d].before);
        if (to == kNone || is_placed[to]) continue;
        is_placed[to] = true;
        places_[to] = places_[queue[i]];
        places_[to][d] = step(dimensions_[d], places_[to][d], is_forth);
        queue.push_back(to);
      }
    }
  }
  if (queue.size() == graph_->size()) return true;
  reason = "not all switches are joined";
  return false;
}

bool Torus::check_places(std::string& reason) const {
  std::set<Place> all(places_.begin(), places_.end());
  bool fits = all.size() == places_.size();
  for (std::uint32_t at = 0; fits && at < graph_->size(); ++at) {
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      const Dimension& dimension = dimensions_[d];
      const bool is_last = !dimension.is_ring && places_[at][d] + 1 == dimension.size;
      const std::uint32_t to = behind(at, dimension.next);
      if (is_last != (to == kNone)) fits = false;
      if (to == kNone) continue;
      Place next = places_[at];
      next[d] = step(dimension, next[d], true);
      if (places_[to] != next) fits = false;
    }
  }
  if (!fits) reason = "its cables make no complete grid: one is missing, or leads elsewhere";
  return fits;
}

bool Torus::prepare(const Graph& graph, std::string& reason) {
  graph_ = &graph;
  if (graph.size() == 0) {
    reason = "there is no switch";
    return false;
  }
  return find_dimensions(reason) && measure(0, reason) && give_places(0, reason) &&
         check_places(reason);
}

bool Torus::goes_forth(const Dimension& dimension, std::uint32_t from, std::uint32_t to) const {
  if (!dimension.is_ring) return to > from;
  const std::uint32_t forth = (to + dimension.size - from) % dimension.size;
  return forth <= dimension.size - forth;
}

void Torus::fill(std::uint32_t at, std::span<std::uint8_t> table) const {
  std::fill(table.begin(), table.end(), kNoRoute);
  for (std::uint32_t to = 0; to < graph_->size(); ++to) {
    std::uint8_t out = 0;
    for (std::size_t d = 0; d < dimensions_.size() && out == 0; ++d) {
      const std::uint32_t from = places_[at][d];
      if (from == places_[to][d]) continue;
      const Dimension& dimension = dimensions_[d];
      out = goes_forth(dimension, from, places_[to][d]) ? dimension.next : dimension.before;
    }
    for (const Destination& destination : graph_->switches[to].destinations) {
      for (std::uint32_t i = 0; i < destination.count; ++i) {
        table[destination.lid + i] = to == at ? destination.port : out;
      }
    }
  }
}

// Bit d: the way passes from the last switch of dimension d to its first one, or back.
std::uint8_t Torus::service_level(std::uint32_t from, std::uint32_t to) const {
  unsigned level = 0;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const std::uint32_t a = places_[from][d];
    const std::uint32_t b = places_[to][d];
    if (a == b || !dimensions_[d].is_ring) continue;
    const bool passes_end = goes_forth(dimensions_[d], a, b) ? b < a : b > a;
    if (passes_end) level |= 1u << d;
  }
  return static_cast<std::uint8_t>(level);
}

std::uint8_t Torus::lane(std::uint32_t /*at*/, std::uint8_t /*in*/, std::uint8_t out,
                         std::uint8_t level) const {
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    if (out == dimensions_[d].next || out == dimensions_[d].before) return level >> d & 1;
  }
  return 0;
}

}  // namespace ib::sm
