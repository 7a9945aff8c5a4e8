// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SwitchTables: what a manager has written into switches, and the blocks that have to be written so
// that they have what is wanted: linear and multicast tables, and those from service levels to
// lanes.
//
// A switch whose tables are not known is given all of them.
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

// A multicast group: its LID, and its members by port GUID. `senders` only send.
struct MulticastGroup {
  std::uint16_t lid = 0;
  std::vector<std::uint64_t> members;
  std::vector<std::uint64_t> senders{};
  bool operator==(const MulticastGroup&) const = default;
};

class SwitchTables {
 public:
  explicit SwitchTables(Subnet& subnet) : subnet_(subnet) {}

  // All of them have to be written again.
  void forget_all();
  // The tables that are wanted from now on. `node_of`: by switch of the graph.
  struct Plan {
    const Graph* graph = nullptr;
    const Engine* engine = nullptr;
    const std::vector<std::uint32_t>* node_of = nullptr;
    const std::vector<MulticastGroup>* groups = nullptr;
    bool is_new_graph = true;  // else it has lost something, or is the same
    bool has_looked = true;    // else only groups have changed
  };
  void plan(const Plan& plan);
  // Of linear tables that are all there, as the engine has filled them: what has to change.
  void renew(const StaleWays& stale);
  // Adds the requests for one switch of the graph. `anew`: the engine fills its linear table again.
  void compare(std::uint32_t at, bool anew, std::deque<Request>& requests);
  // Returns false if the switch does not have what was written.
  bool on_answer(const Request& request, const Answer* answer);

 private:
  using GroupBlock = std::array<Be16, mad::kGroupsPerBlock>;
  using GroupBlocks = std::map<std::uint32_t, GroupBlock>;  // by attribute modifier
  struct Linear {
    std::vector<std::uint8_t> wanted;
    std::vector<bool> is_written;  // by block
    std::size_t missing = 0;       // blocks that are not
    void resize(std::size_t blocks);
    void set_written(std::size_t block, bool value);
    void forget();
  };
  struct Written {
    Linear linear;
    GroupBlocks groups;
    bool has_groups = false;                                 // all that are wanted
    std::unordered_map<std::uint32_t, std::uint64_t> lanes;  // by attribute modifier
    void forget();
  };
  struct Tree {
    MulticastGroup group;
    std::vector<Member> members;
    std::map<std::uint32_t, PortSet> ports;  // by switch of the graph
  };
  void plan_groups(const std::vector<MulticastGroup>& groups, bool has_looked);
  std::vector<Member> members_of(const MulticastGroup& group) const;
  bool is_whole(const Tree& tree) const;
  void plant(const Tree& tree, bool is_wanted);
  void compare_linear(std::uint32_t at, bool anew, std::deque<Request>& requests);
  void renew_one(std::uint32_t at, std::span<const std::uint32_t> to);
  void compare_groups(std::uint32_t at, std::deque<Request>& requests);
  void compare_lanes(std::uint32_t at, std::deque<Request>& requests);
  std::size_t blocks() const { return graph_->top_lid / mad::kLinearPerBlock + 1; }  // linear ones
  Request request_to(std::uint32_t at, std::uint16_t attribute, std::uint32_t modifier) const;
  Written& written_at(std::uint32_t node);

  Subnet& subnet_;
  const Graph* graph_ = nullptr;
  const Engine* engine_ = nullptr;
  std::vector<std::uint32_t> node_of_;   // by switch of the graph
  std::vector<Written> written_;         // by node
  std::map<std::uint16_t, Tree> trees_;  // by LID
  std::vector<GroupBlocks> groups_;      // by switch of the graph: wanted
  std::vector<std::uint8_t> table_;      // that is being filled
};

}  // namespace ib::sm
