// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/server/groups.h"

#include "base/assert.h"
#include "sa/records/components.h"
#include "verbs/gid.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ib::sa {
namespace {

namespace component = mc_component;

constexpr std::uint8_t kDefaultScope = 2;  // link-local
constexpr std::uint8_t kJoinBits = 0xf;
constexpr std::uint8_t kDefaultLife = 18;  // about a second

bool names(std::uint64_t components, std::uint64_t bits) {
  return (components & bits) == bits;
}
std::uint8_t scope_of(const verbs::Gid& mgid) {
  return mgid[1] & 0xf;
}

// Groups whose MGID the subnet administrator chose: ffTs:a01b:<subnet prefix>:<number>.
constexpr std::uint8_t kChosen0 = 0xa0;
constexpr std::uint8_t kChosen1 = 0x1b;

// Returns whether a requester may create a group with this MGID [IBA1 4.1.1, 15.2.5.17.1]. Scope 15
// is reserved, and means the same as 14 [RFC 4291 2.7].
bool may_be_created(const verbs::Gid& mgid) {
  const bool is_chosen = mgid[2] == kChosen0 && mgid[3] == kChosen1;
  const bool has_good_flags = (mgid[1] & 0xe0) == 0;
  return mgid[0] == 0xff && has_good_flags && scope_of(mgid) != 0 && !is_chosen;
}

// Components of a request that are compared with the group that it joins. The scope is in its MGID:
// as a component it is for a group whose MGID the administrator chooses.
constexpr std::uint64_t kGroupComponents =
    component::kQkey | component::kMlid | component::kMtuSelector | component::kMtu |
    component::kTrafficClass | component::kPkey | component::kRateSelector | component::kRate |
    component::kLifeSelector | component::kLife | component::kSl | component::kFlowLabel |
    component::kHopLimit;

// The membership bit of a P_Key does not belong to a group.
std::uint16_t partition_of(std::uint16_t pkey) {
  return pkey | 0x8000;
}

Selector selector_of(std::uint64_t components, std::uint64_t bit, Selector selector) {
  return names(components, bit) ? selector : Selector::Exactly;
}

// MTU, rate and packet life time of a group that a port creates. Returns false if the port cannot
// do what the request selects.
bool select(const EndPort& port, std::uint64_t components, const McMemberRecord& wanted,
            McMemberRecord& group) {
  group.mtu_selector = group.rate_selector = group.life_selector = Selector::Exactly;
  group.mtu = port.mtu;
  group.rate = port.rate;
  group.life = kDefaultLife;
  if (names(components, component::kMtu)) {
    group.mtu = select_mtu(selector_of(components, component::kMtuSelector, wanted.mtu_selector),
                           wanted.mtu, port.mtu);
  }
  if (names(components, component::kRate)) {
    group.rate =
        select_rate(selector_of(components, component::kRateSelector, wanted.rate_selector),
                    wanted.rate, port.rate);
  }
  if (names(components, component::kLife)) {
    const SelectedLife life = select_life(
        selector_of(components, component::kLifeSelector, wanted.life_selector), wanted.life, 0);
    if (!life.possible) return false;
    group.life = life.life;
  }
  return group.mtu != 0 && group.rate != 0;
}

}  // namespace

verbs::Gid ipoib_broadcast_mgid(std::uint16_t pkey) {
  verbs::Gid mgid{0xff, 0x12, 0x40, 0x1b};
  mgid[4] = static_cast<std::uint8_t>(partition_of(pkey) >> 8);
  mgid[5] = static_cast<std::uint8_t>(pkey);
  std::fill(mgid.begin() + 12, mgid.end(), std::uint8_t{0xff});
  return mgid;
}

void Groups::add_permanent(McMemberRecord record) {
  const std::optional<std::uint16_t> mlid = take_mlid();
  IB_ASSERT(mlid && !groups_.contains(record.mgid));
  record.mlid = *mlid;
  record.mtu_selector = record.rate_selector = record.life_selector = Selector::Exactly;
  record.scope = scope_of(record.mgid);
  groups_.emplace(record.mgid, Group{record, true, {}});
}

const McMemberRecord* Groups::find(const verbs::Gid& mgid) const {
  const auto group = groups_.find(mgid);
  return group == groups_.end() ? nullptr : &group->second.record;
}

std::optional<std::uint16_t> Groups::take_mlid() {
  constexpr std::uint32_t kMlids = kLastMulticastLid - kFirstMulticastLid + 1;
  for (std::uint32_t i = 0; i < kMlids; ++i) {
    const std::uint16_t mlid = next_mlid_;
    next_mlid_ =
        mlid == kLastMulticastLid ? kFirstMulticastLid : static_cast<std::uint16_t>(mlid + 1);
    if (mlids_.insert(mlid).second) return mlid;
  }
  return std::nullopt;
}

std::optional<verbs::Gid> Groups::make_mgid(std::uint8_t scope) {
  const std::optional<EndPort> manager = topology_.manager_port();
  if (!manager) return std::nullopt;
  // The subnet prefix keeps the group apart from those of other subnets.
  verbs::Gid mgid{0xff, static_cast<std::uint8_t>(0x10 | scope), kChosen0, kChosen1};
  std::copy_n(manager->gids[0].begin(), 8, mgid.begin() + 4);
  do {
    const std::uint32_t number = next_mgid_++;
    for (std::size_t i = 0; i < 4; ++i) {
      mgid[12 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
    }
  } while (groups_.contains(mgid));
  return mgid;
}

// A port joins and leaves for itself; or for another port of its partitions, which is a proxy join.
std::uint16_t Groups::check_member(const Requester& requester, const EndPort& port,
                                   const McMemberRecord& record) const {
  const bool is_own = requester.has_gid(record.port_gid);
  return is_own || requester.may_see(port) ? sa_status::kOk : sa_status::kRequestDenied;
}

std::uint16_t Groups::create(const EndPort& port, std::uint64_t components,
                             const McMemberRecord& record, GroupMap::iterator& group) {
  if (!names(components, component::kToCreate)) return sa_status::kInsufficientComponents;
  // Send-only full members may create one as well [IBA1 15.2.5.17.2].
  if ((record.join_state & join_state::kKeepsGroup) == 0) return sa_status::kRequestInvalid;
  const bool has_mgid = !verbs::is_zero(record.mgid);
  if (has_mgid && !may_be_created(record.mgid)) return sa_status::kRequestInvalid;
  if (!is_member(port.pkeys, record.pkey)) return sa_status::kRequestDenied;
  McMemberRecord made;
  made.scope = has_mgid ? scope_of(record.mgid) : kDefaultScope;
  if (!has_mgid && names(components, component::kScope)) {
    if (record.scope == 0 || record.scope == 0xf) return sa_status::kRequestInvalid;
    made.scope = record.scope;
  }
  if (!select(port, components, record, made)) return sa_status::kRequestInvalid;
  if (groups_.size() >= limits_.groups) return sa_status::kNoResources;
  const std::optional<verbs::Gid> mgid = has_mgid ? record.mgid : make_mgid(made.scope);
  if (!mgid) return sa_status::kNoResources;
  const std::optional<std::uint16_t> mlid = take_mlid();
  if (!mlid) return sa_status::kNoResources;
  made.mgid = *mgid;
  made.mlid = *mlid;
  made.qkey = record.qkey;
  made.traffic_class = record.traffic_class;
  made.pkey = partition_of(record.pkey);
  made.sl = record.sl;
  made.flow_label = record.flow_label;
  if (names(components, component::kHopLimit)) made.hop_limit = record.hop_limit;
  group = groups_.emplace(made.mgid, Group{made, false, {}}).first;
  changes_.push_back({true, made.mgid, made.pkey});
  return sa_status::kOk;
}

std::uint16_t Groups::check_joinable(const EndPort& port, std::uint64_t components,
                                     const McMemberRecord& record, const Group& group) const {
  McMemberRecord wanted = record;
  wanted.pkey = partition_of(record.pkey);
  if (!matches(attribute::kMcMemberRecord, components & kGroupComponents, encode(wanted),
               encode(group.record))) {
    return sa_status::kRequestInvalid;
  }
  if (!is_member(port.pkeys, group.record.pkey)) return sa_status::kRequestDenied;
  const bool can = port.mtu >= group.record.mtu && rate_fits(group.record.rate, port.rate);
  return can ? sa_status::kOk : sa_status::kRequestInvalid;
}

std::uint16_t Groups::join(const Requester& requester, std::uint64_t components,
                           McMemberRecord& record) {
  if (!names(components, component::kToJoin)) return sa_status::kInsufficientComponents;
  if ((record.join_state & kJoinBits) == 0) return sa_status::kRequestInvalid;
  const std::optional<EndPort> port = topology_.find_gid(record.port_gid);
  if (!port) return sa_status::kInvalidGid;
  if (const std::uint16_t status = check_member(requester, *port, record); status != 0) {
    return status;
  }
  const auto joined = groups_of_port_.find(record.port_gid);
  const std::size_t memberships = joined == groups_of_port_.end() ? 0 : joined->second.size();
  const bool is_in = memberships != 0 && joined->second.contains(record.mgid);
  if (!is_in && memberships >= limits_.memberships_of_port) return sa_status::kNoResources;
  auto group = verbs::is_zero(record.mgid) ? groups_.end() : groups_.find(record.mgid);
  const std::uint16_t status = group == groups_.end()
                                   ? create(*port, components, record, group)
                                   : check_joinable(*port, components, record, group->second);
  if (status != sa_status::kOk) return status;

  Group& in = group->second;
  Member& member = in.members[record.port_gid];
  if ((record.join_state & ~member.join_state) != 0) ++version_;
  member.join_state |= record.join_state;
  member.proxy_join = !requester.has_gid(record.port_gid);
  groups_of_port_[record.port_gid].insert(group->first);
  const verbs::Gid port_gid = record.port_gid;
  record = in.record;
  record.port_gid = port_gid;
  record.join_state = member.join_state;
  record.proxy_join = member.proxy_join;
  return sa_status::kOk;
}

std::uint16_t Groups::leave(const Requester& requester, std::uint64_t components,
                            McMemberRecord& record) {
  if (!names(components, component::kToJoin)) return sa_status::kInsufficientComponents;
  const auto group = groups_.find(record.mgid);
  if (group == groups_.end()) return sa_status::kRequestInvalid;
  Group& in = group->second;
  const auto found = in.members.find(record.port_gid);
  if (found == in.members.end()) return sa_status::kRequestInvalid;
  Member& member = found->second;
  // Only bits that are set can be taken away, and there has to be one.
  if (record.join_state == 0 || (record.join_state & ~member.join_state) != 0) {
    return sa_status::kRequestInvalid;
  }
  const std::optional<EndPort> port = topology_.find_gid(record.port_gid);
  const bool may =
      requester.has_gid(record.port_gid) || (member.proxy_join && port && requester.may_see(*port));
  if (!may) return sa_status::kRequestDenied;

  ++version_;
  member.join_state &= static_cast<std::uint8_t>(~record.join_state);
  const Member rest = member;
  const verbs::Gid port_gid = record.port_gid;
  record = in.record;
  record.port_gid = port_gid;
  record.join_state = rest.join_state;
  record.proxy_join = rest.proxy_join;
  if (rest.join_state == 0) {
    in.members.erase(found);
    const auto groups = groups_of_port_.find(port_gid);
    groups->second.erase(record.mgid);
    if (groups->second.empty()) groups_of_port_.erase(groups);
  }
  remove_if_empty(group);
  return sa_status::kOk;
}

// A group without full members goes, and the other memberships in it.
void Groups::remove_if_empty(GroupMap::iterator group) {
  const Group& in = group->second;
  const bool is_kept =
      in.is_permanent || std::any_of(in.members.begin(), in.members.end(), [](const auto& member) {
        return (member.second.join_state & join_state::kKeepsGroup) != 0;
      });
  if (is_kept) return;
  for (const auto& [port_gid, member] : in.members) {
    const auto groups = groups_of_port_.find(port_gid);
    groups->second.erase(group->first);
    if (groups->second.empty()) groups_of_port_.erase(groups);
  }
  mlids_.erase(in.record.mlid);
  changes_.push_back({false, group->first, in.record.pkey});
  groups_.erase(group);
}

void Groups::drop(const verbs::Gid& port_gid) {
  const auto found = groups_of_port_.find(port_gid);
  if (found == groups_of_port_.end()) return;
  const std::set<verbs::Gid> mgids = std::move(found->second);
  groups_of_port_.erase(found);
  ++version_;
  for (const verbs::Gid& mgid : mgids) {
    const auto group = groups_.find(mgid);
    group->second.members.erase(port_gid);
    remove_if_empty(group);
  }
}

void Groups::find(const Requester& requester, std::uint64_t components,
                  const McMemberRecord& wanted, RecordList& records) const {
  const auto request = encode(wanted);
  const auto add_if_it_matches = [&](const McMemberRecord& record) {
    const auto bytes = encode(record);
    return !matches(attribute::kMcMemberRecord, components, request, bytes) || records.add(bytes);
  };
  auto first = groups_.begin();
  auto last = groups_.end();
  if (names(components, component::kMgid)) {
    std::tie(first, last) = groups_.equal_range(wanted.mgid);
  }
  for (; first != last; ++first) {
    const Group& group = first->second;
    if (!requester.is_trusted && !is_member(requester.port.pkeys, group.record.pkey)) continue;
    const bool is_own =
        names(components, component::kPortGid) && requester.has_gid(wanted.port_gid);
    if (!requester.is_trusted && !is_own) {
      if (!add_if_it_matches(group.record)) return;
      continue;
    }
    McMemberRecord record = group.record;
    if (group.members.empty() && !add_if_it_matches(record)) return;
    for (const auto& [port_gid, member] : group.members) {
      record.port_gid = port_gid;
      record.join_state = member.join_state;
      record.proxy_join = member.proxy_join;
      if (!add_if_it_matches(record)) return;
    }
  }
}

std::size_t Groups::membership_count() const {
  std::size_t count = 0;
  for (const auto& [gid, groups] : groups_of_port_) count += groups.size();
  return count;
}

}  // namespace ib::sa
