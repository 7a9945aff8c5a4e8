// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of groups: who joins when, what the answers mean, and who leaves.
#include "ulp/ipoib/groups.h"

#include "ulp/ipoib/packets/membership_reports.h"

#include <algorithm>
#include <utility>

namespace ib::ipoib {
namespace {

// All nodes are members of these without a report.
constexpr Ipv4Address kAllHosts{{224, 0, 0, 1}};
constexpr Ipv6Address kAllNodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

// Of a broadcast group that this interface creates: what each port can do.
constexpr MtuCode kMtu2048 = 4;
constexpr RateCode kRate10 = 3;
constexpr RateCode kRate2_5 = 2;
constexpr Qkey kBroadcastQkey{0x0b1b};

constexpr Duration kJoinSpread = std::chrono::milliseconds(200);

}  // namespace

std::uint32_t rate_in_100_mbps(RateCode code) {
  constexpr std::array<std::uint16_t, 25> kRates = {
      0,    0,    25,  100,  300,  50,   200, 400, 600,  800,  1200, 140,  560,
      1120, 1680, 250, 1000, 2000, 3000, 280, 500, 4000, 6000, 8000, 12000};
  return code < kRates.size() ? kRates[code] : 0;
}

Groups::Groups(const Settings& settings, Host& host, Counters& counters, WaitingBudget& budget)
    : settings_(&settings),
      mapping_(settings.scope, settings.pkey),
      host_(&host),
      counters_(&counters),
      budget_(&budget),
      random_(settings.seed ^ 0x6772'6f75) {
  for (const Gid& mgid : {mapping_.broadcast(), mapping_.of(kAllHosts), mapping_.of(kAllNodes)}) {
    groups_.try_emplace(mgid, budget, settings.limits.packets_per_queue)
        .first->second.is_permanent = true;
  }
}

void Groups::start(const PortState& port, Instant now) {
  port_ = port;
  const auto broadcast = groups_.find(mapping_.broadcast());
  broadcast->second.failures = 0;
  broadcast->second.creates = false;
  join(broadcast->first, broadcast->second, now);
}

void Groups::stop() {
  port_.reset();
  next_.clear();
  for (auto it = groups_.begin(); it != groups_.end();) {
    auto& [mgid, group] = *it;
    leave(mgid, group);
    group.join_at.reset();
    group.failures = 0;
    group.trouble = Trouble::None;
    it = group.needs_full() ? std::next(it) : groups_.erase(it);
  }
}

const GroupParameters* Groups::broadcast() const {
  const Group& group = groups_.find(mapping_.broadcast())->second;
  return group.parameters ? &*group.parameters : nullptr;
}

Trouble Groups::trouble() const {
  return groups_.find(mapping_.broadcast())->second.trouble;
}

Status Groups::status() const {
  return groups_.find(mapping_.broadcast())->second.status;
}

const GroupParameters* Groups::use(const Gid& mgid, Instant now) {
  if (!port_ || broadcast() == nullptr) return nullptr;
  Group* const group = find_or_add(mgid, now);
  if (group == nullptr) return nullptr;
  group->last_sent = now;
  if (!group->needs_full() && !group->request && group->retry_at <= now) join(mgid, *group, now);
  return group->parameters ? &*group->parameters : nullptr;
}

void Groups::wait(const Gid& mgid, WaitingPacket packet) {
  const auto found = groups_.find(mgid);
  if (found == groups_.end()) return counters_->drop(Drop::QueueFull);
  if (!found->second.request) return counters_->drop(Drop::NoGroup);
  const Instant until = packet.until;
  if (!found->second.waiting.put(std::move(packet))) return counters_->drop(Drop::QueueFull);
  next_.at(until);
}

std::optional<WaitingPacket> Groups::take_waiting(const Gid& mgid) {
  const auto found = groups_.find(mgid);
  return found != groups_.end() ? found->second.waiting.take() : std::nullopt;
}

void Groups::set_member(const Ipv6Address& group, bool is_member, Instant now) {
  const Gid mgid = is_ipv4_mapped(group) ? mapping_.of(ipv4_of(group)) : mapping_.of(group);
  if (!is_member) {
    const auto found = groups_.find(mgid);
    if (found == groups_.end()) return;
    std::erase(found->second.members, group);
    if (found->second.needs_full()) return;
    leave(mgid, found->second);
    groups_.erase(found);
    return;
  }
  Group* const entry = find_or_add(mgid, now);
  if (entry == nullptr) return counters_->drop(Drop::NoGroup);
  // Of the groups that share an MGID some are enough: the count only matters for leaving.
  constexpr std::size_t kMostMembers = 16;
  const bool is_known =
      std::find(entry->members.begin(), entry->members.end(), group) != entry->members.end();
  if (!is_known && entry->members.size() < kMostMembers) entry->members.push_back(group);
  const bool is_full = entry->parameters && entry->membership == Membership::Full;
  // The answer to a send-only join is followed by another one.
  if (is_full || entry->request || entry->join_at || !port_ || broadcast() == nullptr) return;
  join(mgid, *entry, now);
}

void Groups::join(const Gid& mgid, Group& group, Instant now) {
  const RequestId id{next_id_++};
  JoinRequest request;
  request.mgid = mgid;
  request.membership = group.needs_full() ? Membership::Full : Membership::SendOnly;
  request.create = parameters_to_create(mgid, group);
  group.request = Request{id, request.membership, now + settings_->times.answer, false};
  group.join_at.reset();
  next_.at(group.request->until);
  ++counters_->join_requests;
  host_->join(id, request);
}

// The broadcast group is created only after an answer that it does not exist, the others have its
// parameters [RFC 4391 5, 10].
std::optional<GroupParameters> Groups::parameters_to_create(const Gid& mgid,
                                                            const Group& group) const {
  if (!group.needs_full()) return std::nullopt;
  GroupParameters parameters;
  if (mgid != mapping_.broadcast()) {
    parameters = *broadcast();
    parameters.mlid = {};
    return parameters;
  }
  if (!group.creates) return std::nullopt;
  parameters.qkey = kBroadcastQkey;
  parameters.mtu = std::min(port_->mtu, kMtu2048);
  parameters.rate = rate_in_100_mbps(port_->rate) < rate_in_100_mbps(kRate10) ? kRate2_5 : kRate10;
  return parameters;
}

bool Groups::is_fit(const GroupParameters& parameters) const {
  if (mtu_bytes(parameters.mtu) == 0) return false;
  if (port_->rate == 0) return true;
  return mtu_bytes(parameters.mtu) <= mtu_bytes(port_->mtu) &&
         rate_in_100_mbps(parameters.rate) <= rate_in_100_mbps(port_->rate);
}

JoinOutcome Groups::on_answer(RequestId id, const Result<GroupParameters>& answer, Instant now) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const auto& entry) {
    return entry.second.request && entry.second.request->id == id;
  });
  if (found == groups_.end()) return {};  // too late
  auto& [mgid, group] = *found;
  const Request request = *group.request;
  const bool is_broadcast = mgid == mapping_.broadcast();
  group.request.reset();
  if (answer && !is_fit(*answer)) {
    fail(mgid, group, Status::NotSupported,
         is_broadcast ? Trouble::BroadcastGroupUnfit : Trouble::GroupRefused, now);
  } else if (answer) {
    const bool is_first = is_broadcast && !group.parameters;
    group.membership = request.membership;
    accept(mgid, group, *answer, now);
    if (request.is_late) group.join_at = now + random_.up_to(settings_->times.rejoin_spread);
    // The kernel became a member while a send-only join was under way.
    if (group.needs_full() && request.membership != Membership::Full) group.join_at = now;
    schedule(group);
    if (is_first) join_others(now);
    return {mgid, is_broadcast};
  } else {
    const bool is_silence = answer.error() == Status::Timeout;
    const Trouble trouble = is_broadcast ? Trouble::BroadcastGroupMissing
                            : is_silence ? Trouble::GroupTimeout
                                         : Trouble::GroupRefused;
    fail(mgid, group, answer.error(), trouble, now);
  }
  return {std::nullopt, is_broadcast};
}

void Groups::accept(const Gid& mgid, Group& group, const GroupParameters& parameters, Instant now) {
  const bool is_full = group.membership == Membership::Full;
  if (group.attached && (!is_full || group.attached != parameters.mlid)) {
    host_->detach(mgid, *group.attached);
    group.attached.reset();
  }
  if (is_full && !group.attached) {
    host_->attach(mgid, parameters.mlid);
    group.attached = parameters.mlid;
  }
  group.parameters = parameters;
  group.failures = 0;
  group.creates = false;
  group.status = Status::Ok;
  group.retry_at = now + settings_->times.send_only_refresh;
  if (group.trouble == Trouble::None) return;
  group.trouble = Trouble::None;
  host_->report({Trouble::None, Status::Ok, mgid});
}

void Groups::fail(const Gid& mgid, Group& group, Status status, Trouble trouble, Instant now) {
  const Times& times = settings_->times;
  ++group.failures;
  group.status = status;
  const bool is_missing = mgid == mapping_.broadcast() && status == Status::NotFound;
  const bool creates_now = is_missing && settings_->creates_broadcast_group && !group.creates;
  group.creates = creates_now;
  // A silent subnet administrator has not ended a membership, a refusal has.
  if (status != Status::Timeout && !creates_now) {
    release(mgid, group);
    counters_->drops[static_cast<std::size_t>(Drop::NoGroup)] += group.waiting.clear();
  }
  if (creates_now) {
    group.join_at = now + random_.up_to(kJoinSpread);
  } else if (group.needs_full()) {
    group.join_at = now + random_.back_off(times.first_retry, times.longest_retry, group.failures);
  } else {
    group.retry_at =
        now + random_.back_off(times.first_retry, times.send_only_retry, group.failures);
  }
  schedule(group);
  if (creates_now || group.trouble == trouble) return;
  group.trouble = trouble;
  host_->report({trouble, status, mgid});
}

void Groups::release(const Gid& mgid, Group& group) {
  if (group.attached) host_->detach(mgid, *group.attached);
  group.attached.reset();
  group.parameters.reset();
}

void Groups::leave(const Gid& mgid, Group& group) {
  const bool has_anything = group.parameters || group.request;
  release(mgid, group);
  group.request.reset();
  if (has_anything) host_->leave(mgid);
  counters_->drops[static_cast<std::size_t>(Drop::WaitExpired)] += group.waiting.clear();
}

void Groups::join_others(Instant now) {
  for (auto& [mgid, group] : groups_) {
    if (group.parameters || group.request || !group.needs_full()) continue;
    group.join_at = now + random_.up_to(kJoinSpread);
    next_.at(group.join_at);
  }
}

void Groups::join_all_again(Instant now) {
  if (!port_) return;
  const Duration spread = settings_->times.rejoin_spread;
  for (auto& [mgid, group] : groups_) {
    const Instant due = now + random_.up_to(spread);
    group.failures = 0;
    if (group.request) {
      group.request->is_late = true;
    } else if (group.needs_full()) {
      // A join that is due soon stays so: a row of events neither delays all nodes nor hurries
      // them.
      if (!group.join_at || *group.join_at > now + spread) group.join_at = due;
    } else if (group.retry_at > now + spread) {
      group.retry_at = due;
    }
    schedule(group);
  }
}

bool Groups::on_time(Instant now) {
  if (!next_.has_passed(now)) return false;
  next_.clear();
  for (auto it = groups_.begin(); it != groups_.end();) {
    auto& [mgid, group] = *it;
    walk(mgid, group, now);
    if (is_over(group, now)) {
      leave(mgid, group);
      it = groups_.erase(it);
      continue;
    }
    schedule(group);
    ++it;
  }
  return true;
}

void Groups::walk(const Gid& mgid, Group& group, Instant now) {
  counters_->drops[static_cast<std::size_t>(Drop::WaitExpired)] += group.waiting.expire(now);
  const bool is_broadcast = mgid == mapping_.broadcast();
  if (group.request && group.request->until <= now) {
    group.request.reset();
    fail(mgid, group, Status::Timeout,
         is_broadcast ? Trouble::BroadcastGroupMissing : Trouble::GroupTimeout, now);
  }
  if (group.join_at && *group.join_at <= now) {
    group.join_at.reset();
    // Without the parameters of the link nothing else is joined; join_others() follows them.
    if (port_ && (is_broadcast || broadcast() != nullptr)) join(mgid, group, now);
  }
}

bool Groups::is_over(const Group& group, Instant now) const {
  return !group.needs_full() && !group.request && group.waiting.size() == 0 &&
         group.last_sent + settings_->times.send_only_group <= now;
}

void Groups::schedule(const Group& group) {
  if (group.request) next_.at(group.request->until);
  next_.at(group.join_at);
  next_.at(group.waiting.deadline());
  if (!group.needs_full() && !group.request && group.waiting.size() == 0) {
    next_.at(group.last_sent + settings_->times.send_only_group);
  }
}

Groups::Group* Groups::find_or_add(const Gid& mgid, Instant now) {
  if (const auto found = groups_.find(mgid); found != groups_.end()) return &found->second;
  if (groups_.size() >= settings_->limits.groups && !make_room(now)) return nullptr;
  Group& group =
      groups_.try_emplace(mgid, *budget_, settings_->limits.packets_per_queue).first->second;
  group.last_sent = now;
  group.retry_at = now;
  schedule(group);
  return &group;
}

// Leaves the send-only group that was not used for the longest time, but none of the last second.
bool Groups::make_room(Instant now) {
  auto oldest = groups_.end();
  for (auto it = groups_.begin(); it != groups_.end(); ++it) {
    if (it->second.needs_full() || it->second.request) continue;
    if (oldest == groups_.end() || it->second.last_sent < oldest->second.last_sent) oldest = it;
  }
  constexpr Duration kInUse = std::chrono::seconds(1);
  if (oldest == groups_.end() || oldest->second.last_sent + kInUse > now) return false;
  leave(oldest->first, oldest->second);
  groups_.erase(oldest);
  return true;
}

std::vector<GroupRow> Groups::rows() const {
  std::vector<GroupRow> rows;
  rows.reserve(groups_.size());
  for (const auto& [mgid, group] : groups_) {
    GroupRow row;
    row.mgid = mgid;
    row.membership = group.needs_full() ? Membership::Full : Membership::SendOnly;
    if (group.parameters) {
      row.parameters = *group.parameters;
      row.state = group.request ? GroupRow::State::Rejoining : GroupRow::State::Joined;
    } else if (group.request) {
      row.state = GroupRow::State::Joining;
    } else {
      row.state = group.failures > 0 ? GroupRow::State::Failed : GroupRow::State::Waiting;
    }
    row.attached = group.attached.has_value();
    row.trouble = group.trouble;
    row.status = group.status;
    row.attempts = group.failures;
    row.waiting_packets = group.waiting.size();
    rows.push_back(row);
  }
  return rows;
}

}  // namespace ib::ipoib
