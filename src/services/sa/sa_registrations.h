// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaRegistrations: services that are registered, and the renewal of their leases.
#pragma once

#include "sa/client/registrations.h"
#include "services/sa/sa_client.h"
#include "services/sa/sa_part_internal.h"

#include <map>
#include <memory>

namespace ib::services {

class SaRegistrations {
 public:
  using OnRegistered = SaClient::OnRegistered;

  SaRegistrations(const SaSurroundings& around, const sa::Registrations::Options& options)
      : around_(around), engine_(options), pump_(engine_, around.transport) {}
  SaRegistrations(const SaRegistrations&) = delete;
  SaRegistrations& operator=(const SaRegistrations&) = delete;

  // SaClient::register_service().
  std::unique_ptr<SaClient::Registration> add(const sa::ServiceRecord& record,
                                              OnRegistered on_registered);
  void on_reregister(const verbs::Gid& port_gid);

 private:
  void pump();
  void on_event(const sa::Registrations::Event& event);

  SaSurroundings around_;
  sa::Registrations engine_;
  SaPump<sa::Registrations> pump_;
  std::map<sa::Ticket, OnRegistered> registered_;
  sa::Ticket last_ticket_ = 0;
  std::unique_ptr<platform::Timer> leases_;
};

}  // namespace ib::services
