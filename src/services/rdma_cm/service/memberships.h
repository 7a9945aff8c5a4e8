// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memberships: the memberships of ids in multicast groups, by number.
#pragma once

#include "services/rdma_cm/addresses/routes.h"
#include "services/rdma_cm/service/failure_trace.h"
#include "services/rdma_cm/service/ids.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ib::services::rdma_cm {

class Memberships {
 public:
  Memberships(Routes& routes, const FailureTrace& trace) : routes_(routes), trace_(trace) {}

  // The result is an event, MulticastJoin or MulticastError. `flags`: ucma::kJoin*.
  Error join(Id& id, const EndpointAddress& group, std::uint16_t flags, std::uint64_t uid,
             std::uint32_t& number);
  // `events` is the number of its events that the program has taken.
  Error leave(const File& file, std::uint32_t number, std::uint32_t& events);
  // The id ends.
  void leave_all(Id& id);

  std::vector<verbs::Gid> groups_of(const Id& id) const;

 private:
  void on_group(std::uint32_t number, Error error, std::string_view reason,
                const Routes::Group& group);
  void end(std::uint32_t number);

  Routes& routes_;
  const FailureTrace& trace_;
  std::unordered_map<std::uint32_t, Membership> memberships_;
  std::uint32_t last_number_ = 0;
};

}  // namespace ib::services::rdma_cm
