// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/client/joins.h"

#include "sa/records/components.h"
#include "verbs/gid.h"

#include <algorithm>
#include <utility>

namespace ib::sa {
namespace {

namespace component = mc_component;

// Components that a share may select in a group that is joined already.
constexpr std::uint64_t kNotOfGroup =
    component::kMgid | component::kPortGid | component::kJoinState | component::kProxyJoin;

bool suits(std::uint64_t components, McMemberRecord wanted, const McMemberRecord& group) {
  // The membership bit of a P_Key does not belong to a group.
  wanted.pkey |= 0x8000;
  return matches(attribute::kMcMemberRecord, components & ~kNotOfGroup, encode(wanted),
                 encode(group));
}

}  // namespace

Joins::Place Joins::find_membership(const verbs::Gid& port_gid, const verbs::Gid& mgid) {
  if (!verbs::is_zero(mgid)) {
    const auto found = by_name_.find({port_gid, mgid});
    if (found != by_name_.end()) return found->second;
  }
  Membership& made = memberships_.emplace_back();
  made.port_gid = port_gid;
  made.mgid = mgid;
  const Place place = std::prev(memberships_.end());
  if (!verbs::is_zero(mgid)) by_name_.emplace(std::pair(port_gid, mgid), place);
  return place;
}

Status Joins::join(Ticket ticket, std::uint64_t components, const McMemberRecord& record,
                   const Patience& patience) {
  const bool is_whole = (components & component::kToJoin) == component::kToJoin;
  if (!is_whole || (record.join_state & 0xf) == 0) return Status::InvalidParameter;
  const auto counted = shares_of_port_.find(record.port_gid);
  const std::size_t of_port = counted == shares_of_port_.end() ? 0 : counted->second;
  if (tickets_.size() >= limits_.shares || of_port >= limits_.shares_of_port) {
    return Status::LimitExceeded;
  }
  ++shares_of_port_[record.port_gid];
  const Place membership = find_membership(record.port_gid, record.mgid);
  membership->shares.push_back({ticket, ShareState::Waiting, components, record, patience});
  tickets_.emplace(ticket, ShareOfTicket{membership, std::prev(membership->shares.end())});
  advance(membership);
  return Status::Ok;
}

void Joins::count_out(const verbs::Gid& port_gid) {
  const auto counted = shares_of_port_.find(port_gid);
  if (--counted->second == 0) shares_of_port_.erase(counted);
}

void Joins::leave(Ticket ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  const ShareOfTicket of = found->second;
  tickets_.erase(found);
  if (of.is_void) {
    events_.emplace_back(Left{ticket});
    return;
  }
  count_out(of.membership->port_gid);
  of.membership->leaving.push_back(ticket);
  of.membership->shares.erase(of.share);
  advance(of.membership);
}

// Ends a share with an error; its ticket stays until it is given back.
void Joins::fail(ShareList::iterator share, Outcome outcome) {
  events_.emplace_back(Joined{share->ticket, std::move(outcome), {}});
  ShareOfTicket& of = tickets_.find(share->ticket)->second;
  of.is_void = true;
  count_out(of.membership->port_gid);
  of.membership->shares.erase(share);
}

std::uint8_t Joins::needed_by_shares(const Membership& membership) {
  std::uint8_t needed = 0;
  for (const Share& share : membership.shares) needed |= share.record.join_state;
  return needed;
}

// Returns false if the share has to be joined by a request.
bool Joins::grant(Membership& membership, ShareList::iterator share) {
  if ((share->record.join_state & ~membership.joined) != 0) return false;
  if (!suits(share->components, share->record, membership.group)) {
    fail(share, {Status::Ok, sa_status::kRequestInvalid, {}});
    return true;
  }
  const bool is_new = share->state == ShareState::Waiting;
  share->state = ShareState::Joined;
  McMemberRecord group = membership.group;
  group.join_state = share->record.join_state;
  if (is_new) events_.emplace_back(Joined{share->ticket, {}, group});
  return true;
}

void Joins::advance_shares(Place membership) {
  Membership& in = *membership;
  for (auto share = in.shares.begin(); share != in.shares.end();) {
    const auto next = std::next(share);
    if (share->state != ShareState::Joined && !grant(in, share)) {
      in.joining = share->ticket;
      McMemberRecord record = share->record;
      record.mgid = in.mgid;
      // Shares that cannot make the group come back with those that can.
      if (share->state == ShareState::Rejoining) {
        for (const Share& other : in.shares) {
          if (other.state == ShareState::Rejoining) record.join_state |= other.record.join_state;
        }
      }
      return send(membership, method::kSet, share->components, record, share->patience);
    }
    share = next;
  }
}

void Joins::advance(Place membership) {
  Membership& in = *membership;
  if (in.operation != 0) return;
  advance_shares(membership);
  if (in.operation != 0) return;
  in.leaving_bits = static_cast<std::uint8_t>(in.joined & ~needed_by_shares(in));
  if (in.leaving_bits != 0) {
    McMemberRecord record;
    record.mgid = in.mgid;
    record.port_gid = in.port_gid;
    record.join_state = in.leaving_bits;
    return send(membership, method::kDelete, component::kToJoin, record, {});
  }
  for (const Ticket ticket : std::exchange(in.leaving, {})) events_.emplace_back(Left{ticket});
  if (!in.shares.empty()) return;
  by_name_.erase({in.port_gid, in.mgid});
  memberships_.erase(membership);
}

void Joins::send(Place membership, std::uint8_t method, std::uint64_t components,
                 const McMemberRecord& record, const Patience& patience) {
  membership->operation = ++last_operation_;
  by_operation_.emplace(membership->operation, membership);
  const auto bytes = encode(record);
  outgoing_.push_back({membership->operation, membership->port_gid, method,
                       attribute::kMcMemberRecord, components,
                       std::vector<std::byte>(bytes.begin(), bytes.end()), patience});
}

void Joins::end_operation(Membership& membership) {
  by_operation_.erase(membership.operation);
  membership.operation = 0;
  membership.joining = 0;
  membership.leaving_bits = 0;
}

void Joins::on_answer(Operation operation, const Outcome& outcome,
                      std::span<const std::byte> record) {
  const auto found = by_operation_.find(operation);
  if (found == by_operation_.end()) return;
  const Place membership = found->second;
  const Ticket joining = membership->joining;
  // Without an answer to a leave the port may still be a member for the subnet administrator; that
  // takes nothing from anybody, and ends with the port.
  membership->joined &= static_cast<std::uint8_t>(~membership->leaving_bits);
  end_operation(*membership);
  if (joining != 0) on_joined(membership, joining, outcome, record);
  if (std::exchange(membership->must_rejoin, false)) rejoin(*membership);
  advance(membership);
}

void Joins::on_joined(Place membership, Ticket ticket, const Outcome& outcome,
                      std::span<const std::byte> record) {
  if (outcome.is_ok()) {
    membership->group = decode_some<McMemberRecord>(record);
    // All bits that the port has: others ended with a group that was deleted meanwhile.
    membership->joined = membership->group.join_state;
    if (verbs::is_zero(membership->mgid)) {
      membership->mgid = membership->group.mgid;
      by_name_.emplace(std::pair(membership->port_gid, membership->mgid), membership);
    }
    // A request whose answer lacks the wanted components would be repeated without end.
    const bool is_whole =
        std::all_of(membership->shares.begin(), membership->shares.end(), [&](const Share& share) {
          return share.ticket != ticket || (share.record.join_state & ~membership->joined) == 0;
        });
    if (is_whole) return;
  }
  // The share may have been given back meanwhile.
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end() || found->second.is_void) return;
  Outcome failure = outcome;
  if (outcome.is_ok()) {
    failure.status = Status::Malformed;
    failure.reason = "the answer has not the join state that was asked for";
  }
  fail(found->second.share, std::move(failure));
}

void Joins::on_port_lost(const verbs::Gid& port_gid, Status status, const std::string& reason) {
  for (auto membership = memberships_.begin(); membership != memberships_.end();) {
    const auto next = std::next(membership);
    if (membership->port_gid == port_gid) {
      while (!membership->shares.empty()) fail(membership->shares.begin(), {status, 0, reason});
      end_operation(*membership);
      membership->joined = 0;
      advance(membership);
    }
    membership = next;
  }
}

// All of the group may be gone: it is made as it was. Bits that no share needs any more are left
// all the same, since the answer that brought them may be younger than the loss.
void Joins::rejoin(Membership& membership) {
  membership.joined &= static_cast<std::uint8_t>(~needed_by_shares(membership));
  for (Share& share : membership.shares) {
    if (share.state == ShareState::Waiting) continue;
    share.state = ShareState::Rejoining;
    share.components |= component::kToCreate;
    const std::uint8_t state = share.record.join_state;
    share.record = membership.group;
    share.record.port_gid = membership.port_gid;
    share.record.join_state = state;
  }
}

void Joins::on_reregister(const verbs::Gid& port_gid) {
  for (auto membership = memberships_.begin(); membership != memberships_.end();) {
    const auto next = std::next(membership);
    if (membership->port_gid == port_gid) {
      if (membership->operation != 0) {
        membership->must_rejoin = true;
      } else {
        rejoin(*membership);
        advance(membership);
      }
    }
    membership = next;
  }
}

std::optional<Outgoing> Joins::poll_outgoing() {
  if (outgoing_.empty()) return std::nullopt;
  Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  return next;
}

std::optional<Joins::Event> Joins::poll_event() {
  if (events_.empty()) return std::nullopt;
  Event next = std::move(events_.front());
  events_.pop_front();
  return next;
}

}  // namespace ib::sa
