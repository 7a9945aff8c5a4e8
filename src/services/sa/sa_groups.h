// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaGroups: shares in memberships of multicast groups, and queries of groups.
#pragma once

#include "sa/client/joins.h"
#include "services/sa/sa_client.h"
#include "services/sa/sa_part_internal.h"

#include <map>
#include <memory>
#include <string>

namespace ib::services {

class SaGroups {
 public:
  using OnGroup = SaClient::OnGroup;
  using OnJoined = SaClient::OnJoined;
  using OnDone = SaClient::OnDone;
  using JoinRequest = SaClient::JoinRequest;

  SaGroups(const SaSurroundings& around, const sa::Joins::Limits& limits)
      : around_(around), engine_(limits), pump_(engine_, around.transport) {}
  SaGroups(const SaGroups&) = delete;
  SaGroups& operator=(const SaGroups&) = delete;

  // SaClient::query_group(), join() and leave().
  std::unique_ptr<SaClient::Request> query(const verbs::Gid& port_gid, const verbs::Gid& mgid,
                                           OnGroup on_group);
  std::unique_ptr<SaClient::Membership> join(const JoinRequest& request, OnJoined on_joined);
  void leave(std::unique_ptr<SaClient::Membership> membership, OnDone on_done);

  void on_reregister(const verbs::Gid& port_gid);
  // Its requests that are under way are to be ended by the caller, and then pump() called.
  void on_port_lost(const verbs::Gid& port_gid, const sa::Outcome& lost) {
    engine_.on_port_lost(port_gid, lost.status, lost.reason);
  }
  // Sends what the engine wants to send, and has its events delivered.
  void pump();

 private:
  class Share;
  struct Joining {
    OnJoined on_joined;
    std::string what;
  };

  void give_back(sa::Ticket ticket, OnDone on_done);
  void on_event(const sa::Joins::Event& event);

  SaSurroundings around_;
  sa::Joins engine_;
  SaPump<sa::Joins> pump_;
  std::map<sa::Ticket, OnGroup> waiters_;
  std::map<sa::Ticket, Joining> joining_;
  std::map<sa::Ticket, OnDone> leaving_;
  sa::Ticket last_ticket_ = 0;
};

}  // namespace ib::services
