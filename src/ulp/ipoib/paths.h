// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths: per destination GID the path record, the query for it, and the packets that wait for it.
//
//   (none) --use--> Resolving --answer--> Resolved --expiry, event, then use--> Refreshing
//                      | no path, silence                    (the old record is used meanwhile)
//                      v
//                   Failed: packets are dropped until retry_at; the next use then queries again
//
// Nothing is queried without use, so that an event that concerns all paths costs the subnet
// administrator only those that are in use, each at a random moment.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/counters.h"
#include "ulp/ipoib/deadline.h"
#include "ulp/ipoib/host.h"
#include "ulp/ipoib/random.h"
#include "ulp/ipoib/settings.h"
#include "ulp/ipoib/snapshot.h"
#include "ulp/ipoib/waiting_packets.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ib::ipoib {

class Paths {
 public:
  Paths(const Settings& settings, Host& host, Counters& counters, WaitingBudget& budget);

  // The record to be used now; null if there is none, and one is queried. The pointer is valid
  // until the next call.
  const PathRecord* use(const Gid& destination, Instant now);
  // After use() has returned null: keeps the packet, or drops and counts it.
  void wait(const Gid& destination, WaitingPacket packet);

  // Returns the destination if its packets can be sent now; take_waiting() has them.
  std::optional<Gid> on_answer(RequestId id, const Result<PathRecord>& answer, Instant now);
  std::optional<WaitingPacket> take_waiting(const Gid& destination);

  // The records of all are queried again, within the spread of the settings.
  void make_stale(Instant now);
  // This one is queried again with its next use; `broken`: and not used before.
  void invalidate(const Gid& destination, bool broken, Instant now);
  // The port is down: nothing of this holds any more.
  void clear();

  void on_time(Instant now);
  const std::optional<Instant>& deadline() const { return next_.get(); }
  std::vector<PathRow> rows(Instant now) const;

 private:
  struct Query {
    RequestId id{};
    Instant until;
    // Something has changed since it was sent: its answer may be an old one.
    std::optional<Instant> again_at = {};
  };
  struct Path {
    Path(WaitingBudget& budget, std::size_t limit) : waiting(budget, limit) {}
    std::optional<PathRecord> record;
    Instant refresh_at;  // of a record
    std::optional<Query> query;
    Instant retry_at;  // after a failure
    std::uint32_t failures = 0;
    Trouble trouble = Trouble::None;
    Status status = Status::Ok;
    Instant last_used;
    WaitingQueue waiting;
  };

  Path* find_or_add(const Gid& destination, Instant now);
  bool make_room(Instant now);
  void query(const Gid& destination, Path& path, Instant now);
  void fail(const Gid& destination, Path& path, Status status, Instant now);
  void drop(Drop reason, std::size_t count);

  const Settings* settings_;
  Host* host_;
  Counters* counters_;
  WaitingBudget* budget_;
  Random random_;
  NextDeadline next_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<Gid, Path> paths_;
  std::unordered_map<std::uint64_t, Gid> queries_;  // outstanding, by request
};

}  // namespace ib::ipoib
