// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_registrations.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace ib::services {

std::unique_ptr<SaClient::Registration> SaRegistrations::add(const sa::ServiceRecord& record,
                                                             OnRegistered on_registered) {
  const sa::Ticket ticket = ++last_ticket_;
  registered_.emplace(ticket, std::move(on_registered));
  if (engine_.add(ticket, record, {}, around_.executor.now()) != Status::Ok) {
    around_.deliveries.later([this, ticket, record] {
      const auto found = registered_.find(ticket);
      if (found == registered_.end()) return;
      const OnRegistered call = found->second;
      call({Status::InsufficientResources, "too many services are registered"}, record);
    });
  }
  pump();
  return std::make_unique<SaHandle<SaClient::Registration>>([this, ticket] {
    registered_.erase(ticket);
    engine_.remove(ticket, around_.executor.now());
    pump();
  });
}

void SaRegistrations::on_reregister(const verbs::Gid& port_gid) {
  engine_.on_reregister(port_gid, around_.executor.now());
  pump();
}

void SaRegistrations::on_event(const sa::Registrations::Event& event) {
  const auto found = registered_.find(event.ticket);
  if (found == registered_.end()) return;
  const OnRegistered call = found->second;
  call(around_.explain(event.outcome, fmt::format("registering service {:#x}", event.record.id)),
       event.record);
}

void SaRegistrations::pump() {
  const auto on_answer = [this](sa::Operation operation, const sa::Outcome& outcome,
                                std::span<const std::byte> record) {
    engine_.on_answer(operation, outcome, record, around_.executor.now());
    pump();
  };
  if (!pump_.run(on_answer)) return;
  while (auto event = engine_.poll_event()) {
    around_.deliveries.later([this, event = *std::move(event)] { on_event(event); });
  }
  leases_.reset();
  const std::optional<Instant> deadline = engine_.deadline();
  if (!deadline) return;
  leases_ = around_.executor.at(*deadline, [this] {
    engine_.on_time(around_.executor.now());
    pump();
  });
}

}  // namespace ib::services
