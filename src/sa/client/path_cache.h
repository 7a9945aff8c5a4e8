// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PathCache: paths that were queried, for a while; and the queries that are under way, each of
// which serves all that wait for the same path. A lookup never waits.
#pragma once

#include "base/time.h"
#include "sa/client/outgoing.h"
#include "sa/records/path_record.h"

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

namespace ib::sa {

class PathCache {
 public:
  struct Key {
    verbs::Gid sgid{};
    verbs::Gid dgid{};
    std::uint16_t pkey = 0;
    std::uint16_t dlid = 0;  // instead of `dgid`; 0: by it
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the comparison for one of pointers
    auto operator<=>(const Key&) const = default;
  };
  struct Options {
    Duration lifetime = std::chrono::seconds(60);  // of a path
    std::size_t paths = 16384;                     // the oldest make room
    std::size_t waiting = 65536;                   // for queries that are under way
  };

  PathCache() = default;
  explicit PathCache(const Options& options) : options_(options) {}

  // The path, if there is one that is young enough.
  std::optional<PathRecord> find(const Key& key, Instant now) const;

  // Enters a ticket among those that wait for the path. Returns Ok if a query is to be sent,
  // Pending if one is under way, LimitExceeded if too many wait.
  Status wait(const Key& key, Ticket ticket);
  // The ticket does not wait any more. Returns true if nobody waits for its query now: it can be
  // withdrawn.
  bool withdraw(const Key& key, Ticket ticket);
  // The query has ended. A path is kept; an error is not. Returns those that waited.
  std::vector<Ticket> on_answer(const Key& key, const std::optional<PathRecord>& path, Instant now);

  // Paths from or to a port that has changed are forgotten, and what queries that are under way
  // bring is not kept.
  void forget(const verbs::Gid& gid);
  void forget_all();
  std::size_t size() const { return paths_.size(); }

 private:
  struct Path {
    PathRecord record;
    Instant expires{};
    std::list<Key>::iterator age;
  };
  struct Query {
    std::vector<Ticket> waiting{};
    bool is_outdated = false;
  };

  void erase(std::map<Key, Path>::iterator path);

  Options options_;
  std::map<Key, Path> paths_;
  std::list<Key> by_age_;  // oldest first
  std::map<Key, Query> queries_;
  std::size_t waiting_ = 0;
};

}  // namespace ib::sa
