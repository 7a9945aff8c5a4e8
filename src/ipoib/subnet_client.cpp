// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine's requests as those of softibd's client of the subnet administrator, and back. A
// request that cannot be sent is answered in deliver(), at the end of the turn.
#include "ipoib/subnet_client.h"

namespace ib::ipoib::driver {

namespace control = user::control;
using user::ServiceEnd;

namespace {

// Bits of MCMemberRecord:JoinState [IBA1 15.2.5.17].
constexpr std::uint8_t kFullMemberBit = 1;
constexpr std::uint8_t kSendOnlyBit = 4;
// Traps about ports [IBA1 14.2.5.1].
constexpr std::uint16_t kPortInService = 64;
constexpr std::uint16_t kPortOutOfService = 65;

PathRecord to_record(const control::SaPath& answer) {
  PathRecord record;
  record.dlid = Lid{answer.path.dlid};
  record.service_level = answer.path.sl;
  record.rate = answer.path.rate;
  record.mtu = static_cast<MtuCode>(answer.mtu);
  record.is_global = answer.path.hop_limit > 1;
  record.flow_label = answer.path.flow_label;
  record.hop_limit = answer.path.hop_limit;
  record.traffic_class = answer.path.traffic_class;
  return record;
}

GroupParameters to_parameters(const control::SaGroup& group) {
  GroupParameters parameters;
  parameters.mlid = Lid{group.mlid};
  parameters.qkey = Qkey{group.qkey};
  parameters.mtu = static_cast<MtuCode>(group.mtu);
  parameters.rate = group.rate;
  parameters.service_level = group.sl;
  return parameters;
}

control::SaJoinIn to_join(const JoinRequest& request, const Station& station) {
  control::SaJoinIn in;
  in.port = station.port;
  in.mgid = request.mgid.bytes;
  in.join_state = request.membership == Membership::Full ? kFullMemberBit : kSendOnlyBit;
  in.pkey = static_cast<std::uint16_t>(station.pkey);
  if (request.create) {
    in.may_create = true;
    in.qkey = static_cast<std::uint32_t>(request.create->qkey);
    in.traffic_class = request.create->traffic_class;
    in.sl = request.create->service_level;
    in.flow_label = request.create->flow_label;
  }
  return in;
}

}  // namespace

Status SubnetClient::open() {
  return sa_.open(station_.hca, [this](const ServiceEnd& end) {
    sink_.on_subnet_open(end);
    if (end.status != Status::Ok) return;
    subscribe(kPortInService);
    subscribe(kPortOutOfService);
  });
}

void SubnetClient::query_path(RequestId id, const Gid& destination) {
  control::SaPathIn in;
  in.port = station_.port;
  in.dgid = destination.bytes;
  in.pkey = static_cast<std::uint16_t>(station_.pkey);
  const Status sent =
      sa_.query_path(in, [this, id](const ServiceEnd& end, const control::SaPath& path) {
        sink_.on_path_answer(id, end.status == Status::Ok ? Result<PathRecord>(to_record(path))
                                                          : Result<PathRecord>(end.status));
      });
  if (sent != Status::Ok) refused_.push_back({id, false, sent});
}

void SubnetClient::join(RequestId id, const JoinRequest& request) {
  const Gid mgid = request.mgid;
  const bool may_create = request.create.has_value();
  joins_[mgid] = id;
  const Status sent =
      sa_.join(to_join(request, station_),
               [this, id, mgid, may_create](const ServiceEnd& end, const auto& group) {
                 ServiceEnd known = end;
                 // A join with too few components for a group that is not there.
                 if (!may_create && end.status == Status::InvalidParameter)
                   known.status = Status::NotFound;
                 on_group(id, mgid, known, group);
               });
  if (sent == Status::Ok) return;
  joins_.erase(mgid);
  refused_.push_back({id, true, sent});
}

void SubnetClient::on_group(RequestId id, const Gid& mgid, const ServiceEnd& end,
                            const control::SaGroup& group) {
  const auto join = joins_.find(mgid);
  if (join == joins_.end() || join->second != id) {  // left, or joined again, meanwhile
    if (group.handle != 0) (void)sa_.destroy(group.handle);
    return;
  }
  joins_.erase(join);
  if (end.status != Status::Ok) {
    sink_.on_join_answer(id, Result<GroupParameters>(end.status));
    return;
  }
  // The new share holds the membership while an older one, of a join before this one, goes.
  control::SaHandle& share = shares_[mgid];
  if (share != 0) (void)sa_.destroy(share);
  share = group.handle;
  watch_group(mgid, share);
  sink_.on_join_answer(id, Result<GroupParameters>(to_parameters(group)));
}

void SubnetClient::watch_group(const Gid& mgid, control::SaHandle share) {
  (void)sa_.wait_event(
      share, [this, mgid, share](const ServiceEnd& end, const control::SaEvent& event) {
        const auto known = shares_.find(mgid);
        if (end.status != Status::Ok || known == shares_.end() || known->second != share) return;
        if (event.kind != control::SaEventKind::MembershipLost) return watch_group(mgid, share);
        shares_.erase(known);
        (void)sa_.destroy(share);
        sink_.on_memberships_lost();
      });
}

void SubnetClient::leave(const Gid& mgid) {
  joins_.erase(mgid);
  const auto known = shares_.find(mgid);
  if (known == shares_.end()) return;
  (void)sa_.destroy(known->second);
  shares_.erase(known);
}

void SubnetClient::subscribe(std::uint16_t trap) {
  control::SaSubscribeIn in;
  in.port = station_.port;
  in.trap = trap;
  // Without reports, paths are refreshed when they are old.
  (void)sa_.subscribe(in, [this](const ServiceEnd& end) {
    if (end.status == Status::Ok) watch_reports(end.handle);
  });
}

void SubnetClient::watch_reports(control::SaHandle subscription) {
  (void)sa_.wait_event(subscription,
                       [this, subscription](const ServiceEnd& end, const control::SaEvent& event) {
                         if (end.status != Status::Ok) return;
                         watch_reports(subscription);
                         if (event.kind == control::SaEventKind::Report)
                           sink_.on_path_changed(Gid{event.subject});
                       });
}

void SubnetClient::deliver() {
  for (const Refused& refused : std::exchange(refused_, {})) {
    if (refused.is_join) {
      sink_.on_join_answer(refused.id, Result<GroupParameters>(refused.status));
    } else {
      sink_.on_path_answer(refused.id, Result<PathRecord>(refused.status));
    }
  }
}

}  // namespace ib::ipoib::driver
