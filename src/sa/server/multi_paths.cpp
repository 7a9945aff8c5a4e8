// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/server/multi_paths.h"

#include "sa/records/multi_path_record.h"
#include "sa/server/paths.h"

#include <array>
#include <utility>

namespace ib::sa {
namespace {

namespace component = multi_path_component;

constexpr std::uint32_t kMostPaths = 127;  // NumbPath has seven bits

// The bits of both records that select the same.
constexpr std::array kSameBits{
    std::pair{component::kRawTraffic, path_component::kRawTraffic},
    std::pair{component::kFlowLabel, path_component::kFlowLabel},
    std::pair{component::kHopLimit, path_component::kHopLimit},
    std::pair{component::kTrafficClass, path_component::kTrafficClass},
    std::pair{component::kReversible, path_component::kReversible},
    std::pair{component::kPkey, path_component::kPkey},
    std::pair{component::kQosClass, path_component::kQosClass},
    std::pair{component::kSl, path_component::kSl},
    std::pair{component::kMtuSelector, path_component::kMtuSelector},
    std::pair{component::kMtu, path_component::kMtu},
    std::pair{component::kRateSelector, path_component::kRateSelector},
    std::pair{component::kRate, path_component::kRate},
    std::pair{component::kLifeSelector, path_component::kLifeSelector},
    std::pair{component::kLife, path_component::kLife},
    std::pair{component::kServiceId, path_component::kServiceId},
};

// The query for the paths of one pair, whose ports are to be filled in.
PathQuery query_of_pair(std::uint64_t components, const MultiPathRecord& wanted) {
  PathQuery query;
  query.is_table = true;
  query.components = path_component::kSgid | path_component::kDgid | path_component::kNumbPath;
  for (const auto& [multi, single] : kSameBits) {
    if ((components & multi) == multi) query.components |= single;
  }
  PathRecord& path = query.wanted;
  path.raw_traffic = wanted.raw_traffic;
  path.flow_label = wanted.flow_label;
  path.hop_limit = wanted.hop_limit;
  path.traffic_class = wanted.traffic_class;
  path.reversible = wanted.reversible;
  path.pkey = wanted.pkey;
  path.qos_class = wanted.qos_class;
  path.sl = wanted.sl;
  path.mtu_selector = wanted.mtu_selector;
  path.mtu = wanted.mtu;
  path.rate_selector = wanted.rate_selector;
  path.rate = wanted.rate;
  path.life_selector = wanted.life_selector;
  path.life = wanted.life;
  path.service_id = wanted.service_id;
  return query;
}

std::uint16_t check(std::uint64_t components, const MultiPathRecord& wanted) {
  constexpr std::uint64_t kCounts = component::kSgidCount | component::kDgidCount;
  if ((components & kCounts) != kCounts) return sa_status::kInsufficientComponents;
  const std::size_t gids = std::size_t{wanted.sgid_count} + wanted.dgid_count;
  const bool has_ends = wanted.sgid_count != 0 && wanted.dgid_count != 0;
  const bool has_paths = (components & component::kNumbPath) == 0 || wanted.numb_path != 0;
  return has_ends && has_paths && gids <= MultiPathRecord::kMostGids ? sa_status::kOk
                                                                     : sa_status::kRequestInvalid;
}

}  // namespace

std::uint16_t find_multi_paths(const Topology& topology, const Requester& requester,
                               const Request& request, RecordList& paths) {
  const auto wanted = decode_some<MultiPathRecord>(request.record);
  if (const std::uint16_t status = check(request.components, wanted); status != sa_status::kOk) {
    return status;
  }
  const std::uint32_t sources = wanted.sgid_count;
  const std::uint32_t destinations = wanted.dgid_count;
  for (std::uint32_t i = 0; i < sources + destinations; ++i) {
    if (!topology.find_gid(wanted.gids[i])) return sa_status::kInvalidGid;
  }
  PathQuery query = query_of_pair(request.components, wanted);
  const bool has_most = (request.components & component::kNumbPath) != 0;
  std::uint32_t left = has_most ? wanted.numb_path : kMostPaths;
  std::uint32_t pairs_left = sources * destinations;
  for (std::uint32_t turn = 0; turn < destinations; ++turn) {
    for (std::uint32_t source = 0; source < sources; ++source, --pairs_left) {
      if (left == 0) return sa_status::kOk;
      // Each pair has its share, and what those before it have left over.
      query.wanted.numb_path = static_cast<std::uint8_t>((left + pairs_left - 1) / pairs_left);
      query.wanted.sgid = wanted.gids[source];
      query.wanted.dgid = wanted.gids[sources + (source + turn) % destinations];
      const std::size_t before = paths.count();
      const std::uint16_t status = find_paths(topology, requester, query, paths);
      if (status != sa_status::kOk) return status;
      left -= static_cast<std::uint32_t>(paths.count() - before);
    }
  }
  return sa_status::kOk;
}

}  // namespace ib::sa
