// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Outbox: what the engine has for outside: MADs to be sent, events for the consumer, counters; and
// the transaction IDs of messages that begin an exchange.
#pragma once

#include "cm/engine.h"
#include "cm/events.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace ib::cm {

class Outbox {
 public:
  explicit Outbox(std::uint64_t seed) : transactions_(seed << 32 | 1) {}

  void send(const MadAddress& to, const mad::Mad& mad) {
    ++counters_.sent;
    mads_.push_back({to, mad});
  }
  void emit(const Event& event) { events_.push_back(event); }
  std::uint64_t next_transaction() { return transactions_++; }
  Counters& counters() { return counters_; }

  // The oldest one, which is removed; nothing if there is none.
  std::optional<OutgoingMad> poll_mad() { return take(mads_); }
  std::optional<Event> poll_event() { return take(events_); }

 private:
  template <class T>
  static std::optional<T> take(std::deque<T>& queue) {
    if (queue.empty()) return std::nullopt;
    T first = std::move(queue.front());
    queue.pop_front();
    return first;
  }

  std::uint64_t transactions_;
  std::deque<OutgoingMad> mads_;
  std::deque<Event> events_;
  Counters counters_;
};

}  // namespace ib::cm
