// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaSubscriptions: subscriptions to notices.
#pragma once

#include "sa/client/subscriber.h"
#include "services/sa/sa_client.h"
#include "services/sa/sa_part_internal.h"

#include <cstdint>
#include <map>
#include <memory>

namespace ib::services {

class SaSubscriptions {
 public:
  using OnNotice = SaClient::OnNotice;
  using OnDone = SaClient::OnDone;

  explicit SaSubscriptions(const SaSurroundings& around)
      : around_(around), pump_(engine_, around.transport) {}
  SaSubscriptions(const SaSubscriptions&) = delete;
  SaSubscriptions& operator=(const SaSubscriptions&) = delete;

  // SaClient::subscribe().
  std::unique_ptr<SaClient::Request> add(const verbs::Gid& port_gid, std::uint16_t trap,
                                         OnNotice on_notice, OnDone on_subscribed);
  // A Report came to the port.
  void on_report(const verbs::Gid& port_gid, const sa::Notice& notice);
  void on_reregister(const verbs::Gid& port_gid);

 private:
  struct Subscribed {
    OnNotice on_notice;
    OnDone on_subscribed;
  };

  void pump();
  void on_event(const sa::Subscriber::Event& event);

  SaSurroundings around_;
  sa::Subscriber engine_;
  SaPump<sa::Subscriber> pump_;
  std::map<sa::Ticket, Subscribed> subscribed_;
  sa::Ticket last_ticket_ = 0;
};

}  // namespace ib::services
