// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transactions: requests that wait for a response [IBA1 13.4.6.4, 13.5.3]. A transaction id has its
// agent in the upper 32 bits, so each agent has a space of its own and a response finds its way;
// the lower 32 count. A response belongs to the request with its id, class and peer.
//
// The time to the next try is `timeout` and a random part of up to a quarter of it, so that many
// that began together do not stay together.
//
// Pure: times are arguments, the seed of the random part is given.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "mad/agent_table.h"
#include "mad/peer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::mad {

using TransactionId = std::uint64_t;  // as in the MAD; 0: none

constexpr AgentId agent_of(TransactionId id) {
  return static_cast<AgentId>(id >> 32);
}

class Transactions {
 public:
  struct Limits {
    std::size_t total = 65536;
    std::size_t per_agent = 16384;
  };
  struct Request {
    AgentId agent = 0;
    std::uint8_t mgmt_class = 0;
    Peer peer;
    Duration timeout{};
    std::uint32_t retries = 0;
  };
  enum class Due : std::uint8_t { Resend, TimedOut };
  struct Event {
    TransactionId id = 0;
    Due due = Due::Resend;  // TimedOut: the transaction is over
  };

  Transactions(Limits limits, std::uint32_t seed) : limits_(limits), random_(seed) {}

  // An id that no outstanding transaction of the agent has.
  TransactionId make_id(AgentId agent);
  // The request is sent now, with the id that is returned. LimitExceeded; InvalidParameter: the
  // timeout is not positive.
  Result<TransactionId> begin(const Request& request, Instant now);
  // The next that is due, if any is. To be called until there is none.
  std::optional<Event> poll(Instant now);
  std::optional<Instant> next_deadline() const;

  // Returns whether a transaction waits for this response.
  bool is_awaited(TransactionId id, std::uint8_t mgmt_class, const Peer& from) const;
  // Parts of the request are still being sent, or of the response come: nothing is due until the
  // time begins again.
  void suspend(TransactionId id);
  void resume(TransactionId id, Instant now);
  // The transaction goes on with another peer, as at its begin (redirection).
  void redirect(TransactionId id, const Peer& peer, Instant now);
  // Answered or withdrawn. Returns false if it was over.
  bool end(TransactionId id);
  // All of an agent; returns their ids.
  std::vector<TransactionId> end_all(AgentId agent);
  std::vector<TransactionId> end_all();

  const Request* find(TransactionId id) const;
  std::size_t size() const { return entries_.size(); }
  std::size_t size_of(AgentId agent) const;

 private:
  struct Entry {
    Request request;
    std::uint32_t retries_left = 0;
    Instant due{};  // while it is in deadlines_
    bool suspended = false;
  };
  Instant after(Instant now, Duration timeout);
  void arm(TransactionId id, Entry& entry, Instant now);
  void disarm(TransactionId id, Entry& entry);

  Limits limits_;
  std::minstd_rand random_;
  std::unordered_map<TransactionId, Entry> entries_;
  std::set<std::pair<Instant, TransactionId>> deadlines_;
  struct Space {
    std::uint32_t last = 0;
    std::set<TransactionId> ids{};
  };
  std::map<AgentId, Space> spaces_;
};

}  // namespace ib::mad
