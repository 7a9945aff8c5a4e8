// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/client/subscriber.h"

#include <algorithm>

namespace ib::sa {

Status Subscriber::add(Ticket ticket, const verbs::Gid& port_gid, std::uint16_t trap,
                       const Patience& patience) {
  if (tickets_.size() >= kMaxTickets) return Status::LimitExceeded;
  const Name name{port_gid, trap};
  const auto subscription = subscriptions_.try_emplace(name).first;
  Subscription& in = subscription->second;
  tickets_.emplace(ticket, name);
  in.tickets.push_back(ticket);
  in.waiting.push_back(ticket);
  in.patience = patience;
  advance(subscription);
  return Status::Ok;
}

void Subscriber::remove(Ticket ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  const auto subscription = subscriptions_.find(found->second);
  tickets_.erase(found);
  std::erase(subscription->second.tickets, ticket);
  std::erase(subscription->second.waiting, ticket);
  advance(subscription);
}

void Subscriber::advance(Map::iterator subscription) {
  auto& [name, in] = *subscription;
  if (in.operation != 0) return;
  const bool is_wanted = !in.tickets.empty();
  if (is_wanted && in.is_subscribed && !in.must_renew) {
    for (const Ticket ticket : std::exchange(in.waiting, {})) events_.push_back({ticket, {}});
    return;
  }
  if (!is_wanted && !in.is_subscribed) {
    subscriptions_.erase(subscription);
    return;
  }
  in.operation = ++last_operation_;
  in.is_ending = !is_wanted;
  in.must_renew = false;
  by_operation_.emplace(in.operation, name);
  InformInfo info;
  info.subscribe = is_wanted ? 1 : 0;
  info.trap = name.second;
  info.qpn = is_wanted ? 0 : 1;
  const auto bytes = encode(info);
  outgoing_.push_back({in.operation, name.first, method::kSet, attribute::kInformInfo, 0,
                       std::vector<std::byte>(bytes.begin(), bytes.end()), in.patience});
}

void Subscriber::on_answer(Operation operation, const Outcome& outcome) {
  const auto found = by_operation_.find(operation);
  if (found == by_operation_.end()) return;
  const auto subscription = subscriptions_.find(found->second);
  by_operation_.erase(found);
  Subscription& in = subscription->second;
  in.operation = 0;
  if (in.is_ending) {
    in.is_subscribed = false;  // what may be left of it ends with the port
  } else if (outcome.is_ok()) {
    in.is_subscribed = true;
  } else {
    in.is_subscribed = false;
    in.waiting.clear();
    for (const Ticket ticket : std::exchange(in.tickets, {})) {
      tickets_.erase(ticket);
      events_.push_back({ticket, outcome});
    }
  }
  advance(subscription);
}

void Subscriber::on_reregister(const verbs::Gid& port_gid) {
  for (auto subscription = subscriptions_.begin(); subscription != subscriptions_.end();) {
    const auto next = std::next(subscription);
    if (subscription->first.first == port_gid) {
      subscription->second.must_renew = true;
      advance(subscription);
    }
    subscription = next;
  }
}

std::vector<Ticket> Subscriber::on_report(const verbs::Gid& port_gid, const Notice& notice) const {
  std::vector<Ticket> tickets;
  for (const std::uint16_t trap : {notice.trap, kAllTraps}) {
    if (trap == kAllTraps && notice.trap == kAllTraps && !tickets.empty()) break;
    const auto subscription = subscriptions_.find({port_gid, trap});
    if (subscription == subscriptions_.end()) continue;
    tickets.insert(tickets.end(), subscription->second.tickets.begin(),
                   subscription->second.tickets.end());
  }
  return tickets;
}

std::optional<Outgoing> Subscriber::poll_outgoing() {
  if (outgoing_.empty()) return std::nullopt;
  Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  return next;
}

std::optional<Subscriber::Event> Subscriber::poll_event() {
  if (events_.empty()) return std::nullopt;
  Event next = std::move(events_.front());
  events_.pop_front();
  return next;
}

}  // namespace ib::sa
