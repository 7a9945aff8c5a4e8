// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the list of partitions to the P_Key table of each port, in which keys keep their index.
// sm/sweep/setup.cpp writes what differs.
#include "sm/partitions/pkeys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::sm {
namespace {

bool is_meant(const PartitionMember& member, const Subnet& subnet, const Port& port) {
  constexpr std::uint8_t kRouter = 3;  // a NodeType [IBA1 14.2.5.3]
  const Node& node = subnet.node_of(port);
  const bool is_router = node.info.node_type == kRouter;
  switch (member.kind) {
    case MemberKind::Port: return member.guid == port.guid;
    case MemberKind::All: return true;
    case MemberKind::AllAdapters: return !node.is_switch() && !is_router;
    case MemberKind::AllSwitches: return node.is_switch();
    case MemberKind::AllRouters: return is_router;
    case MemberKind::Self: return &port == &subnet.port(subnet.own_port());
  }
  return false;
}

}  // namespace

Pkeys::Pkeys(PartitionList partitions) : partitions_(std::move(partitions)) {
  for (std::uint32_t i = 0; i < partitions_.all.size(); ++i) {
    for (const PartitionMember& member : partitions_.all[i].members) {
      if (member.kind == MemberKind::Port) by_guid_[member.guid].emplace_back(i, member.membership);
    }
  }
}

bool Pkeys::separates() const {
  const PartitionMember everybody{MemberKind::All, 0, Membership::Full};
  if (partitions_.all.size() != 1) return true;
  return std::ranges::find(partitions_.all[0].members, everybody) ==
         partitions_.all[0].members.end();
}

// A full member of a partition need not be a limited one as well.
void Pkeys::add(std::vector<Key>& keys, const Partition& partition, Membership membership) const {
  const auto put = [&](std::uint16_t value) {
    const bool is_there =
        std::ranges::any_of(keys, [&](const Key& key) { return key.value == value; });
    if (!is_there) keys.push_back({value, partition.is_first});
  };
  const auto full = static_cast<std::uint16_t>(partition.pkey | kFullMember);
  if (membership == Membership::Both) {
    put(full);
    put(partition.pkey);
    return;
  }
  const auto other = std::ranges::find_if(
      keys, [&](const Key& key) { return (key.value & kDefaultPartition) == partition.pkey; });
  if (other == keys.end()) return put(membership == Membership::Full ? full : partition.pkey);
  if (membership == Membership::Full) other->value = full;
}

std::vector<std::uint16_t> Pkeys::of(const Subnet& subnet, const Port& port) const {
  std::vector<Key> keys;
  for (const Partition& partition : partitions_.all) {
    for (const PartitionMember& member : partition.members) {
      if (member.kind != MemberKind::Port && is_meant(member, subnet, port)) {
        add(keys, partition, member.membership);
      }
    }
  }
  if (const auto named = by_guid_.find(port.guid); named != by_guid_.end()) {
    for (const auto& [index, membership] : named->second) {
      add(keys, partitions_.all[index], membership);
    }
  }
  // If none is to have index 0, the default partition has it.
  std::ranges::stable_sort(keys, std::greater{}, [](const Key& key) {
    return std::pair(key.is_first, (key.value & kDefaultPartition) == kDefaultPartition);
  });
  std::vector<std::uint16_t> values;
  for (const Key& key : keys) values.push_back(key.value);
  return values;
}

std::vector<std::uint16_t> Pkeys::table_of(const Subnet& subnet, const Port& port,
                                           Problems& problems) const {
  const std::vector<std::uint16_t> wanted = of(subnet, port);
  std::vector<std::uint16_t> table(port.pkeys.size());
  if (table.empty()) return table;
  const auto is_in = [](const std::vector<std::uint16_t>& list, std::uint16_t key) {
    return std::ranges::find(list, key) != list.end();
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint16_t key = port.pkeys[i];
    if (key != 0 && is_in(wanted, key) && !is_in(table, key)) table[i] = key;
  }
  if (!wanted.empty() && table[0] != wanted[0]) {
    std::ranges::replace(table, wanted[0], std::uint16_t{0});
    const std::uint16_t displaced = std::exchange(table[0], wanted[0]);
    const auto free = std::ranges::find(table, 0);
    if (displaced != 0 && free != table.end()) *free = displaced;
  }
  std::size_t missing = 0;
  for (const std::uint16_t key : wanted) {
    if (is_in(table, key)) continue;
    const auto free = std::ranges::find(table, 0);
    if (free != table.end()) {
      *free = key;
    } else {
      ++missing;
    }
  }
  if (missing != 0) {
    problems.add({ProblemKind::Partitions, subnet.node_of(port).guid(), port.number,
                  fmt::format("{} is a member of {} partitions, and its table has {} entries: {} "
                              "are left out",
                              subnet.name_of(port), wanted.size(), table.size(), missing)});
  }
  return table;
}

}  // namespace ib::sm
