// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_subscriptions.h"

#include <utility>

namespace ib::services {

std::unique_ptr<SaClient::Request> SaSubscriptions::add(const verbs::Gid& port_gid,
                                                        std::uint16_t trap, OnNotice on_notice,
                                                        OnDone on_subscribed) {
  const sa::Ticket ticket = ++last_ticket_;
  subscribed_.emplace(ticket, Subscribed{std::move(on_notice), std::move(on_subscribed)});
  if (engine_.add(ticket, port_gid, trap, {}) != Status::Ok) {
    around_.deliveries.later([this, ticket] {
      const auto found = subscribed_.find(ticket);
      if (found == subscribed_.end()) return;
      const OnDone call = found->second.on_subscribed;
      call({Status::InsufficientResources, "there are too many subscriptions"});
    });
  }
  pump();
  return std::make_unique<SaHandle<SaClient::Request>>([this, ticket] {
    subscribed_.erase(ticket);
    engine_.remove(ticket);
    pump();
  });
}

void SaSubscriptions::on_report(const verbs::Gid& port_gid, const sa::Notice& notice) {
  for (const sa::Ticket ticket : engine_.on_report(port_gid, notice)) {
    around_.deliveries.later([this, ticket, notice] {
      const auto found = subscribed_.find(ticket);
      if (found == subscribed_.end()) return;
      const OnNotice call = found->second.on_notice;
      call(notice);
    });
  }
}

void SaSubscriptions::on_reregister(const verbs::Gid& port_gid) {
  engine_.on_reregister(port_gid);
  pump();
}

void SaSubscriptions::on_event(const sa::Subscriber::Event& event) {
  const auto found = subscribed_.find(event.ticket);
  if (found == subscribed_.end()) return;
  const OnDone call = found->second.on_subscribed;
  call(around_.explain(event.outcome, "subscribing"));
}

void SaSubscriptions::pump() {
  const auto on_answer = [this](sa::Operation operation, const sa::Outcome& outcome,
                                std::span<const std::byte>) {
    engine_.on_answer(operation, outcome);
    pump();
  };
  if (!pump_.run(on_answer)) return;
  while (auto event = engine_.poll_event()) {
    around_.deliveries.later([this, event = *std::move(event)] { on_event(event); });
  }
}

}  // namespace ib::services
