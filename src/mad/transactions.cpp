// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/transactions.h"

namespace ib::mad {

TransactionId Transactions::make_id(AgentId agent) {
  Space& space = spaces_[agent];
  TransactionId id = 0;
  do {
    ++space.last;
    id = TransactionId{agent} << 32 | space.last;
  } while (space.ids.contains(id));
  return id;
}

Result<TransactionId> Transactions::begin(const Request& request, Instant now) {
  if (request.timeout <= Duration::zero()) return Status::InvalidParameter;
  if (entries_.size() >= limits_.total || size_of(request.agent) >= limits_.per_agent) {
    return Status::LimitExceeded;
  }
  const TransactionId id = make_id(request.agent);
  spaces_[request.agent].ids.insert(id);
  Entry& entry = entries_[id];
  entry.request = request;
  entry.retries_left = request.retries;
  arm(id, entry, now);
  return id;
}

std::optional<Transactions::Event> Transactions::poll(Instant now) {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return std::nullopt;
  const TransactionId id = deadlines_.begin()->second;
  Entry& entry = entries_.at(id);
  if (entry.retries_left == 0) {
    end(id);
    return Event{id, Due::TimedOut};
  }
  --entry.retries_left;
  arm(id, entry, now);
  return Event{id, Due::Resend};
}

std::optional<Instant> Transactions::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

bool Transactions::is_awaited(TransactionId id, std::uint8_t mgmt_class, const Peer& from) const {
  const Request* request = find(id);
  return request != nullptr && request->mgmt_class == mgmt_class && request->peer.is(from);
}

void Transactions::suspend(TransactionId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  disarm(id, found->second);
  found->second.suspended = true;
}

void Transactions::resume(TransactionId id, Instant now) {
  const auto found = entries_.find(id);
  if (found != entries_.end()) arm(id, found->second, now);
}

void Transactions::redirect(TransactionId id, const Peer& peer, Instant now) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.request.peer = peer;
  entry.retries_left = entry.request.retries;
  arm(id, entry, now);
}

bool Transactions::end(TransactionId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  disarm(id, found->second);
  const auto space = spaces_.find(agent_of(id));
  space->second.ids.erase(id);
  entries_.erase(found);
  return true;
}

std::vector<TransactionId> Transactions::end_all(AgentId agent) {
  const auto space = spaces_.find(agent);
  if (space == spaces_.end()) return {};
  std::vector<TransactionId> ids(space->second.ids.begin(), space->second.ids.end());
  for (const TransactionId id : ids) end(id);
  spaces_.erase(agent);
  return ids;
}

std::vector<TransactionId> Transactions::end_all() {
  std::vector<TransactionId> all;
  while (!spaces_.empty()) {
    const auto ids = end_all(spaces_.begin()->first);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

const Transactions::Request* Transactions::find(TransactionId id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second.request;
}

std::size_t Transactions::size_of(AgentId agent) const {
  const auto space = spaces_.find(agent);
  return space == spaces_.end() ? 0 : space->second.ids.size();
}

Instant Transactions::after(Instant now, Duration timeout) {
  constexpr std::int64_t kSteps = 1024;
  const auto random = static_cast<std::int64_t>(random_() % kSteps);
  return now + timeout + timeout / 4 / kSteps * random;
}

void Transactions::arm(TransactionId id, Entry& entry, Instant now) {
  disarm(id, entry);
  entry.suspended = false;
  entry.due = after(now, entry.request.timeout);
  deadlines_.emplace(entry.due, id);
}

void Transactions::disarm(TransactionId id, Entry& entry) {
  if (!entry.suspended) deadlines_.erase({entry.due, id});
}

}  // namespace ib::mad
