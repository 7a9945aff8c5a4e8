// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way of data packets through the switches of a subnet: by their tables, over links that are
// Active, through ports that let the partition pass [IBA1 18.2.4].
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/graph.h"
#include "verbs/cause.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ib::fabric {

struct DataWay {
  // By which packets leave an element and come to the next one, in turn; from the sender's port on.
  // Of a way that ends too early: those that packets have passed.
  std::vector<std::uint32_t> ports;
  const Port* end = nullptr;  // that has the LID; nullptr: packets do not come there,
  verbs::control::Cause stop = verbs::control::Cause::None;  // for this reason,
  std::uint32_t stop_at = kNoIndex;                          // and end at this port
  verbs::Mtu mtu = verbs::Mtu::B4096;                        // the least of its links
  // Programs have no queue pairs at a switch.
  bool leads_to_adapter() const { return end != nullptr && end->device_index != kNoIndex; }
  std::uint16_t levels = 0xffff;  // service levels that have a virtual lane everywhere, a bit each
};

// `from`: a port of a channel adapter.
DataWay find_data_way(Graph& graph, Port& from, std::uint16_t lid, std::uint16_t pkey);

// The ways to the members of a multicast group.
struct GroupWays {
  std::vector<DataWay> ends;           // one for each end port that packets come to
  std::vector<std::uint32_t> ports;    // all, each pair once
  std::vector<std::uint32_t> refused;  // by which copies do not go on, or do not come
};
// By the multicast tables of the switches. Only ports are found that packets come to.
GroupWays find_group_ways(Graph& graph, Port& from, std::uint16_t lid, std::uint16_t pkey);

// Whether ways begin at this port: its cable leads to a switch.
bool is_behind_switch(const Graph& graph, const Port& port);

}  // namespace ib::fabric
