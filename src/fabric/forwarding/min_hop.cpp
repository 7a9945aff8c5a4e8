// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One search over the switches from the one whose table is wanted. With each that it reaches stand
// the ports of the first one by which a shortest way may begin.
#include "fabric/forwarding/min_hop.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace ib::fabric {
namespace {

struct Reached {
  std::uint32_t distance = kNoIndex;
  PortMask first{};  // ports of the first switch
};

// By element, of switches only.
class Search {
 public:
  Search(const Graph& graph, const Element& from) : graph_(graph), reached_(graph.element_count()) {
    const std::uint32_t start = graph.port(from.first_port)->element;
    reached_[start].distance = 0;
    std::vector<std::uint32_t> level{start};
    while (!level.empty()) level = next_level(level, start);
  }

  const Reached& of(std::uint32_t element) const { return reached_[element]; }

 private:
  // All of one distance have their ports before those of the next one are looked at.
  std::vector<std::uint32_t> next_level(const std::vector<std::uint32_t>& level,
                                        std::uint32_t start) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t at : level) {
      for (const Port& port : graph_.ports_of(graph_.element(at))) {
        const Port* peer = graph_.peer_of(port);
        if (peer == nullptr || port.physical_state != kLinkUp) continue;
        if (!graph_.element_of(*peer).is_switch()) continue;
        Reached& there = reached_[peer->element];
        const std::uint32_t distance = reached_[at].distance + 1;
        if (there.distance == kNoIndex) {
          there.distance = distance;
          next.push_back(peer->element);
        }
        if (there.distance == distance) add(there.first, at, start, port);
      }
    }
    return next;
  }

  void add(PortMask& to, std::uint32_t at, std::uint32_t start, const Port& port) const {
    if (at == start) {
      to[port.number / 64] |= std::uint64_t{1} << port.number % 64;
      return;
    }
    for (std::size_t i = 0; i < to.size(); ++i) to[i] |= reached_[at].first[i];
  }

  const Graph& graph_;
  std::vector<Reached> reached_;
};

// The n-th port of a mask, counted round and round; kNoPort: it is empty.
std::uint8_t pick(const PortMask& mask, std::uint32_t n) {
  unsigned count = 0;
  for (const std::uint64_t word : mask) count += static_cast<unsigned>(std::popcount(word));
  if (count == 0) return kNoPort;
  unsigned skip = n % count;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    for (std::uint64_t word = mask[i]; word != 0; word &= word - 1) {
      if (skip-- == 0)
        return static_cast<std::uint8_t>(i * 64 + static_cast<unsigned>(std::countr_zero(word)));
    }
  }
  return kNoPort;
}

}  // namespace

void fill_by_fewest_hops(Graph& graph, const Element& element) {
  const Search search(graph, element);
  const std::uint32_t own = graph.port(element.first_port)->element;
  Switch& tables = graph.switch_of(element);
  tables.linear.clear();
  tables.facts.linear_top = 0;
  const auto set = [&](const Port& end, std::uint32_t path, std::uint8_t out) {
    const std::uint32_t lid = end.lid + path;
    tables.set_linear(lid, out);
    tables.facts.linear_top = std::max(tables.facts.linear_top, static_cast<std::uint16_t>(lid));
  };
  for (std::uint32_t i = 0; i < graph.port_count(); ++i) {
    const Port& end = *graph.port(i);
    if (end.lid == 0 || end.is_ethernet()) continue;
    const Port* at = &end;  // where it is joined to the switches
    if (!graph.element_of(end).is_switch()) at = graph.peer_of(end);
    if (at == nullptr || !graph.element_of(*at).is_switch()) continue;
    // The LIDs of a port begin with different cables, as far as there are some.
    for (std::uint32_t path = 0; path < 1u << end.lmc; ++path) {
      const std::uint32_t turn = (end.lid >> end.lmc) + path;
      const bool is_here = at->element == own;
      const std::uint8_t out = is_here ? static_cast<std::uint8_t>(at->number)
                                       : pick(search.of(at->element).first, turn);
      if (out != kNoPort) set(end, path, out);
    }
  }
}

}  // namespace ib::fabric
