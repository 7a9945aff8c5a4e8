// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiSaClient: the SaClient of softibd, one for all nodes: the engines of sa/client/ over Gsi.
//
// Outlives what it hands out. Thread rule: the executor's thread, dispatch level.
#pragma once

#include "sa/client/joins.h"
#include "sa/client/path_cache.h"
#include "sa/client/registrations.h"
#include "sa/client/subscriber.h"
#include "services/sa/sa_client.h"
#include "services/sa/sa_transport.h"

#include <deque>
#include <functional>
#include <map>
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
  class Share;
  struct PathWaiter {
    PathQuery query;
    OnPath on_path;
    std::uint64_t sent = 0;  // a query of its own
  };
  struct Joining {
    OnJoined on_joined;
    std::string what;
  };
  struct Subscribed {
    OnNotice on_notice;
    OnDone on_subscribed;
  };
  using Event = std::function<void()>;

  GsiSaClient(Gsi& gsi, SaService& service, const fabric::Fabric& fabric,
              platform::Executor& executor, const Options& options);

  void send_path_query(sa::Ticket ticket, const PathQuery& query, bool is_shared);
  void on_path(sa::Ticket ticket, const sa::Outcome& outcome, const sa::PathRecord& path);
  void withdraw_path(sa::Ticket ticket);
  void give_back(sa::Ticket ticket, OnDone on_done);
  void on_message(const GsiMessage& message);
  void on_port_event(const GsiPortEvent& event);
  void on_port(const fabric::Port& port, const verbs::Gid& gid, bool is_up);
  // Calls back soon, in order.
  void later(Event event);
  void deliver();
  // Sends what the engines want to send, and has their events delivered.
  void pump();
  void take_events();
  void on_join_event(const sa::Joins::Event& event);
  void arm();

  Gsi& gsi_;
  SaService& service_;
  const fabric::Fabric& fabric_;
  platform::Executor& executor_;
  AgentId agent_ = 0;
  std::unique_ptr<SaTransport> transport_;
  sa::PathCache paths_;
  sa::Joins joins_;
  sa::Registrations registrations_;
  sa::Subscriber subscriber_;
  std::map<sa::Ticket, PathWaiter> path_waiters_;
  std::map<sa::PathCache::Key, std::uint64_t> path_queries_;  // shared ones that are under way
  std::map<sa::Ticket, OnGroup> group_waiters_;
  std::map<sa::Ticket, Joining> joining_;
  std::map<sa::Ticket, OnDone> leaving_;
  std::map<sa::Ticket, OnRegistered> registered_;
  std::map<sa::Ticket, Subscribed> subscribed_;
  std::deque<Event> events_;
  sa::Ticket last_ticket_ = 0;
  bool is_pumping_ = false;
  std::unique_ptr<platform::Timer> delivery_;
  std::unique_ptr<platform::Timer> leases_;
};

}  // namespace ib::services
