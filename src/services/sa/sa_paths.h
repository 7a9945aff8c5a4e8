// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaPaths: queries of paths, and the cache of what they have brought. Paths that are marked or
// chosen by more than the ends and the partition are queried each time.
#pragma once

#include "sa/client/path_cache.h"
#include "services/sa/sa_client.h"
#include "services/sa/sa_part_internal.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace ib::services {

class SaPaths {
 public:
  using PathQuery = SaClient::PathQuery;
  using OnPath = SaClient::OnPath;

  SaPaths(const SaSurroundings& around, const sa::PathCache::Options& options)
      : around_(around), cache_(options) {}

  // SaClient::query_path() and cached_path().
  std::unique_ptr<SaClient::Request> query(const PathQuery& query, OnPath on_path);
  std::optional<sa::PathRecord> find_cached(const PathQuery& query);
  // The port has changed.
  void forget(const verbs::Gid& gid) { cache_.forget(gid); }

 private:
  struct Waiter {
    PathQuery query;
    OnPath on_path;
    std::uint64_t sent = 0;  // a query of its own
  };

  void send(sa::Ticket ticket, const PathQuery& query, bool is_shared);
  void on_path(sa::Ticket ticket, const sa::Outcome& outcome, const sa::PathRecord& path);
  void withdraw(sa::Ticket ticket);

  SaSurroundings around_;
  sa::PathCache cache_;
  std::map<sa::Ticket, Waiter> waiters_;
  std::map<sa::PathCache::Key, std::uint64_t> queries_;  // shared ones that are under way
  sa::Ticket last_ticket_ = 0;
};

}  // namespace ib::services
