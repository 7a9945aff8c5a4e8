// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Follows the ways of data through tables and notes which channel waits for which; then looks for a
// circle by depth. For tests of engines, and of what a manager has written.
#include "sm/routing/credit_loops.h"

#include "sm/routing/hops.h"
#include "sm/subnet/subnet.h"

#include <fmt/format.h>

#include <set>

namespace ib::sm {
namespace {

constexpr std::uint32_t kLanes = 16;

const Link* link_by(const GraphSwitch& at, std::uint8_t port) {
  for (const Link& link : at.links) {
    if (link.port == port) return &link;
  }
  return nullptr;
}

class Dependencies {
 public:
  Dependencies(const Graph& graph, const Tables& tables, const Engine& engine)
      : graph_(graph),
        tables_(tables),
        engine_(engine),
        after_(graph.size() * 256 * kLanes),
        seen_(graph.size()) {
    links_.resize(graph.size() * 256);
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      for (const Link& link : graph.switches[i].links) links_[i * 256 + link.port] = &link;
    }
  }

  // A way that meets one to the same LID goes on as that one did, unless their lanes may differ.
  void follow(std::uint32_t from, std::uint32_t to, std::uint16_t lid) {
    const std::uint8_t level = engine_.service_level(from, to);
    std::uint32_t before = kNone;
    std::uint8_t in = 0;
    std::uint32_t at = from;
    for (std::size_t hop = 0; at != to && hop <= graph_.size(); ++hop) {
      const std::uint8_t out = tables_[at][lid];
      const Link* link = links_[at * 256 + out];
      if (link == nullptr) return;
      const std::uint8_t lane = engine_.lane(at, in, out, level);
      const std::uint32_t channel = (at * 256 + out) * kLanes + lane;
      if (before != kNone) after_[before].insert(channel);
      if (seen_[at] == lid && !engine_.has_lanes()) return;
      seen_[at] = lid;
      before = channel;
      in = link->to_port;
      at = link->to;
    }
  }

  std::string find_circle() {
    std::vector<std::uint8_t> state(after_.size());  // 1: on the way, 2: no circle behind it
    std::vector<std::pair<std::uint32_t, std::set<std::uint32_t>::const_iterator>> way;
    for (std::uint32_t start = 0; start < after_.size(); ++start) {
      if (state[start] != 0 || after_[start].empty()) continue;
      state[start] = 1;
      way.emplace_back(start, after_[start].begin());
      while (!way.empty()) {
        auto& [channel, next] = way.back();
        if (next == after_[channel].end()) {
          state[channel] = 2;
          way.pop_back();
          continue;
        }
        const std::uint32_t to = *next++;
        if (state[to] == 1) return words(to);
        if (state[to] != 0) continue;
        state[to] = 1;
        way.emplace_back(to, after_[to].begin());
      }
    }
    return {};
  }

 private:
  static std::string words(std::uint32_t channel) {
    return fmt::format("a circle of buffers leads over port {} of switch {}, lane {}",
                       channel / kLanes % 256, channel / kLanes / 256, channel % kLanes);
  }

  const Graph& graph_;
  const Tables& tables_;
  const Engine& engine_;
  std::vector<const Link*> links_;
  std::vector<std::set<std::uint32_t>> after_;
  std::vector<std::uint16_t> seen_;  // by switch: the last LID that a way from it was followed for
};

}  // namespace

Tables fill_tables(const Graph& graph, const Engine& engine) {
  Tables tables(graph.size(), std::vector<std::uint8_t>(std::size_t{graph.top_lid} + 1, kNoRoute));
  for (std::uint32_t i = 0; i < graph.size(); ++i) engine.fill(i, tables[i]);
  return tables;
}

std::string find_credit_loop(const Graph& graph, const Tables& tables, const Engine& engine) {
  Dependencies dependencies(graph, tables, engine);
  const auto follow_all = [&](std::uint32_t to, std::uint16_t lid) {
    for (std::uint32_t from = 0; from < graph.size(); ++from) {
      if (graph.switches[from].has_adapters) dependencies.follow(from, to, lid);
    }
  };
  for (std::uint32_t to = 0; to < graph.size(); ++to) {
    for (const Destination& destination : graph.switches[to].destinations) {
      for (std::uint32_t i = 0; destination.is_adapter() && i < destination.count; ++i) {
        follow_all(to, static_cast<std::uint16_t>(destination.lid + i));
      }
    }
  }
  return dependencies.find_circle();
}

std::string find_unreached(const Graph& graph, const Tables& tables) {
  HopTable joined;
  joined.compute(graph);
  for (std::uint32_t from = 0; from < graph.size(); ++from) {
    for (std::uint32_t to = 0; to < graph.size(); ++to) {
      if (!joined.is_reached(from, to)) continue;
      for (const Destination& destination : graph.switches[to].destinations) {
        std::uint32_t at = from;
        for (std::size_t hop = 0; at != to && hop <= graph.size(); ++hop) {
          const Link* link = link_by(graph.switches[at], tables[at][destination.lid]);
          if (link == nullptr) break;
          at = link->to;
        }
        if (at == to && tables[to][destination.lid] == destination.port) continue;
        return fmt::format("LID {} at switch {} is not reached from switch {}: stops at {}",
                           destination.lid, to, from, at);
      }
    }
  }
  return {};
}

}  // namespace ib::sm
