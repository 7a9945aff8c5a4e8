// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/server/subscriptions.h"

#include "sa/records/components.h"
#include "verbs/gid.h"

namespace ib::sa {
namespace {

// Returns whether two subscriptions of one queue pair are for the same notices.
bool same_filter(const InformInfo& a, const InformInfo& b) {
  return a.gid == b.gid && a.lid_first == b.lid_first && a.lid_last == b.lid_last &&
         a.is_generic == b.is_generic && a.type == b.type && a.trap == b.trap &&
         a.producer == b.producer;
}

bool is_about_gid(const Notice& notice) {
  return notice.is_generic && notice.trap >= trap::kGidInService &&
         notice.trap <= trap::kGroupDeleted;
}

bool is_from(const InformInfo& info, const Notice& notice) {
  if (!verbs::is_zero(info.gid)) {
    return info.gid == (is_about_gid(notice) ? subject_gid(notice) : notice.issuer_gid);
  }
  return info.lid_first == kAllLids ||
         (notice.issuer_lid >= info.lid_first && notice.issuer_lid <= info.lid_last);
}

bool fits(const InformInfo& info, const Notice& notice) {
  return (info.is_generic != 0) == notice.is_generic &&
         (info.type == kAllTypes || info.type == notice.type) &&
         (info.trap == kAllTraps || info.trap == notice.trap) &&
         (info.producer == kAllProducers || info.producer == notice.producer) &&
         is_from(info, notice);
}

}  // namespace

Subscriptions::SubscriptionMap::iterator Subscriptions::find_same(const Requester& requester,
                                                                  const InformInfo& info,
                                                                  std::uint32_t qpn) {
  const auto of_port = of_port_.find(requester.port.gids[0]);
  if (of_port == of_port_.end()) return subscriptions_.end();
  for (const std::uint64_t id : of_port->second) {
    const auto subscription = subscriptions_.find(id);
    if (subscription->second.qpn == qpn && same_filter(subscription->second.info, info)) {
      return subscription;
    }
  }
  return subscriptions_.end();
}

std::uint16_t Subscriptions::set(const Requester& requester, InformInfo& info) {
  if (info.is_generic > 1 || info.subscribe > 1) return sa_status::kRequestInvalid;
  const bool has_range = verbs::is_zero(info.gid) && info.lid_first != kAllLids;
  // A range that has LID 0 only is one of no port, as requests have it that name neither.
  if (has_range && info.lid_last < info.lid_first) return sa_status::kRequestInvalid;
  // A subscription belongs to the queue pair that it came from; its end may come from another one.
  const bool subscribes = info.subscribe != 0;
  const std::uint32_t qpn = subscribes || info.qpn == 0 ? requester.qpn : info.qpn;
  const auto same = find_same(requester, info, qpn);
  if (!subscribes) {
    if (same == subscriptions_.end()) return sa_status::kRequestInvalid;
    erase(same);
    return sa_status::kOk;
  }
  if (same != subscriptions_.end()) {  // a repetition; the LID may be another one now
    same->second.lid = requester.port.lid;
    same->second.failures = 0;
    return sa_status::kOk;
  }
  const verbs::Gid& gid = requester.port.gids[0];
  const auto found = of_port_.find(gid);
  const std::size_t others = found == of_port_.end() ? 0 : found->second.size();
  if (subscriptions_.size() >= limits_.subscriptions || others >= limits_.subscriptions_of_port) {
    return sa_status::kNoResources;
  }
  const std::uint64_t id = ++last_id_;
  Subscription subscription{gid, requester.port.lid, qpn, static_cast<std::uint16_t>(id), info};
  subscription.info.qpn = qpn;
  subscriptions_.emplace(id, std::move(subscription));
  of_port_[gid].insert(id);
  return sa_status::kOk;
}

void Subscriptions::find(const Requester& requester, std::uint64_t components,
                         const InformInfoRecord& wanted, RecordList& records) const {
  const auto request = encode(wanted);
  for (const auto& [id, subscription] : subscriptions_) {
    if (!requester.is_trusted && !requester.has_gid(subscription.gid)) continue;
    const auto bytes =
        encode(InformInfoRecord{subscription.gid, subscription.number, subscription.info});
    if (matches(attribute::kInformInfoRecord, components, request, bytes) && !records.add(bytes)) {
      return;
    }
  }
}

void Subscriptions::publish(const Notice& notice, std::span<const std::uint16_t> pkeys,
                            const Topology& topology) {
  for (auto& [id, subscription] : subscriptions_) {
    if (!fits(subscription.info, notice)) continue;
    const std::optional<EndPort> port = topology.find_gid(subscription.gid);
    if (!port || (!pkeys.empty() && !common_pkey(port->pkeys, pkeys))) continue;
    if (subscription.waiting.size() >= limits_.waiting_reports) {
      ++lost_reports_;
      continue;
    }
    subscription.waiting.push_back(notice);
    if (!subscription.is_under_way) ready_.insert(id);
  }
}

std::optional<Report> Subscriptions::take_report() {
  if (ready_.empty()) return std::nullopt;
  const std::uint64_t id = *ready_.begin();
  ready_.erase(ready_.begin());
  Subscription& subscription = subscriptions_.find(id)->second;
  subscription.is_under_way = true;
  const Notice notice = subscription.waiting.front();
  subscription.waiting.pop_front();
  return Report{id, subscription.lid, subscription.qpn, notice};
}

void Subscriptions::on_report_done(std::uint64_t id, bool is_answered) {
  const auto found = subscriptions_.find(id);
  if (found == subscriptions_.end() || !found->second.is_under_way) return;
  Subscription& subscription = found->second;
  subscription.is_under_way = false;
  subscription.failures = is_answered ? 0 : subscription.failures + 1;
  if (subscription.failures >= limits_.failures) return erase(found);
  if (!subscription.waiting.empty()) ready_.insert(id);
}

void Subscriptions::erase(SubscriptionMap::iterator subscription) {
  const auto of_port = of_port_.find(subscription->second.gid);
  of_port->second.erase(subscription->first);
  if (of_port->second.empty()) of_port_.erase(of_port);
  ready_.erase(subscription->first);
  subscriptions_.erase(subscription);
}

void Subscriptions::drop(const verbs::Gid& port_gid) {
  const auto found = of_port_.find(port_gid);
  if (found == of_port_.end()) return;
  const std::set<std::uint64_t> ids = found->second;
  for (const std::uint64_t id : ids) erase(subscriptions_.find(id));
}

}  // namespace ib::sa
