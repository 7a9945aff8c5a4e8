// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiSaClient: the SaClient of softibd, one for all nodes: the engines of sa/client/ over Gsi.
//
// Outlives what it hands out. Thread rule: the executor's thread, dispatch level.
#pragma once

#include "services/sa/sa_client.h"
#include "services/sa/sa_deliveries.h"
#include "services/sa/sa_groups.h"
#include "services/sa/sa_paths.h"
#include "services/sa/sa_registrations.h"
#include "services/sa/sa_subscriptions.h"
#include "services/sa/sa_transport.h"

#include <memory>
#include <optional>
#include <string>

namespace ib::services {

class GsiSaClient final : public SaClient {
 public:
  struct Options {
    sa::PathCache::Options paths{};
    sa::Joins::Limits joins{};
    sa::Registrations::Options registrations{};
  };
  // Hears of ports through the service (SaService::set_on_port). AlreadyExists: another agent takes
  // Reports.
  static Result<std::unique_ptr<GsiSaClient>> create(Gsi& gsi, SaService& service,
                                                     const fabric::Fabric& fabric,
                                                     platform::Executor& executor,
                                                     const Options& options, std::string& reason);
  ~GsiSaClient() override;

  std::unique_ptr<Request> query_path(const PathQuery& query, OnPath on_path) override;
  std::optional<sa::PathRecord> cached_path(const PathQuery& query) override;
  std::unique_ptr<Request> query_group(const verbs::Gid& port_gid, const verbs::Gid& mgid,
                                       OnGroup on_group) override;
  std::unique_ptr<Membership> join(const JoinRequest& request, OnJoined on_joined) override;
  void leave(std::unique_ptr<Membership> membership, OnDone on_done) override;
  std::unique_ptr<Registration> register_service(const sa::ServiceRecord& record,
                                                 OnRegistered on_registered) override;
  std::unique_ptr<Request> subscribe(const verbs::Gid& port_gid, std::uint16_t trap,
                                     OnNotice on_notice, OnDone on_subscribed) override;

 private:
  GsiSaClient(Gsi& gsi, SaService& service, const fabric::Fabric& fabric,
              platform::Executor& executor, const Options& options);

  void on_message(const GsiMessage& message);
  void on_port_event(const GsiPortEvent& event);
  void on_port(const fabric::Port& port, const verbs::Gid& gid, bool is_up);

  Gsi& gsi_;
  SaService& service_;
  const fabric::Fabric& fabric_;
  AgentId agent_ = 0;
  SaTransport transport_;
  SaDeliveries deliveries_;
  SaPaths paths_;
  SaGroups groups_;
  SaRegistrations registrations_;
  SaSubscriptions subscriptions_;
};

}  // namespace ib::services
