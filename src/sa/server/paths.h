// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queries for paths [IBA1 15.2.5.16]. The two ends are named by GID, LID or both, the destination
// also by a service that it offers; an end that is not named may be any port. A path may be used
// with less than it can do, so the selectors of MTU, rate and packet life time choose from what the
// route allows.
//
// Each pair of LIDs of two ports is a path [IBA1 15.2.5.16]. Those of the n-th LIDs come first:
// they differ from each other at both ends. The others have a preference of 2. A table of the paths
// between all ports is given as long as the fabric is so small that an answer can hold it.
//
// Fields that a request only marks a path with (flow label, traffic class, hop limit, QoS class,
// service id) are returned as requested.
#pragma once

#include "sa/records/path_record.h"
#include "sa/server/request.h"

#include <cstdint>
#include <span>

namespace ib::sa {

struct PathQuery {
  std::uint64_t components = 0;
  PathRecord wanted;
  bool is_table = false;  // GetTable: several paths for each pair of ports
  // Of the service, if the request names one and no destination.
  std::span<const verbs::Gid> service_gids;
  bool by_service = false;
};

// Adds the paths that the requester may see. Returns a status of sa_status.
std::uint16_t find_paths(const Topology& topology, const Requester& requester,
                         const PathQuery& query, RecordList& paths);

// Returns whether the destination of a request is a multicast group.
bool is_for_group(const PathQuery& query);
// The path from the named source to a group, or from the requester.
struct GroupRoute {
  std::uint16_t mlid = 0;
  std::uint16_t pkey = 0;
  Route route;
};
std::uint16_t find_group_path(const Topology& topology, const Requester& requester,
                              const PathQuery& query, const GroupRoute& group, RecordList& paths);

}  // namespace ib::sa
