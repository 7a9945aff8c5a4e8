// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of paths: queries, their failures and expiry.
#include "ulp/ipoib/paths.h"

#include <algorithm>
#include <utility>

namespace ib::ipoib {

Paths::Paths(const Settings& settings, Host& host, Counters& counters, WaitingBudget& budget)
    : settings_(&settings),
      host_(&host),
      counters_(&counters),
      budget_(&budget),
      random_(settings.seed ^ 0x7061'7468) {}

const PathRecord* Paths::use(const Gid& destination, Instant now) {
  Path* const path = find_or_add(destination, now);
  if (path == nullptr) return nullptr;
  path->last_used = now;
  const bool is_due = path->record ? path->refresh_at <= now : path->retry_at <= now;
  if (is_due && !path->query) query(destination, *path, now);
  return path->record ? &*path->record : nullptr;
}

void Paths::wait(const Gid& destination, WaitingPacket packet) {
  const auto found = paths_.find(destination);
  // No entry: the table is full of paths in use.
  if (found == paths_.end()) return counters_->drop(Drop::QueueFull);
  if (!found->second.query) return counters_->drop(Drop::NoPath);
  const Instant until = packet.until;
  if (!found->second.waiting.put(std::move(packet))) return counters_->drop(Drop::QueueFull);
  next_.at(until);
}

std::optional<Gid> Paths::on_answer(RequestId id, const Result<PathRecord>& answer, Instant now) {
  const auto outstanding = queries_.find(static_cast<std::uint64_t>(id));
  if (outstanding == queries_.end()) return std::nullopt;  // too late
  const Gid destination = outstanding->second;
  queries_.erase(outstanding);
  Path& path = paths_.find(destination)->second;
  const std::optional<Instant> again_at = path.query->again_at;
  path.query.reset();
  if (!answer) {
    fail(destination, path, answer.error(), now);
    return std::nullopt;
  }
  path.record = *answer;
  // Records that were resolved together need not expire together.
  path.refresh_at =
      again_at.value_or(now + settings_->times.path - random_.up_to(settings_->times.path / 4));
  path.failures = 0;
  path.status = Status::Ok;
  if (path.trouble != Trouble::None) {
    path.trouble = Trouble::None;
    host_->report({Trouble::None, Status::Ok, destination});
  }
  return destination;
}

std::optional<WaitingPacket> Paths::take_waiting(const Gid& destination) {
  const auto found = paths_.find(destination);
  if (found == paths_.end()) return std::nullopt;
  return found->second.waiting.take();
}

void Paths::make_stale(Instant now) {
  const Duration spread = settings_->times.rejoin_spread;
  for (auto& [destination, path] : paths_) {
    // A query that is due soon stays so: the least of several random moments, one for each event
    // of a restart, would be an early one for all nodes. Whatever failed may work now.
    Instant& due = path.record ? path.refresh_at : path.retry_at;
    const Instant moment = now + random_.up_to(spread);
    if (due > now + spread) due = moment;
    if (path.query && !path.query->again_at) path.query->again_at = moment;
    path.failures = 0;
  }
}

void Paths::invalidate(const Gid& destination, bool broken, Instant now) {
  const auto found = paths_.find(destination);
  if (found == paths_.end()) return;
  Path& path = found->second;
  if (broken) path.record.reset();
  if (path.query) path.query->again_at = now;
  path.refresh_at = now;
  if (!path.query) path.retry_at = std::min(path.retry_at, now);
}

void Paths::clear() {
  for (auto& [destination, path] : paths_) drop(Drop::WaitExpired, path.waiting.clear());
  paths_.clear();
  queries_.clear();
  next_.clear();
}

void Paths::on_time(Instant now) {
  if (!next_.has_passed(now)) return;
  next_.clear();
  const Duration idle = settings_->times.neighbour;
  for (auto it = paths_.begin(); it != paths_.end();) {
    auto& [destination, path] = *it;
    drop(Drop::WaitExpired, path.waiting.expire(now));
    if (path.query && path.query->until <= now) {
      queries_.erase(static_cast<std::uint64_t>(path.query->id));
      path.query.reset();
      fail(destination, path, Status::Timeout, now);
    }
    if (!path.query && path.waiting.size() == 0 && path.last_used + idle <= now) {
      it = paths_.erase(it);
      continue;
    }
    if (path.query) {
      next_.at(path.query->until);
    } else if (path.waiting.size() == 0) {
      next_.at(path.last_used + idle);
    }
    next_.at(path.waiting.deadline());
    ++it;
  }
}

Paths::Path* Paths::find_or_add(const Gid& destination, Instant now) {
  if (const auto found = paths_.find(destination); found != paths_.end()) return &found->second;
  if (paths_.size() >= settings_->limits.paths && !make_room(now)) return nullptr;
  Path& path =
      paths_.try_emplace(destination, *budget_, settings_->limits.packets_per_queue).first->second;
  path.retry_at = now;
  next_.at(now + settings_->times.neighbour);
  return &path;
}

// Removes the path that was not used for the longest time, but none of the last seconds and none
// with a query: that many are not in use at once, unless somebody wants to fill the table.
bool Paths::make_room(Instant now) {
  auto oldest = paths_.end();
  for (auto it = paths_.begin(); it != paths_.end(); ++it) {
    if (it->second.query) continue;
    if (oldest == paths_.end() || it->second.last_used < oldest->second.last_used) oldest = it;
  }
  constexpr Duration kInUse = std::chrono::seconds(1);
  if (oldest == paths_.end() || oldest->second.last_used + kInUse > now) return false;
  drop(Drop::WaitExpired, oldest->second.waiting.clear());
  paths_.erase(oldest);
  return true;
}

void Paths::query(const Gid& destination, Path& path, Instant now) {
  const RequestId id{next_id_++};
  path.query = Query{id, now + settings_->times.answer};
  queries_.emplace(static_cast<std::uint64_t>(id), destination);
  next_.at(path.query->until);
  ++counters_->path_queries;
  host_->query_path(id, destination);
}

void Paths::fail(const Gid& destination, Path& path, Status status, Instant now) {
  const Times& times = settings_->times;
  ++path.failures;
  path.status = status;
  const Instant again =
      now + random_.back_off(times.first_retry, times.longest_retry, path.failures);
  path.retry_at = again;
  const bool is_silence = status == Status::Timeout;
  if (path.record && is_silence) {
    // The subnet administrator may be restarting: the record it gave is still the best.
    path.refresh_at = again;
    return;
  }
  path.record.reset();
  // Packets that wait may still go with the retry that the next use begins.
  if (!is_silence) drop(Drop::NoPath, path.waiting.clear());
  const Trouble trouble = is_silence ? Trouble::PathTimeout : Trouble::PathRefused;
  if (path.trouble == trouble) return;
  path.trouble = trouble;
  host_->report({trouble, status, destination});
}

void Paths::drop(Drop reason, std::size_t count) {
  counters_->drops[static_cast<std::size_t>(reason)] += count;
}

std::vector<PathRow> Paths::rows(Instant now) const {
  std::vector<PathRow> rows;
  rows.reserve(paths_.size());
  for (const auto& [destination, path] : paths_) {
    PathRow row;
    row.gid = destination;
    row.state = PathRow::State::Failed;
    if (path.query) row.state = PathRow::State::Resolving;
    if (path.record) {
      row.record = *path.record;
      const bool is_old = path.query || path.refresh_at <= now;
      row.state = is_old ? PathRow::State::Refreshing : PathRow::State::Resolved;
    }
    row.trouble = path.trouble;
    row.status = path.status;
    row.attempts = path.failures;
    row.waiting_packets = path.waiting.size();
    rows.push_back(row);
  }
  return rows;
}

}  // namespace ib::ipoib
