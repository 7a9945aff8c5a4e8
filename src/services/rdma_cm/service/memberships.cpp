// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/memberships.h"

#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/service/queries.h"

#include <cstring>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint32_t kMulticastQpn = 0xffffff;
constexpr std::size_t kMostOfId = 64;

}  // namespace

Error Memberships::join(Id& id, const EndpointAddress& group, std::uint16_t flags,
                        std::uint64_t uid, std::uint32_t& number) {
  if (id.qp_type != verbs::QpType::Ud) return Error::Invalid;
  if (id.state != IdState::AddrBound && id.state != IdState::AddrResolved) return Error::Invalid;
  if (id.port == nullptr) return Error::NoDevice;
  if (id.multicasts.size() >= kMostOfId) return Error::NoMemory;
  const std::uint16_t pkey = id.pkey != 0 ? id.pkey : id.port->pkeys.front();
  const verbs::Gid mgid = id.port->is_ethernet()
                              ? group.ip
                              : multicast_gid(group, id.space, verbs::as_full_member(pkey));
  if (!verbs::is_multicast(mgid)) return Error::Invalid;
  do {
    ++last_number_;
  } while (last_number_ == 0 || memberships_.contains(last_number_));
  number = last_number_;
  Membership& member = memberships_[number];
  member.number = number;
  member.id = &id;
  member.uid = uid;
  member.mgid = mgid;
  id.multicasts.insert(number);
  const std::uint32_t qkey = id.qkey != 0 ? id.qkey : kUdpQkey;
  auto share = routes_.join(
      *id.port, pkey, mgid, qkey, flags == ucma::kJoinSendOnlyFullMember,
      [this, number](Error error, std::string_view reason, const Routes::Group& joined) {
        on_group(number, error, reason, joined);
      });
  const auto at = memberships_.find(number);
  if (at != memberships_.end()) at->second.share = std::move(share);
  return Error::None;
}

// MulticastJoin brings the address of the group; MulticastError also comes when the membership is
// lost.
void Memberships::on_group(std::uint32_t number, Error error, std::string_view reason,
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
  event.membership = &member;
  event.out.uid = member.uid;
  event.out.id = number;
  event.out.event = ucma::Event::MulticastJoin;
  if (error == Error::None) {
    if (id.qkey == 0) id.qkey = group.qkey;
    std::memcpy(event.out.param.data(), &param, sizeof param);
  } else {
    event.out.event = ucma::Event::MulticastError;
    event.out.status = ucma::negative(error);
    trace_.report(id, "cannot join the group " + verbs::address_text(member.mgid) + ": ", reason);
  }
  queue(id, event);
}

Error Memberships::leave(const File& file, std::uint32_t number, std::uint32_t& events) {
  const auto at = memberships_.find(number);
  if (at == memberships_.end()) return Error::NoEntry;
  if (at->second.id->file != &file) return Error::Invalid;
  events = at->second.events_reported;
  end(number);
  return Error::None;
}

void Memberships::end(std::uint32_t number) {
  const auto member = memberships_.extract(number);
  Id& id = *member.mapped().id;
  id.file->events.remove_events_of(member.mapped());
  id.multicasts.erase(number);
}

void Memberships::leave_all(Id& id) {
  while (!id.multicasts.empty()) end(*id.multicasts.begin());
}

std::vector<verbs::Gid> Memberships::groups_of(const Id& id) const {
  std::vector<verbs::Gid> groups;
  for (const std::uint32_t number : id.multicasts) groups.push_back(memberships_.at(number).mgid);
  return groups;
}

}  // namespace ib::services::rdma_cm
