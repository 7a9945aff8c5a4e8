// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Blocks of linear, multicast and lane tables that a switch has not yet. setup.cpp takes them, one
// switch after the other.
#include "sm/sweep/switch_tables.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace ib::sm {
namespace {

namespace attribute = mad::smp_attribute;

// Never 0.
std::uint64_t hash_of(std::span<const std::uint8_t> block) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (std::size_t i = 0; i < block.size(); i += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, block.data() + i, std::min(sizeof word, block.size() - i));
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return hash | 1;
}

// So that it is none that is wanted.
void flip(Be16& mask) {
  mask = static_cast<std::uint16_t>(~std::uint16_t{mask});
}

// VLCap [IBA1 14.2.5.6].
unsigned lanes_of(const mad::PortInfo& info) {
  constexpr std::array<std::uint8_t, 6> kLanes{1, 1, 2, 4, 8, 15};
  return kLanes[std::min<std::size_t>(info.vl_cap_init_type >> 4, kLanes.size() - 1)];
}

}  // namespace

SwitchTables::Written& SwitchTables::written_at(std::uint32_t node) {
  if (written_.size() <= node) written_.resize(std::size_t{node} + 1);
  return written_[node];
}

void SwitchTables::plan(const Graph& graph, const Engine& engine,
                        const std::vector<std::uint32_t>& node_of,
                        const std::vector<MulticastGroup>& groups) {
  graph_ = &graph;
  engine_ = &engine;
  node_of_ = node_of;
  groups_.assign(graph.size(), {});
  if (groups.empty()) return;
  const Places all = places();
  for (const MulticastGroup& group : groups) {
    if (group.lid >= mad::kFirstMulticastLid && group.lid != 0xffff) plan_group(group, all);
  }
}

SwitchTables::Places SwitchTables::places() const {
  Places places;
  places.switch_of.assign(subnet_.nodes().size(), kNone);
  for (std::uint32_t i = 0; i < node_of_.size(); ++i) places.switch_of[node_of_[i]] = i;
  for (std::uint32_t i = 0; i < subnet_.ports().size(); ++i) {
    const Port& port = subnet_.port(i);
    if (subnet_.is_end_port(port) && subnet_.is_served(port)) places.ports[port.guid] = i;
  }
  return places;
}

void SwitchTables::plan_group(const MulticastGroup& group, const Places& places) {
  std::vector<Member> members;
  for (const std::uint64_t guid : group.members) {
    const auto found = places.ports.find(guid);
    if (found == places.ports.end()) continue;
    const Port& port = subnet_.port(found->second);
    const bool is_switch = subnet_.node_of(port).is_switch();
    if (!is_switch && port.peer == kNone) continue;
    const Port& at = is_switch ? port : subnet_.port(port.peer);
    const std::uint32_t to = places.switch_of[at.node];
    if (to != kNone) members.push_back({to, at.number});
  }
  const std::uint32_t index = group.lid - std::uint32_t{mad::kFirstMulticastLid};
  for (const auto& [at, ports] : make_tree(*graph_, members, index)) {
    for (std::uint32_t position = 0; position < 256 / mad::kPortsPerPosition; ++position) {
      const auto mask = static_cast<std::uint16_t>(ports[position / 4] >> position % 4 * 16);
      if (mask == 0) continue;
      const auto modifier =
          static_cast<std::uint32_t>(position << 28 | index / mad::kGroupsPerBlock);
      groups_[at][modifier][index % mad::kGroupsPerBlock] = mask;
    }
  }
}

void SwitchTables::compare(std::uint32_t at, bool linear, std::deque<Request>& requests) {
  Node& node = subnet_.node(node_of_[at]);
  if (!node.has_tables) written_at(node_of_[at]) = {};
  node.has_tables = true;
  if (linear) compare_linear(at, requests);
  compare_groups(at, requests);
  compare_lanes(at, requests);
}

Request SwitchTables::request_to(std::uint32_t at, std::uint16_t attribute,
                                 std::uint32_t modifier) const {
  Request request;
  request.method = mad::method::kSet;
  request.attribute = attribute;
  request.modifier = modifier;
  request.port = subnet_.node(node_of_[at]).first_port;
  return request;
}

void SwitchTables::compare_linear(std::uint32_t at, std::deque<Request>& requests) {
  const std::size_t blocks = graph_->top_lid / mad::kLinearPerBlock + 1;
  table_.resize(blocks * mad::kLinearPerBlock);
  engine_->fill(at, table_);
  std::vector<std::uint64_t>& known = written_at(node_of_[at]).linear;
  known.resize(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto block = std::span(table_).subspan(i * mad::kLinearPerBlock, mad::kLinearPerBlock);
    if (known[i] == hash_of(block)) continue;
    known[i] = 0;
    Request request = request_to(at, attribute::kLinearForwarding, static_cast<std::uint32_t>(i));
    std::ranges::copy(block, request.data.begin());
    requests.push_back(request);
  }
}

void SwitchTables::compare_groups(std::uint32_t at, std::deque<Request>& requests) {
  GroupBlocks& known = written_at(node_of_[at]).groups;
  GroupBlocks wanted = groups_[at];
  for (const auto& [modifier, block] : known) wanted[modifier];  // those of no group become empty
  for (const auto& [modifier, block] : wanted) {
    const auto before = known.find(modifier);
    if (before != known.end() && as_data(before->second) == as_data(block)) continue;
    Request request = request_to(at, attribute::kMulticastForwarding, modifier);
    request.data = as_data(block);
    requests.push_back(request);
  }
}

// Without lanes of the engine, those that it had are as at power-on again.
void SwitchTables::compare_lanes(std::uint32_t at, std::deque<Request>& requests) {
  auto& known = written_at(node_of_[at]).lanes;
  if (!engine_->has_lanes() && known.empty()) return;
  const Node& node = subnet_.node(node_of_[at]);
  for (const Link& link : graph_->switches[at].links) {
    const Port& out = subnet_.port(subnet_.port_of(node_of_[at], link.port));
    const unsigned lanes = lanes_of(out.info);
    for (std::uint32_t in = 0; in < node.port_count; ++in) {
      mad::SmpData data{};
      for (std::uint8_t level = 0; level < 16; ++level) {
        const unsigned lane =
            engine_->has_lanes()
                ? engine_->lane(at, static_cast<std::uint8_t>(in), link.port, level)
                : level;
        data[level / 2] |= static_cast<std::uint8_t>(lane % lanes << (level % 2 == 0 ? 4 : 0));
      }
      const std::uint32_t modifier = in << 8 | link.port;
      if (in == link.port || known[modifier] == hash_of(data)) continue;
      Request request = request_to(at, attribute::kSlToVlTable, modifier);
      request.data = data;
      requests.push_back(request);
    }
  }
}

bool SwitchTables::on_answer(const Request& request, const Answer* answer) {
  const std::uint32_t node = subnet_.port(request.port).node;
  const bool is_good =
      answer != nullptr && answer->status == mad::mad_status::kOk && answer->data == request.data;
  Written& written = written_at(node);
  switch (request.attribute) {
    case attribute::kLinearForwarding:
      if (request.modifier < written.linear.size()) {
        written.linear[request.modifier] = is_good ? hash_of(request.data) : 0;
      }
      break;
    case attribute::kMulticastForwarding:
      written.groups[request.modifier] = read<GroupBlock>(request.data);
      if (!is_good) flip(written.groups[request.modifier][0]);
      break;
    case attribute::kSlToVlTable:
      written.lanes[request.modifier] = is_good ? hash_of(request.data) : 0;
      break;
    default: break;
  }
  return is_good;
}

}  // namespace ib::sm
