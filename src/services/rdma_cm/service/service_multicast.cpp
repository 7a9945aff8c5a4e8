// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memberships of multicast groups.
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/service/queries.h"
#include "services/rdma_cm/service/service.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint32_t kMulticastQpn = 0xffffff;
constexpr std::size_t kMostOfId = 64;

}  // namespace

Error Service::join(Id& id, const EndpointAddress& group, std::uint16_t flags, std::uint64_t uid,
                    std::uint32_t& number) {
  if (id.qp_type != verbs::QpType::Ud) return Error::Invalid;
  if (id.state != IdState::AddrBound && id.state != IdState::AddrResolved) return Error::Invalid;
  if (id.port == nullptr) return Error::NoDevice;
  if (id.multicasts.size() >= kMostOfId) return Error::NoMemory;
  const verbs::Gid mgid =
      id.port->is_ethernet() ? group.ip : multicast_gid(group, id.space, id.port->pkeys.front());
  if (!verbs::is_multicast(mgid)) return Error::Invalid;
  do {
    ++last_membership_;
  } while (last_membership_ == 0 || memberships_.contains(last_membership_));
  number = last_membership_;
  Membership& member = memberships_[number];
  member.number = number;
  member.id = &id;
  member.uid = uid;
  member.mgid = mgid;
  id.multicasts.insert(number);
  const std::uint32_t qkey = id.qkey != 0 ? id.qkey : kUdpQkey;
  auto share = routes_.join(
      *id.port, mgid, qkey, flags == ucma::kJoinSendOnlyFullMember,
      [this, number](Error error, std::string_view reason, const Routes::Group& joined) {
        on_group(number, error, reason, joined);
      });
  const auto at = memberships_.find(number);
  if (at != memberships_.end()) at->second.share = std::move(share);
  return Error::None;
}

// MulticastJoin brings the address of the group; MulticastError also comes when the membership is
// lost.
void Service::on_group(std::uint32_t number, Error error, std::string_view reason,
                       const Routes::Group& group) {
  const auto at = memberships_.find(number);
  if (at == memberships_.end()) return;
  Membership& member = at->second;
  Id& id = *member.id;
  verbs::AddressVector av;
  av.dgid = member.mgid;
  av.dlid = group.mlid;
  av.is_global = 1;
  av.sl = group.sl;
  av.hop_limit = group.hop_limit;
  av.flow_label = group.flow_label;
  av.traffic_class = id.port->is_ethernet() ? id.tos : group.traffic_class;
  av.sgid_index = gid_index_of(*id.port, id.source);
  av.port = static_cast<std::uint8_t>(id.port->number);
  ucma::UdParam param;
  param.qp_num = kMulticastQpn;
  param.qkey = group.qkey;
  param.ah_attr = ah_attr_of(av);
  PendingEvent event;
  event.multicast = number;
  event.out.uid = member.uid;
  event.out.id = number;
  event.out.event = ucma::Event::MulticastJoin;
  if (error == Error::None) {
    if (id.qkey == 0) id.qkey = group.qkey;
    std::memcpy(event.out.param.data(), &param, sizeof param);
  } else {
    event.out.event = ucma::Event::MulticastError;
    event.out.status = ucma::negative(error);
    trace(id, "cannot join the group " + verbs::address_text(member.mgid) + ": ", reason);
  }
  queue(id, event);
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
  const auto member = memberships_.extract(number);
  Id& id = *member.mapped().id;
  std::list<PendingEvent>& events = id.file->events;
  for (auto event = events.begin(); event != events.end() && id.events_pending > 0;) {
    const bool of_it = event->multicast == number;
    if (of_it) --id.events_pending;
    event = of_it ? events.erase(event) : std::next(event);
  }
  id.multicasts.erase(number);
}

}  // namespace ib::services::rdma_cm
