// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subscriptions to notices [IBA1 13.4.11, 15.2.5.12], and the Reports that they get. The Reports of
// a subscription are sent one after the other; whoever sends them repeats each until it is answered
// or the tries are used up. A subscriber that answers none of several Reports is given up.
#pragma once

#include "sa/records/inform_info.h"
#include "sa/records/notice.h"
#include "sa/server/request.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>

namespace ib::sa {

struct SubscriptionLimits {
  std::size_t subscriptions = 65536;
  std::size_t subscriptions_of_port = 64;
  std::size_t waiting_reports = 256;  // of a subscription; more are lost
  std::uint32_t failures = 3;         // Reports in turn that are not answered
};

// A Report to send, with Notice as its attribute.
struct Report {
  std::uint64_t subscription = 0;
  std::uint16_t lid = 0;
  std::uint32_t qpn = 1;
  Notice notice;
};

class Subscriptions {
 public:
  explicit Subscriptions(const SubscriptionLimits& limits) : limits_(limits) {}

  // Set(InformInfo). `info` is the request, and the answer if the status is Ok.
  std::uint16_t set(const Requester& requester, InformInfo& info);
  // Get and GetTable of InformInfoRecord: to a port its own, to a trusted requester all.
  void find(const Requester& requester, std::uint64_t components, const InformInfoRecord& wanted,
            RecordList& records) const;

  // Queues a Report for each subscription that fits. `pkeys`: of what the notice is about, which
  // only ports that reach it hear of; empty: all do.
  void publish(const Notice& notice, std::span<const std::uint16_t> pkeys,
               const Topology& topology);
  // The next Report to send; nothing: there is none, or each is under way.
  std::optional<Report> take_report();
  // A Report was answered, or was not in all tries.
  void on_report_done(std::uint64_t subscription, bool is_answered);

  void drop(const verbs::Gid& port_gid);
  std::size_t count() const { return subscriptions_.size(); }
  std::uint64_t lost_reports() const { return lost_reports_; }

 private:
  struct Subscription {
    verbs::Gid gid{};  // of the subscriber
    std::uint16_t lid = 0;
    std::uint32_t qpn = 1;
    std::uint16_t number = 0;  // among those of its port
    InformInfo info;
    std::deque<Notice> waiting{};
    bool is_under_way = false;
    std::uint32_t failures = 0;
  };
  using SubscriptionMap = std::map<std::uint64_t, Subscription>;

  SubscriptionMap::iterator find_same(const Requester& requester, const InformInfo& info,
                                      std::uint32_t qpn);
  void erase(SubscriptionMap::iterator subscription);

  SubscriptionLimits limits_;
  SubscriptionMap subscriptions_;
  std::map<verbs::Gid, std::set<std::uint64_t>> of_port_;
  std::set<std::uint64_t> ready_;  // have a Report to send
  std::uint64_t last_id_ = 0;
  std::uint64_t lost_reports_ = 0;
};

}  // namespace ib::sa
