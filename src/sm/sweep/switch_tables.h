// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SwitchTables: what a manager has written into switches, and the blocks that have to be written so
// that they have what is wanted: linear and multicast tables, and those from service levels to
// lanes.
//
// Of the linear tables, which are large, it keeps a hash of each block. A switch whose tables are
// not known is given all of them.
#pragma once

#include "sm/routing/engine.h"
#include "sm/routing/multicast.h"
#include "sm/subnet/subnet.h"
#include "sm/sweep/request.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

namespace ib::sm {

// A multicast group: its LID, and its members by port GUID.
struct MulticastGroup {
  std::uint16_t lid = 0;
  std::vector<std::uint64_t> members;
};

class SwitchTables {
 public:
  explicit SwitchTables(Subnet& subnet) : subnet_(subnet) {}

  // All of them have to be written again.
  void forget_all() { written_.clear(); }
  // The tables that are wanted from now on. `node_of`: by switch of the graph.
  void plan(const Graph& graph, const Engine& engine, const std::vector<std::uint32_t>& node_of,
            const std::vector<MulticastGroup>& groups);
  // Adds the requests for one switch of the graph. `linear`: its linear table may have changed.
  void compare(std::uint32_t at, bool linear, std::deque<Request>& requests);
  // Returns false if the switch does not have what was written.
  bool on_answer(const Request& request, const Answer* answer);

 private:
  using GroupBlock = std::array<Be16, mad::kGroupsPerBlock>;
  using GroupBlocks = std::map<std::uint32_t, GroupBlock>;  // by attribute modifier
  struct Written {
    std::vector<std::uint64_t> linear;  // hashes by block; 0: not known
    GroupBlocks groups;
    std::unordered_map<std::uint32_t, std::uint64_t> lanes;  // by attribute modifier
  };
  struct Places {  // switches of the graph by node; end ports by GUID
    std::vector<std::uint32_t> switch_of{};
    std::unordered_map<std::uint64_t, std::uint32_t> ports{};
  };
  Places places() const;
  void plan_group(const MulticastGroup& group, const Places& places);
  void compare_linear(std::uint32_t at, std::deque<Request>& requests);
  void compare_groups(std::uint32_t at, std::deque<Request>& requests);
  void compare_lanes(std::uint32_t at, std::deque<Request>& requests);
  Request request_to(std::uint32_t at, std::uint16_t attribute, std::uint32_t modifier) const;
  Written& written_at(std::uint32_t node);

  Subnet& subnet_;
  const Graph* graph_ = nullptr;
  const Engine* engine_ = nullptr;
  std::vector<std::uint32_t> node_of_;  // by switch of the graph
  std::vector<Written> written_;        // by node
  std::vector<GroupBlocks> groups_;     // by switch of the graph: wanted
  std::vector<std::uint8_t> table_;
};

}  // namespace ib::sm
