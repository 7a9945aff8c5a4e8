// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memberships of multicast groups. On InfiniBand a group has a LID for as long as it has members.
#include "services/rdma_cm/places.h"
#include "services/rdma_cm/queries.h"
#include "services/rdma_cm/service.h"

#include <cstring>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint16_t kFirstMlid = 0xc000;  // [IBA1 4.1.3]
constexpr std::uint16_t kLastMlid = 0xfffe;
constexpr std::uint32_t kMulticastQpn = 0xffffff;
constexpr std::size_t kMostOfId = 64;

}  // namespace

Error Service::join(Id& id, const EndpointAddress& group, std::uint16_t flags, std::uint64_t uid,
                    std::uint32_t& number) {
  if (id.qp_type != verbs::QpType::Ud) return Error::Invalid;
  if (id.state != IdState::AddrBound && id.state != IdState::AddrResolved) return Error::Invalid;
  if (id.port == nullptr) return Error::NoDevice;
  if (id.multicasts.size() >= kMostOfId) return Error::NoMemory;
  const bool is_ethernet = id.port->is_ethernet();
  const verbs::Gid mgid =
      is_ethernet ? group.ip : multicast_gid(group, id.space, id.port->pkeys.front());
  if (!verbs::is_multicast(mgid)) return Error::Invalid;
  static_cast<void>(flags);  // a full member may send, too
  std::uint16_t mlid = 0;
  if (!is_ethernet) {
    mlid = take_mlid(mgid);
    if (mlid == 0) return Error::NoMemory;
  }
  do {
    ++last_membership_;
  } while (last_membership_ == 0 || memberships_.contains(last_membership_));
  number = last_membership_;
  memberships_[number] = {number, &id, uid, group, mgid, 0};
  id.multicasts.insert(number);
  if (id.qkey == 0) id.qkey = kUdpQkey;

  verbs::AddressVector av;
  av.dgid = mgid;
  av.dlid = mlid;
  av.is_global = 1;
  av.hop_limit = is_ethernet ? 64 : 0;
  av.sgid_index = gid_index_of(*id.port, id.source);
  av.port = static_cast<std::uint8_t>(id.port->number);
  av.traffic_class = id.tos;
  ucma::UdParam param;
  param.qp_num = kMulticastQpn;
  param.qkey = id.qkey;
  param.ah_attr = ah_attr_of(av);
  PendingEvent event;
  event.multicast = number;
  event.out.uid = uid;
  event.out.id = number;
  event.out.event = ucma::Event::MulticastJoin;
  std::memcpy(event.out.param.data(), &param, sizeof param);
  queue(id, std::move(event));
  return Error::None;
}

Error Service::leave(File& file, std::uint32_t number, std::uint32_t& events) {
  const auto at = memberships_.find(number);
  if (at == memberships_.end()) return Error::NoEntry;
  if (at->second.id->file != &file) return Error::Invalid;
  events = at->second.events_reported;
  end_membership(number);
  return Error::None;
}

void Service::end_membership(std::uint32_t number) {
  const auto at = memberships_.find(number);
  const Membership member = at->second;
  Id& id = *member.id;
  std::list<PendingEvent>& events = id.file->events;
  for (auto event = events.begin(); event != events.end() && id.events_pending > 0;) {
    const bool of_it = event->multicast == number;
    if (of_it) --id.events_pending;
    event = of_it ? events.erase(event) : std::next(event);
  }
  id.multicasts.erase(number);
  if (!id.port->is_ethernet()) drop_mlid(member.mgid);
  memberships_.erase(at);
}

std::uint16_t Service::take_mlid(const verbs::Gid& mgid) {
  Group& group = groups_[mgid];
  if (group.members == 0) {
    std::uint16_t mlid = kFirstMlid;
    for (const std::uint16_t used : mlids_) {
      if (used != mlid) break;
      ++mlid;
    }
    if (mlid > kLastMlid) {
      groups_.erase(mgid);
      return 0;
    }
    mlids_.insert(mlid);
    group.mlid = mlid;
  }
  ++group.members;
  return group.mlid;
}

void Service::drop_mlid(const verbs::Gid& mgid) {
  const auto at = groups_.find(mgid);
  if (at == groups_.end() || --at->second.members > 0) return;
  mlids_.erase(at->second.mlid);
  groups_.erase(at);
}

}  // namespace ib::services::rdma_cm
