// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaClient: the subnet administrator [IBA1 15] for services of softibd: paths, memberships in
// multicast groups, registration of services, subscriptions to notices. A port is named by one of
// its GIDs; every request travels as a MAD from queue pair 1 of that port.
//
// Every operation returns at once and hands out an object that stands for it. Its callback runs
// later, at dispatch level, never from inside the call that it belongs to, and never after the
// object was destroyed; it may destroy the object and call anything here. Errors:
//   InvalidParameter       the GID is not one of an InfiniBand port, or a field is wrong
//   DeviceRemoved          the port's HCA is gone or sleeps
//   InvalidState           the port is down
//   Timeout                the subnet administrator does not answer
//   NotFound               no record: no such destination, group or service, or it is down
//   AccessDenied           partitions or keys forbid it
//   InsufficientResources  a limit of the subnet administrator, or of this client
//   InvalidParameter, NotSupported, Malformed   what else the subnet administrator may say
// The reason says in words who, why and what to check.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "base/result.h"
#include "sa/client/outgoing.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/notice.h"
#include "sa/records/path_record.h"
#include "sa/records/service_record.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ib::services {

struct SaOutcome {
  Status status = Status::Ok;
  std::string reason;  // if it is not Ok
};

using SaPatience = sa::Patience;

class SaClient {
 public:
  // A query or subscription that is under way. Destroying it withdraws it: no callback any more.
  class Request {
   public:
    virtual ~Request() = default;
  };
  // A share in the membership of a port in a multicast group. The port leaves the group when the
  // last share of any service is destroyed; a share that is destroyed while its join is under way
  // is withdrawn.
  class Membership {
   public:
    virtual ~Membership() = default;
  };
  // A service that is registered, with its lease renewed, until this is destroyed.
  class Registration {
   public:
    virtual ~Registration() = default;
  };

  struct PathQuery {
    verbs::Gid sgid{};
    // The destination, by one of these; zeros: not by it.
    verbs::Gid dgid{};
    std::uint16_t dlid = 0;
    std::uint64_t service_id = 0;
    std::uint16_t pkey = 0xffff;
    // Further components of the record that the path has to have, or is to be marked with: bits of
    // sa::path_component and their values.
    std::uint64_t extra_components = 0;
    sa::PathRecord extra;
    SaPatience patience{};
  };
  using OnPath = std::function<void(const SaOutcome& outcome, const sa::PathRecord& path)>;

  struct JoinRequest {
    // Components of `record` that are valid; at least sa::mc_component::kToJoin, and kToCreate to
    // create the group if it is not there. record.port_gid names the port; an MGID of zero lets the
    // subnet administrator choose one.
    std::uint64_t components = sa::mc_component::kToJoin;
    sa::McMemberRecord record;
    SaPatience patience{};
  };
  // Called once with the group as the subnet administrator has it (MGID, MLID, Q_Key, P_Key, MTU,
  // rate, SL ...), or with an error, after which the share is void. After success it is called
  // again only with an error, when the membership is lost: the port went down, or joining again
  // after the subnet administrator had requested it failed. (The queue pairs that are attached stay
  // attached.)
  using OnJoined = std::function<void(const SaOutcome& outcome, const sa::McMemberRecord& group)>;
  using OnGroup = OnJoined;
  using OnDone = std::function<void(const SaOutcome& outcome)>;

  // Called with success each time the lease was granted, with an error when it could not be renewed
  // (it is tried again).
  using OnRegistered =
      std::function<void(const SaOutcome& outcome, const sa::ServiceRecord& record)>;
  using OnNotice = std::function<void(const sa::Notice& notice)>;

  virtual ~SaClient() = default;

  // Uses the cache if it holds a path that is young enough, and fills it.
  [[nodiscard]] virtual std::unique_ptr<Request> query_path(const PathQuery& query,
                                                            OnPath on_path) = 0;
  // The path from the cache alone.
  [[nodiscard]] virtual std::optional<sa::PathRecord> cached_path(const PathQuery& query) = 0;

  // The attributes of a group, without joining it; NotFound: there is none.
  [[nodiscard]] virtual std::unique_ptr<Request> query_group(const verbs::Gid& port_gid,
                                                             const verbs::Gid& mgid,
                                                             OnGroup on_group) = 0;

  [[nodiscard]] virtual std::unique_ptr<Membership> join(const JoinRequest& request,
                                                         OnJoined on_joined) = 0;
  // As destroying it, with word of when the port has left, or still is a member for another share.
  // A port that went down has left.
  virtual void leave(std::unique_ptr<Membership> membership, OnDone on_done) = 0;

  // record.gid names the port. A lease of sa::kLeaseWithoutEnd needs no renewal.
  [[nodiscard]] virtual std::unique_ptr<Registration> register_service(
      const sa::ServiceRecord& record, OnRegistered on_registered) = 0;
  // Notices with this trap number; sa::kAllTraps of sa/records/inform_info.h: all.
  [[nodiscard]] virtual std::unique_ptr<Request> subscribe(const verbs::Gid& port_gid,
                                                           std::uint16_t trap, OnNotice on_notice,
                                                           OnDone on_subscribed) = 0;
};

}  // namespace ib::services
