// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registered services [IBA1 15.2.5.14]. A record is named by service id, GID and P_Key; without a
// P_Key it belongs to no partition, and everybody sees it. It lives until its lease is over, its
// port goes or it is deleted. A record that was registered with a key is changed only with that
// key, which nobody is shown; its port deletes it with that key or with none.
#pragma once

#include "base/time.h"
#include "sa/records/service_record.h"
#include "sa/server/request.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace ib::sa {

struct ServiceLimits {
  std::size_t services = 65536;
  std::size_t services_of_port = 1024;
};

class Services {
 public:
  Services(const Topology& topology, const ServiceLimits& limits)
      : topology_(topology), limits_(limits) {}

  // Set: registers, or changes what is registered. `record` is the request, and the answer if the
  // status is Ok.
  std::uint16_t set(const Requester& requester, std::uint64_t components, ServiceRecord& record,
                    Instant now);
  // Delete: of the one record that the components select of those that the requester may delete.
  std::uint16_t remove(const Requester& requester, std::uint64_t components, ServiceRecord& record);
  // Get and GetTable: services in the partitions of the requester.
  void find(const Requester& requester, std::uint64_t components, const ServiceRecord& wanted,
            RecordList& records) const;
  // The GIDs that offer a service.
  std::vector<verbs::Gid> gids_of(std::uint64_t id) const;

  void drop(const verbs::Gid& port_gid);
  void on_time(Instant now);
  std::optional<Instant> deadline() const;
  std::size_t count() const { return services_.size(); }

 private:
  struct Name {
    std::uint64_t id = 0;
    verbs::Gid gid{};
    std::uint16_t pkey = 0;  // without the membership bit
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the comparison for one of pointers
    auto operator<=>(const Name&) const = default;
  };
  struct Service {
    ServiceRecord record;
    std::optional<Instant> expires{};
  };
  using ServiceMap = std::map<Name, Service>;

  bool may_see(const Requester& requester, const Service& service) const;
  std::vector<ServiceMap::iterator> select(std::uint64_t components, ServiceRecord wanted);
  void erase(ServiceMap::iterator service);
  void set_expiry(ServiceMap::iterator service, Instant now);

  const Topology& topology_;
  ServiceLimits limits_;
  ServiceMap services_;
  std::map<verbs::Gid, std::set<Name>> of_port_;
  std::set<std::pair<Instant, Name>> expiries_;
};

}  // namespace ib::sa
