// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Server: the subnet administrator [IBA1 15]. It answers requests from the topology, which it only
// reads, and from what it holds itself: multicast groups, services and subscriptions.
//
// Sans-IO: requests, changes of the topology and the time come in; answers and Reports go out.
// Thread rule: its owner's, one at a time.
#pragma once

#include "base/time.h"
#include "sa/server/groups.h"
#include "sa/server/request.h"
#include "sa/server/services.h"
#include "sa/server/subscriptions.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ib::sa {

struct ServerLimits {
  // A peer receives 16 MiB at most, headers and all (mad/rmpp_receiver.h).
  std::size_t answer_bytes = (std::size_t{16} << 20) - mad::kMadSize;
  GroupLimits groups{};
  ServiceLimits services{};
  SubscriptionLimits subscriptions{};
};

struct ServerOptions {
  std::uint64_t sm_key = 0;         // a request with it is trusted; 0: none is
  std::uint8_t response_time = 18;  // of ClassPortInfo: 4.096 us * 2^n, about a second
  ServerLimits limits{};
};

class Server {
 public:
  Server(const Topology& topology, const ServerOptions& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() = default;

  // Returns nothing if the request gets no answer: its SM_Key is wrong, or it is none of a method
  // that is answered.
  std::optional<Answer> handle(const Request& request, Instant now);

  // A group that is there without members; `record` has all attributes but the MLID.
  void add_permanent_group(const McMemberRecord& record) { groups_.add_permanent(record); }

  // The topology changed. A port that comes is in it already, one that goes is not any more;
  // `gids` and `pkeys` are those that it had. Its memberships and records are gone then.
  void on_port_up(const EndPort& port);
  void on_port_down(std::span<const verbs::Gid> gids, std::span<const std::uint16_t> pkeys);
  // A notice of others, for those that subscribed to it.
  void on_notice(const Notice& notice);

  // Leases.
  void on_time(Instant now) { services_.on_time(now); }
  std::optional<Instant> deadline() const { return services_.deadline(); }

  // Reports to send; see subscriptions.h.
  std::optional<Report> take_report() { return subscriptions_.take_report(); }
  void on_report_done(std::uint64_t subscription, bool is_answered) {
    subscriptions_.on_report_done(subscription, is_answered);
  }

  const Groups& groups() const { return groups_; }
  const Services& services() const { return services_; }
  const Subscriptions& subscriptions() const { return subscriptions_; }

 private:
  std::optional<Requester> requester_of(const Request& request) const;
  Answer dispatch(const Requester& requester, const Request& request, Instant now);
  Answer class_port_info(const Request& request) const;
  Answer inform_info(const Requester& requester, const Request& request);
  Answer mc_member(const Requester& requester, const Request& request);
  Answer service(const Requester& requester, const Request& request, Instant now);
  Answer query(const Requester& requester, const Request& request) const;
  std::uint16_t collect(const Requester& requester, const Request& request,
                        RecordList& records) const;
  std::uint16_t paths(const Requester& requester, const Request& request,
                      RecordList& records) const;
  void publish_groups();
  void publish(std::uint16_t trap, const verbs::Gid& gid, std::span<const std::uint16_t> pkeys);

  const Topology& topology_;
  ServerOptions options_;
  Groups groups_;
  Services services_;
  Subscriptions subscriptions_;
};

}  // namespace ib::sa
