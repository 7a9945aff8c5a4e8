// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subscriber: notices that this client's ports are subscribed to, shared by those that want them.
//
// Sans-IO. A subscription has one request under way at a time.
#pragma once

#include "sa/client/outgoing.h"
#include "sa/records/inform_info.h"
#include "sa/records/notice.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ib::sa {

class Subscriber {
 public:
  // The subscription stands, or failed, after which the ticket is void.
  struct Event {
    Ticket ticket = 0;
    Outcome outcome;
  };

  // LimitExceeded: there are too many.
  Status add(Ticket ticket, const verbs::Gid& port_gid, std::uint16_t trap,
             const Patience& patience);
  void remove(Ticket ticket);
  void on_answer(Operation operation, const Outcome& outcome);
  void on_reregister(const verbs::Gid& port_gid);
  // Those that a Report that came to the port is for.
  std::vector<Ticket> on_report(const verbs::Gid& port_gid, const Notice& notice) const;

  std::optional<Outgoing> poll_outgoing();
  std::optional<Event> poll_event();
  std::size_t size() const { return subscriptions_.size(); }

 private:
  static constexpr std::size_t kMaxTickets = 65536;
  using Name = std::pair<verbs::Gid, std::uint16_t>;  // port, trap
  struct Subscription {
    std::vector<Ticket> tickets{};
    std::vector<Ticket> waiting{};  // of those: for the answer
    Patience patience;
    bool is_subscribed = false;
    bool must_renew = false;
    Operation operation = 0;
    bool is_ending = false;  // what the operation does
  };
  using Map = std::map<Name, Subscription>;

  void advance(Map::iterator subscription);

  Map subscriptions_;
  std::map<Operation, Name> by_operation_;
  std::map<Ticket, Name> tickets_;
  std::deque<Outgoing> outgoing_;
  std::deque<Event> events_;
  Operation last_operation_ = 0;
};

}  // namespace ib::sa
