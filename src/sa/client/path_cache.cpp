// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/client/path_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ib::sa {

std::optional<PathRecord> PathCache::find(const Key& key, Instant now) const {
  const auto path = paths_.find(key);
  if (path == paths_.end() || path->second.expires <= now) return std::nullopt;
  return path->second.record;
}

Status PathCache::wait(const Key& key, Ticket ticket) {
  if (waiting_ >= options_.waiting) return Status::LimitExceeded;
  ++waiting_;
  Query& query = queries_[key];
  query.waiting.push_back(ticket);
  return query.waiting.size() == 1 ? Status::Ok : Status::Pending;
}

bool PathCache::withdraw(const Key& key, Ticket ticket) {
  const auto query = queries_.find(key);
  if (query == queries_.end()) return false;
  std::vector<Ticket>& waiting = query->second.waiting;
  const auto found = std::find(waiting.begin(), waiting.end(), ticket);
  if (found == waiting.end()) return false;
  waiting.erase(found);
  --waiting_;
  if (!waiting.empty()) return false;
  queries_.erase(query);
  return true;
}

std::vector<Ticket> PathCache::on_answer(const Key& key, const std::optional<PathRecord>& path,
                                         Instant now) {
  const auto found = queries_.find(key);
  if (found == queries_.end()) return {};
  Query query = std::move(found->second);
  queries_.erase(found);
  waiting_ -= query.waiting.size();
  if (path && !query.is_outdated) {
    if (const auto old = paths_.find(key); old != paths_.end()) erase(old);
    while (paths_.size() >= options_.paths && !by_age_.empty()) erase(paths_.find(by_age_.front()));
    if (options_.paths > 0) {
      by_age_.push_back(key);
      paths_.emplace(key, Path{*path, now + options_.lifetime, std::prev(by_age_.end())});
    }
  }
  return query.waiting;
}

void PathCache::erase(std::map<Key, Path>::iterator path) {
  by_age_.erase(path->second.age);
  paths_.erase(path);
}

void PathCache::forget(const verbs::Gid& gid) {
  const auto is_end = [&](const auto& one) { return one.sgid == gid || one.dgid == gid; };
  for (auto path = paths_.begin(); path != paths_.end();) {
    const auto next = std::next(path);
    if (is_end(path->first) || is_end(path->second.record)) erase(path);
    path = next;
  }
  // A LID may be any port's until the answer comes.
  for (auto& [key, query] : queries_) query.is_outdated |= is_end(key) || key.dlid != 0;
}

void PathCache::forget_all() {
  paths_.clear();
  by_age_.clear();
  for (auto& [key, query] : queries_) query.is_outdated = true;
}

}  // namespace ib::sa
