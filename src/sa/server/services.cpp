// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/server/services.h"

#include "sa/records/components.h"

#include <chrono>
#include <utility>

namespace ib::sa {
namespace {

namespace component = service_component;
using Key = std::array<std::uint8_t, 16>;

bool names(std::uint64_t components, std::uint64_t bits) {
  return (components & bits) == bits;
}
constexpr std::uint16_t kNoPartition = 0;
std::uint16_t without_membership(std::uint16_t pkey) {
  return pkey & 0x7fff;
}

// As others see it.
ServiceRecord without_key(ServiceRecord record) {
  record.key = {};
  return record;
}

}  // namespace

std::uint16_t Services::set(const Requester& requester, std::uint64_t components,
                            ServiceRecord& record, Instant now) {
  if (!names(components, component::kId | component::kGid)) {
    return sa_status::kInsufficientComponents;
  }
  if (!topology_.find_gid(record.gid)) return sa_status::kInvalidGid;
  if (!names(components, component::kPkey)) record.pkey = kNoPartition;
  // A port registers its own services, in partitions of its own.
  const bool is_in_partition =
      !names(components, component::kPkey) || is_member(requester.port.pkeys, record.pkey);
  if (!requester.is_trusted && (!requester.has_gid(record.gid) || !is_in_partition)) {
    return sa_status::kRequestDenied;
  }
  if (!names(components, component::kLease)) record.lease_seconds = kLeaseWithoutEnd;
  if (record.lease_seconds == 0) return sa_status::kRequestInvalid;
  if (!names(components, component::kKey)) record.key = {};
  const Name name{record.id, record.gid, without_membership(record.pkey)};
  auto service = services_.find(name);
  if (service == services_.end()) {
    const auto of_port = of_port_.find(record.gid);
    const std::size_t others = of_port == of_port_.end() ? 0 : of_port->second.size();
    if (services_.size() >= limits_.services || others >= limits_.services_of_port) {
      return sa_status::kNoResources;
    }
    service = services_.emplace(name, Service{}).first;
    of_port_[record.gid].insert(name);
  } else if (service->second.record.key != record.key && service->second.record.key != Key{}) {
    return sa_status::kRequestDenied;
  }
  // Components that the mask does not select are zero.
  constexpr std::uint64_t kContent = component::kNames | component::kName | component::kData8 |
                                     component::kData16 | component::kData32 | component::kData64;
  std::array<std::byte, ServiceRecord::kSize> content{};
  copy_components(attribute::kServiceRecord, components & kContent, encode(record), content);
  auto registered = decode<ServiceRecord>(content);
  registered.lease_seconds = record.lease_seconds;
  registered.key = record.key;
  service->second.record = registered;
  set_expiry(service, now);
  record = requester.is_trusted ? registered : without_key(registered);
  return sa_status::kOk;
}

// Those that the components select, but for the key and the lease.
std::vector<Services::ServiceMap::iterator> Services::select(std::uint64_t components,
                                                             ServiceRecord wanted) {
  wanted.pkey = without_membership(wanted.pkey);
  const auto request = encode(wanted);
  std::vector<ServiceMap::iterator> found;
  const bool has_id = names(components, component::kId);
  auto service = has_id ? services_.lower_bound({wanted.id, {}, 0}) : services_.begin();
  for (; service != services_.end() && !(has_id && service->first.id != wanted.id); ++service) {
    ServiceRecord record = service->second.record;
    record.pkey = without_membership(record.pkey);
    if (matches(attribute::kServiceRecord, components & ~(component::kKey | component::kLease),
                request, encode(record))) {
      found.push_back(service);
    }
  }
  return found;
}

std::uint16_t Services::remove(const Requester& requester, std::uint64_t components,
                               ServiceRecord& record) {
  if ((components & (component::kNames | component::kName)) == 0) {
    return sa_status::kInsufficientComponents;
  }
  std::vector<ServiceMap::iterator> found = select(components, record);
  if (found.empty()) return sa_status::kNoRecords;
  std::erase_if(found, [&](const ServiceMap::iterator& service) {
    const ServiceRecord& registered = service->second.record;
    const bool has_key = !names(components, component::kKey) || registered.key == Key{} ||
                         registered.key == record.key;
    return !requester.is_trusted && (!requester.has_gid(registered.gid) || !has_key);
  });
  if (found.empty()) return sa_status::kRequestDenied;
  if (found.size() > 1) return sa_status::kTooManyRecords;
  const ServiceRecord& registered = found[0]->second.record;
  record = without_key(registered);
  erase(found[0]);
  return sa_status::kOk;
}

bool Services::may_see(const Requester& requester, const Service& service) const {
  return requester.is_trusted || service.record.pkey == kNoPartition ||
         is_member(requester.port.pkeys, service.record.pkey);
}

void Services::find(const Requester& requester, std::uint64_t components,
                    const ServiceRecord& wanted, RecordList& records) const {
  // The key is not compared: a comparison would reveal it.
  if (!requester.is_trusted) components &= ~component::kKey;
  const auto request = encode(wanted);
  auto service = services_.begin();
  if (names(components, component::kId)) service = services_.lower_bound({wanted.id, {}, 0});
  for (; service != services_.end(); ++service) {
    if (names(components, component::kId) && service->first.id != wanted.id) break;
    if (!may_see(requester, service->second)) continue;
    const ServiceRecord& record = service->second.record;
    const auto bytes = encode(requester.is_trusted ? record : without_key(record));
    if (matches(attribute::kServiceRecord, components, request, bytes) && !records.add(bytes)) {
      return;
    }
  }
}

std::vector<verbs::Gid> Services::gids_of(std::uint64_t id) const {
  std::vector<verbs::Gid> gids;
  for (auto service = services_.lower_bound({id, {}, 0});
       service != services_.end() && service->first.id == id; ++service) {
    // Records of one GID in several partitions follow each other.
    if (gids.empty() || gids.back() != service->first.gid) gids.push_back(service->first.gid);
  }
  return gids;
}

void Services::set_expiry(ServiceMap::iterator service, Instant now) {
  auto& [name, entry] = *service;
  if (entry.expires) expiries_.erase({*entry.expires, name});
  entry.expires.reset();
  if (entry.record.lease_seconds == kLeaseWithoutEnd) return;
  entry.expires = now + std::chrono::seconds(entry.record.lease_seconds);
  expiries_.emplace(*entry.expires, name);
}

void Services::erase(ServiceMap::iterator service) {
  if (service->second.expires) expiries_.erase({*service->second.expires, service->first});
  const auto of_port = of_port_.find(service->first.gid);
  of_port->second.erase(service->first);
  if (of_port->second.empty()) of_port_.erase(of_port);
  services_.erase(service);
}

void Services::drop(const verbs::Gid& port_gid) {
  const auto found = of_port_.find(port_gid);
  if (found == of_port_.end()) return;
  const std::set<Name> all = found->second;
  for (const Name& name : all) erase(services_.find(name));
}

void Services::on_time(Instant now) {
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    erase(services_.find(expiries_.begin()->second));
  }
}

std::optional<Instant> Services::deadline() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

}  // namespace ib::sa
