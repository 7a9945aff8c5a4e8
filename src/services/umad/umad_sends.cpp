// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/umad/umad_sends.h"

#include "services/gsi/messages_internal.h"

#include <cstring>

namespace ib::services {
namespace {

Duration response_time(const UmadSend& send) {
  return std::chrono::milliseconds(send.header.timeout_ms);
}

}  // namespace

UmadSends::Key UmadSends::key_of(const UmadSend& send) {
  const mad::MadHeader header = header_of(send.message);
  return {header.transaction_id, header.mgmt_class, is_umad_response(send.message)};
}

bool UmadSends::has_like(const UmadSend& send) const {
  const Key key = key_of(send);
  for (auto [at, end] = by_key_.equal_range(key); at != end; ++at) {
    const GsiAddress& to = entries_.at(at->second).send.to;
    if (!key.is_response || to.remote == send.to.remote) return true;
  }
  return false;
}

UmadSends::Id UmadSends::begin(UmadSend send, Instant now) {
  const Id id = ++last_;
  Entry& entry = entries_[id];
  entry.key = key_of(send);
  entry.retries_left = send.header.retries;
  entry.send = std::move(send);
  by_key_.emplace(entry.key, id);
  by_agent_.emplace(entry.send.agent, id);
  ++counts_[entry.send.agent];
  set_due(id, entry, now + response_time(entry.send));
  return id;
}

void UmadSends::set_due(Id id, Entry& entry, std::optional<Instant> due) {
  if (entry.due) due_.erase({*entry.due, id});
  entry.due = due;
  if (due) due_.emplace(*due, id);
}

void UmadSends::suspend(Id id) {
  const auto found = entries_.find(id);
  if (found != entries_.end()) set_due(id, found->second, std::nullopt);
}

void UmadSends::resume(Id id, Instant now) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  set_due(id, found->second, now + response_time(found->second.send));
}

UmadSends::Id UmadSends::find(std::uint64_t tid, std::uint8_t mgmt_class) const {
  const auto found = by_key_.find({tid, mgmt_class, false});
  return found == by_key_.end() ? 0 : found->second;
}

std::optional<UmadSend> UmadSends::end(Id id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  set_due(id, entry, std::nullopt);
  for (auto [at, end] = by_key_.equal_range(entry.key); at != end; ++at) {
    if (at->second != id) continue;
    by_key_.erase(at);
    break;
  }
  by_agent_.erase({entry.send.agent, id});
  if (--counts_.at(entry.send.agent) == 0) counts_.erase(entry.send.agent);
  UmadSend send = std::move(entry.send);
  entries_.erase(found);
  return send;
}

std::vector<UmadSends::Id> UmadSends::of_agent(UmadAgentNumber agent) const {
  std::vector<Id> ids;
  for (auto at = by_agent_.lower_bound({agent, 0}); at != by_agent_.end() && at->first == agent;
       ++at) {
    ids.push_back(at->second);
  }
  return ids;
}

std::size_t UmadSends::size_of(UmadAgentNumber agent) const {
  const auto found = counts_.find(agent);
  return found == counts_.end() ? 0 : found->second;
}

std::optional<UmadSends::Event> UmadSends::poll(Instant now) {
  if (due_.empty() || due_.begin()->first > now) return std::nullopt;
  const Id id = due_.begin()->second;
  Entry& entry = entries_.at(id);
  if (entry.retries_left == 0) {
    set_due(id, entry, std::nullopt);
    return Event{id, Due::TimedOut};
  }
  --entry.retries_left;
  set_due(id, entry, now + response_time(entry.send));
  return Event{id, Due::Resend};
}

std::optional<Instant> UmadSends::next_deadline() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

}  // namespace ib::services
