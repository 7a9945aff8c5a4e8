// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which ways a loss has ended follows from the hop tables; each of them begins by another port
// then.
#include "sm/routing/hop_engine.h"

#include "sm/subnet/subnet.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <numeric>
#include <vector>

namespace ib::sm {

void HopEngine::find_detours() {
  detour_.reset();
  for (std::uint32_t from = 0; from < graph_->size(); ++from) {
    for (std::uint32_t to = 0; to < graph_->size(); ++to) {
      if (hops_.is_reached(from, to)) continue;
      detour_.emplace();
      return detour_->compute(*graph_);
    }
  }
}

// Where hops have changed, neighbors may have had ways over it.
bool HopEngine::adapt(const GraphChange& change, StaleWays& stale) {
  std::vector<Pair> changed;
  hops_.lose(*graph_, change.ends, changed);
  bool has_gaps = false;
  for (const auto& [from, to] : changed) {
    if (hops_.is_reached(from, to)) continue;
    has_gaps = true;
    if (graph_->switches[from].has_adapters && graph_->switches[to].has_adapters) return false;
  }
  if (detour_) {
    detour_->lose(*graph_, change.ends, changed);
  } else if (has_gaps) {
    find_detours();
  }
  stale.assign(graph_->size(), {});
  for (const auto& [at, to] : changed) {
    stale[at].push_back(to);
    for (const Neighbor& neighbor : graph_->switches[at].neighbors) {
      stale[neighbor.to].push_back(to);
    }
  }
  for (const std::uint32_t at : change.ends) {
    stale[at].resize(graph_->size());
    std::iota(stale[at].begin(), stale[at].end(), 0u);
  }
  for (std::vector<std::uint32_t>& each : stale) {
    each.insert(each.end(), change.arrivals.begin(), change.arrivals.end());
    std::ranges::sort(each);
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
  return true;
}

void HopEngine::renew(std::uint32_t at, std::span<const std::uint32_t> to,
                      std::span<std::uint8_t> table, std::vector<std::uint16_t>& changed) const {
  Loads loads(*graph_, table);
  for (const std::uint32_t each : to) renew_one(at, each, table, loads, changed);
}

void HopEngine::renew_one(std::uint32_t at, std::uint32_t to, std::span<std::uint8_t> table,
                          Loads& loads, std::vector<std::uint16_t>& changed) const {
  const std::vector<Destination>& destinations = graph_->switches[to].destinations;
  if (destinations.empty()) return;
  std::array<std::uint8_t, 256> ports;
  std::size_t count = 0;
  std::bitset<256> fits;
  if (at != to) {
    each_first_port(*graph_, hops_, detour(), at, to, [&](std::uint8_t port) {
      ports[count++] = port;
      fits.set(port);
    });
  }
  const auto port_for = [&](const Destination& destination, std::uint16_t lid) {
    if (at == to) return destination.port;
    if (count == 0) return kNoRoute;
    if (fits[table[lid]]) return table[lid];
    return choose(at, lid, destination.is_adapter(), std::span(ports).first(count), loads);
  };
  for (const Destination& destination : destinations) {
    for (std::uint32_t i = 0; i < destination.count; ++i) {
      const auto lid = static_cast<std::uint16_t>(destination.lid + i);
      const std::uint8_t port = port_for(destination, lid);
      if (port == table[lid]) continue;
      table[lid] = port;
      changed.push_back(lid);
    }
  }
}

std::uint8_t HopEngine::choose(std::uint32_t /*at*/, std::uint16_t /*lid*/, bool is_adapter,
                               std::span<const std::uint8_t> ports, Loads& loads) const {
  return loads.take_least(ports, is_adapter);
}

}  // namespace ib::sm
