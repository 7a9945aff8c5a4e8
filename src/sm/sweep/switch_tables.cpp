// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Blocks of linear, multicast and lane tables that a switch has not yet. setup.cpp takes them, one
// switch after the other.
#include "sm/sweep/switch_tables.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <utility>

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

void SwitchTables::Linear::resize(std::size_t blocks) {
  if (blocks == is_written.size()) return;
  wanted.resize(blocks * mad::kLinearPerBlock, kNoRoute);
  is_written.resize(blocks);
  missing = static_cast<std::size_t>(std::ranges::count(is_written, false));
}

void SwitchTables::Linear::set_written(std::size_t block, bool value) {
  if (is_written[block] == value) return;
  is_written[block] = value;
  value ? --missing : ++missing;
}

void SwitchTables::Linear::forget() {
  is_written.assign(is_written.size(), false);
  missing = is_written.size();
}

void SwitchTables::Written::forget() {
  linear.forget();
  groups.clear();
  has_groups = false;
  lanes.clear();
}

SwitchTables::Written& SwitchTables::written_at(std::uint32_t node) {
  if (written_.size() <= node) written_.resize(std::size_t{node} + 1);
  return written_[node];
}

void SwitchTables::plan(const Plan& plan) {
  graph_ = plan.graph;
  engine_ = plan.engine;
  if (plan.is_new_graph) {
    node_of_ = *plan.node_of;
    trees_.clear();
    groups_.assign(graph_->size(), {});
    for (Written& each : written_) each.has_groups = false;
  }
  plan_groups(*plan.groups, plan.has_looked);
}

// Trees of groups that have the same members, at the same places, stay as they are.
void SwitchTables::plan_groups(const std::vector<MulticastGroup>& groups, bool has_looked) {
  std::set<std::uint16_t> lids;
  for (const MulticastGroup& group : groups) {
    if (group.lid < mad::kFirstMulticastLid || group.lid == 0xffff) continue;
    lids.insert(group.lid);
    Tree& tree = trees_[group.lid];
    if (tree.group == group && !has_looked) continue;
    std::vector<Member> members = members_of(group);
    tree.group = group;
    if (members == tree.members && is_whole(tree)) continue;
    plant(tree, false);
    tree.members = std::move(members);
    tree.ports = make_tree(*graph_, tree.members, group.lid - mad::kFirstMulticastLid);
    plant(tree, true);
  }
  std::erase_if(trees_, [&](const auto& each) {
    const bool is_gone = !lids.contains(each.first);
    if (is_gone) plant(each.second, false);
    return is_gone;
  });
}

std::vector<Member> SwitchTables::members_of(const MulticastGroup& group) const {
  std::vector<Member> members;
  const auto add = [&](std::uint64_t guid, bool receives) {
    const std::uint32_t index = subnet_.find_port(guid);
    if (index == kNone) return;
    const Port& port = subnet_.port(index);
    const bool is_switch = subnet_.node_of(port).is_switch();
    if (!is_switch && port.peer == kNone) return;
    const Port& at = is_switch ? port : subnet_.port(port.peer);
    const auto to = std::ranges::lower_bound(node_of_, at.node);
    if (to == node_of_.end() || *to != at.node) return;
    members.push_back({static_cast<std::uint32_t>(to - node_of_.begin()), at.number, receives});
  };
  for (const std::uint64_t guid : group.members) add(guid, true);
  for (const std::uint64_t guid : group.senders) add(guid, false);
  return members;
}

// Whether each of its ports leads to a member, or to another switch still.
bool SwitchTables::is_whole(const Tree& tree) const {
  return std::ranges::all_of(tree.ports, [&](const auto& each) {
    PortSet left = each.second;
    for (const Member& member : tree.members) {
      if (member.at == each.first) take_port(left, member.port);
    }
    for (const Link& link : graph_->switches[each.first].links) take_port(left, link.port);
    return left == PortSet{};
  });
}

// Enters a tree into the tables of its switches, or takes it out.
void SwitchTables::plant(const Tree& tree, bool is_wanted) {
  const std::uint32_t index = tree.group.lid - std::uint32_t{mad::kFirstMulticastLid};
  for (const auto& [at, ports] : tree.ports) {
    written_at(node_of_[at]).has_groups = false;
    for (std::uint32_t position = 0; position < 256 / mad::kPortsPerPosition; ++position) {
      const auto mask = static_cast<std::uint16_t>(ports[position / 4] >> position % 4 * 16);
      if (mask == 0) continue;
      const auto modifier =
          static_cast<std::uint32_t>(position << 28 | index / mad::kGroupsPerBlock);
      groups_[at][modifier][index % mad::kGroupsPerBlock] = is_wanted ? mask : std::uint16_t{0};
    }
  }
}

// Ways stay as they were where another manager has written over them.
void SwitchTables::forget_all() {
  for (Written& each : written_) each.forget();
}

void SwitchTables::renew(const StaleWays& stale) {
  for (std::uint32_t at = 0; at < stale.size(); ++at) {
    if (!stale[at].empty()) renew_one(at, stale[at]);
  }
}

void SwitchTables::renew_one(std::uint32_t at, std::span<const std::uint32_t> to) {
  Linear& linear = written_at(node_of_[at]).linear;
  linear.resize(blocks());
  std::vector<std::uint16_t> changed;
  engine_->renew(at, to, linear.wanted, changed);
  for (const std::uint16_t lid : changed) linear.set_written(lid / mad::kLinearPerBlock, false);
}

void SwitchTables::compare(std::uint32_t at, bool anew, std::deque<Request>& requests) {
  Node& node = subnet_.node(node_of_[at]);
  if (!node.is_there) return;
  if (!node.has_tables) written_at(node_of_[at]).forget();
  node.has_tables = true;
  compare_linear(at, anew, requests);
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

void SwitchTables::compare_linear(std::uint32_t at, bool anew, std::deque<Request>& requests) {
  Linear& linear = written_at(node_of_[at]).linear;
  linear.resize(blocks());
  constexpr std::size_t kBlock = mad::kLinearPerBlock;
  if (anew && linear.missing == linear.is_written.size()) {
    engine_->fill(at, linear.wanted);
  } else if (anew) {
    table_.resize(linear.wanted.size());
    engine_->fill(at, table_);
    for (std::size_t i = 0; i < linear.is_written.size(); ++i) {
      const auto block = std::span(table_).subspan(i * kBlock, kBlock);
      if (!std::ranges::equal(block, std::span(linear.wanted).subspan(i * kBlock, kBlock))) {
        linear.set_written(i, false);
      }
    }
    linear.wanted.swap(table_);
  }
  std::size_t left = linear.missing;
  for (std::size_t i = 0; left > 0; ++i) {
    if (linear.is_written[i]) continue;
    --left;
    Request request = request_to(at, attribute::kLinearForwarding, static_cast<std::uint32_t>(i));
    std::ranges::copy(std::span(linear.wanted).subspan(i * kBlock, kBlock), request.data.begin());
    requests.push_back(request);
  }
}

void SwitchTables::compare_groups(std::uint32_t at, std::deque<Request>& requests) {
  Written& written = written_at(node_of_[at]);
  if (written.has_groups) return;
  written.has_groups = true;
  const GroupBlocks& known = written.groups;
  GroupBlocks wanted = groups_[at];
  for (const auto& [modifier, block] : known) wanted[modifier];  // those of no group become empty
  for (const auto& [modifier, block] : wanted) {
    const auto before = known.find(modifier);
    const GroupBlock had = before != known.end() ? before->second : GroupBlock{};
    if (as_data(had) == as_data(block)) continue;
    written.has_groups = false;
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
      if (request.modifier < written.linear.is_written.size()) {
        written.linear.set_written(request.modifier, is_good);
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
