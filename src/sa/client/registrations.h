// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registrations: services that this client's ports offer. Each is registered with the subnet
// administrator, has its lease renewed when half of it is over, and is deleted when it is given up.
//
// Sans-IO. A registration has one request under way at a time.
#pragma once

#include "sa/client/outgoing.h"
#include "sa/records/service_record.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace ib::sa {

class Registrations {
 public:
  // The lease was granted or renewed, or it was not and is tried again.
  struct Event {
    Ticket ticket = 0;
    Outcome outcome;
    ServiceRecord record;
  };
  struct Options {
    Duration retry = std::chrono::seconds(5);  // after a failure
    std::size_t registrations = 4096;
  };

  Registrations() = default;
  explicit Registrations(const Options& options) : options_(options) {}

  // LimitExceeded: there are too many.
  Status add(Ticket ticket, const ServiceRecord& record, const Patience& patience, Instant now);
  // Gives it up; nothing is reported.
  void remove(Ticket ticket, Instant now);
  void on_answer(Operation operation, const Outcome& outcome, std::span<const std::byte> record,
                 Instant now);
  // The subnet administrator may have forgotten what the port registered.
  void on_reregister(const verbs::Gid& port_gid, Instant now);
  void on_time(Instant now);
  std::optional<Instant> deadline() const;

  std::optional<Outgoing> poll_outgoing();
  std::optional<Event> poll_event();
  std::size_t size() const { return registrations_.size(); }

 private:
  struct Registration {
    ServiceRecord record;
    Patience patience;
    Operation operation = 0;  // under way
    bool is_deleting = false;
    bool is_given_up = false;
    bool is_registered = false;  // or may be
    std::optional<Instant> due{};
  };
  using Map = std::map<Ticket, Registration>;

  void set_due(Map::iterator registration, std::optional<Instant> due);
  void send(Map::iterator registration);
  void advance(Map::iterator registration, Instant now);

  Options options_;
  Map registrations_;
  std::map<Operation, Ticket> by_operation_;
  std::set<std::pair<Instant, Ticket>> due_;
  std::deque<Outgoing> outgoing_;
  std::deque<Event> events_;
  Operation last_operation_ = 0;
};

}  // namespace ib::sa
