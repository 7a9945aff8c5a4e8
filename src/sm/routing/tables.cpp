// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/tables.h"

#include "sm/subnet/subnet.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ib::sm {
namespace {

// Round and round among the same ports; when others come, the ones with the least load are first.
class Balance {
 public:
  void choose_among(const std::vector<std::uint8_t>& ports) {
    if (ports == last_) return;
    last_ = ports;
    order_ = ports;
    std::ranges::sort(order_, [&](std::uint8_t a, std::uint8_t b) {
      return load_[a] != load_[b] ? load_[a] < load_[b] : a < b;
    });
    next_ = 0;
  }
  // A port of those; packets to channel adapters are a load.
  std::uint8_t take(bool is_load) {
    const std::uint8_t port = order_[next_];
    if (!is_load) return port;
    ++load_[port];
    next_ = next_ + 1 < order_.size() ? next_ + 1 : 0;
    return port;
  }

 private:
  std::array<std::uint32_t, 256> load_{};
  std::vector<std::uint8_t> last_, order_;
  std::size_t next_ = 0;
};

void fill_own(const GraphSwitch& own, std::span<std::uint8_t> table) {
  for (const Destination& destination : own.destinations) {
    for (std::uint32_t i = 0; i < destination.count; ++i) {
      table[destination.lid + i] = destination.port;
    }
  }
}

// `take` chooses a port: it gets the LID and whether that is of a channel adapter.
template <class Begin, class Take>
void fill(const Graph& graph, const HopTable& hops, const HopTable* detour, std::uint32_t at,
          std::span<std::uint8_t> table, const Begin& begin, const Take& take) {
  std::fill(table.begin(), table.end(), kNoRoute);
  fill_own(graph.switches[at], table);
  std::vector<std::uint8_t> ports;
  for (std::uint32_t to = 0; to < graph.size(); ++to) {
    if (to == at || graph.switches[to].destinations.empty()) continue;
    ports.clear();
    each_first_port(graph, hops, detour, at, to, [&](std::uint8_t port) { ports.push_back(port); });
    if (ports.empty()) continue;
    begin(ports);
    for (const Destination& destination : graph.switches[to].destinations) {
      for (std::uint32_t i = 0; i < destination.count; ++i) {
        const auto lid = static_cast<std::uint16_t>(destination.lid + i);
        table[lid] = take(ports, lid, destination.is_adapter());
      }
    }
  }
}

}  // namespace

std::uint8_t Loads::take_least(std::span<const std::uint8_t> ports, bool is_load) {
  if (by_port_.empty()) {
    by_port_.resize(256);
    for (const GraphSwitch& each : graph_.switches) {
      for (const Destination& destination : each.destinations) {
        if (!destination.is_adapter()) continue;
        for (std::uint32_t i = 0; i < destination.count; ++i) {
          ++by_port_[table_[destination.lid + i]];
        }
      }
    }
  }
  const std::uint8_t least =
      *std::ranges::min_element(ports, {}, [&](std::uint8_t port) { return by_port_[port]; });
  if (is_load) ++by_port_[least];
  return least;
}

void fill_balanced(const Graph& graph, const HopTable& hops, const HopTable* detour,
                   std::uint32_t at, std::span<std::uint8_t> table) {
  Balance balance;
  fill(
      graph, hops, detour, at, table,
      [&](const std::vector<std::uint8_t>& ports) { balance.choose_among(ports); },
      [&](const std::vector<std::uint8_t>&, std::uint16_t, bool is_load) {
        return balance.take(is_load);
      });
}

void fill_by_ordinal(const Graph& graph, const HopTable& hops, const HopTable* detour,
                     std::uint32_t at, std::span<const std::uint32_t> ordinals,
                     std::uint32_t divisor, std::span<std::uint8_t> table) {
  fill(
      graph, hops, detour, at, table, [](const std::vector<std::uint8_t>&) {},
      [&](const std::vector<std::uint8_t>& ports, std::uint16_t lid, bool) {
        return ports[ordinals[lid] / divisor % ports.size()];
      });
}

}  // namespace ib::sm
