// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/client/registrations.h"

namespace ib::sa {
namespace {

namespace component = service_component;
constexpr std::uint64_t kAll = component::kNames | component::kLease | component::kKey |
                               component::kName | component::kData8 | component::kData16 |
                               component::kData32 | component::kData64;

}  // namespace

void Registrations::set_due(Map::iterator registration, std::optional<Instant> due) {
  auto& [ticket, in] = *registration;
  if (in.due) due_.erase({*in.due, ticket});
  in.due = due;
  if (due) due_.emplace(*due, ticket);
}

void Registrations::send(Map::iterator registration) {
  auto& [ticket, in] = *registration;
  in.operation = ++last_operation_;
  in.is_deleting = in.is_given_up;
  by_operation_.emplace(in.operation, ticket);
  set_due(registration, std::nullopt);
  const auto bytes = encode(in.record);
  outgoing_.push_back({in.operation, in.record.gid, in.is_deleting ? method::kDelete : method::kSet,
                       attribute::kServiceRecord,
                       in.is_deleting ? component::kNames | component::kKey : kAll,
                       std::vector<std::byte>(bytes.begin(), bytes.end()), in.patience});
}

// Sends what is to be sent, unless a request is under way.
void Registrations::advance(Map::iterator registration, Instant now) {
  Registration& in = registration->second;
  if (in.operation != 0) return;
  if (!in.is_given_up) {
    if (in.due && *in.due <= now) send(registration);
    return;
  }
  if (in.is_registered) return send(registration);
  set_due(registration, std::nullopt);
  registrations_.erase(registration);
}

Status Registrations::add(Ticket ticket, const ServiceRecord& record, const Patience& patience,
                          Instant now) {
  if (registrations_.size() >= options_.registrations) return Status::LimitExceeded;
  const auto registration = registrations_.emplace(ticket, Registration{record, patience}).first;
  set_due(registration, now);
  advance(registration, now);
  return Status::Ok;
}

void Registrations::remove(Ticket ticket, Instant now) {
  const auto registration = registrations_.find(ticket);
  if (registration == registrations_.end()) return;
  registration->second.is_given_up = true;
  advance(registration, now);
}

void Registrations::on_answer(Operation operation, const Outcome& outcome,
                              std::span<const std::byte> record, Instant now) {
  const auto found = by_operation_.find(operation);
  if (found == by_operation_.end()) return;
  const auto registration = registrations_.find(found->second);
  by_operation_.erase(found);
  auto& [ticket, in] = *registration;
  in.operation = 0;
  if (in.is_deleting) {
    in.is_registered = false;  // if it was not deleted, its lease ends or its port goes
    return advance(registration, now);
  }
  // Without an answer it may be registered all the same.
  in.is_registered |= outcome.is_ok() || outcome.status != Status::Ok;
  ServiceRecord granted = outcome.is_ok() ? decode_some<ServiceRecord>(record) : in.record;
  if (!outcome.is_ok() || granted.lease_seconds == 0) {
    set_due(registration, now + options_.retry);
  } else if (granted.lease_seconds != kLeaseWithoutEnd) {
    set_due(registration, now + Duration(std::chrono::seconds(granted.lease_seconds)) / 2);
  }
  if (!in.is_given_up) events_.push_back({ticket, outcome, granted});
  advance(registration, now);
}

void Registrations::on_reregister(const verbs::Gid& port_gid, Instant now) {
  for (auto registration = registrations_.begin(); registration != registrations_.end();) {
    const auto next = std::next(registration);
    if (registration->second.record.gid == port_gid && !registration->second.is_given_up) {
      set_due(registration, now);
      advance(registration, now);
    }
    registration = next;
  }
}

void Registrations::on_time(Instant now) {
  while (!due_.empty() && due_.begin()->first <= now) {
    const auto registration = registrations_.find(due_.begin()->second);
    // One with a request under way looks again when that has ended.
    if (registration->second.operation != 0) {
      set_due(registration, now + options_.retry);
      continue;
    }
    advance(registration, now);
  }
}

std::optional<Instant> Registrations::deadline() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

std::optional<Outgoing> Registrations::poll_outgoing() {
  if (outgoing_.empty()) return std::nullopt;
  Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  return next;
}

std::optional<Registrations::Event> Registrations::poll_event() {
  if (events_.empty()) return std::nullopt;
  Event next = std::move(events_.front());
  events_.pop_front();
  return next;
}

}  // namespace ib::sa
