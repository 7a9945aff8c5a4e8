// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/server/paths.h"

#include "sa/records/components.h"
#include "verbs/gid.h"

#include <algorithm>
#include <vector>

namespace ib::sa {
namespace {

namespace component = path_component;

constexpr std::uint32_t kMostPathsOfPair = 127;  // NumbPath has seven bits

// The ports that one end of a path may be.
struct Ends {
  std::uint16_t status = sa_status::kOk;
  bool any = false;
  std::vector<EndPort> ports;    // unless any
  std::vector<verbs::Gid> gids;  // of each: the one that was named
};

bool names(const PathQuery& query, std::uint64_t bit) {
  return (query.components & bit) != 0;
}

Ends ends_of(const Topology& topology, bool by_gid, const verbs::Gid& gid, bool by_lid,
             std::uint16_t lid) {
  Ends ends;
  if (!by_gid && !by_lid) {
    ends.any = true;
    return ends;
  }
  const std::optional<EndPort> port = by_gid ? topology.find_gid(gid) : topology.find_lid(lid);
  if (!port) {
    ends.status = by_gid ? sa_status::kInvalidGid : sa_status::kNoRecords;
    return ends;
  }
  ends.ports.push_back(*port);
  ends.gids.push_back(by_gid ? gid : port->gids[0]);
  return ends;
}

Ends sources_of(const Topology& topology, const PathQuery& query) {
  return ends_of(topology, names(query, component::kSgid), query.wanted.sgid,
                 names(query, component::kSlid), query.wanted.slid);
}

Ends destinations_of(const Topology& topology, const PathQuery& query) {
  if (!query.by_service) {
    return ends_of(topology, names(query, component::kDgid), query.wanted.dgid,
                   names(query, component::kDlid), query.wanted.dlid);
  }
  Ends ends;
  for (const verbs::Gid& gid : query.service_gids) {
    if (const std::optional<EndPort> port = topology.find_gid(gid)) {
      ends.ports.push_back(*port);
      ends.gids.push_back(gid);
    }
  }
  return ends;
}

Selector selector_of(const PathQuery& query, std::uint64_t bit, Selector selector) {
  return names(query, bit) ? selector : Selector::Exactly;
}

// Gives the path the MTU, rate and packet life time that the request selects. Returns false if the
// route cannot do it.
bool select(const PathQuery& query, const Route& route, PathRecord& path) {
  const PathRecord& wanted = query.wanted;
  path.mtu_selector = path.rate_selector = path.life_selector = Selector::Exactly;
  path.mtu = route.mtu;
  path.rate = route.rate;
  path.life = route.life;
  if (names(query, component::kMtu)) {
    path.mtu = select_mtu(selector_of(query, component::kMtuSelector, wanted.mtu_selector),
                          wanted.mtu, route.mtu);
  }
  if (names(query, component::kRate)) {
    path.rate = select_rate(selector_of(query, component::kRateSelector, wanted.rate_selector),
                            wanted.rate, route.rate);
  }
  if (names(query, component::kLife)) {
    const SelectedLife life =
        select_life(selector_of(query, component::kLifeSelector, wanted.life_selector), wanted.life,
                    route.life);
    if (!life.possible) return false;
    path.life = life.life;
  }
  return path.mtu != 0 && path.rate != 0;
}

// The fields that all paths of the request have in common.
PathRecord marked(const PathQuery& query) {
  const PathRecord& wanted = query.wanted;
  PathRecord path;
  if (names(query, component::kServiceId)) path.service_id = wanted.service_id;
  if (names(query, component::kFlowLabel)) path.flow_label = wanted.flow_label;
  if (names(query, component::kHopLimit)) path.hop_limit = wanted.hop_limit;
  if (names(query, component::kTrafficClass)) path.traffic_class = wanted.traffic_class;
  if (names(query, component::kQosClass)) path.qos_class = wanted.qos_class;
  return path;
}

std::optional<std::uint16_t> pkey_of(const PathQuery& query, const EndPort& from,
                                     const EndPort& to) {
  if (!names(query, component::kPkey)) return common_pkey(from.pkeys, to.pkeys);
  if (!share_pkey(from.pkeys, to.pkeys, query.wanted.pkey)) return std::nullopt;
  return query.wanted.pkey;
}

bool must_be_reversible(const PathQuery& query) {
  return names(query, component::kReversible) && query.wanted.reversible;
}

std::uint32_t most_paths(const PathQuery& query) {
  if (!query.is_table) return 1;
  return names(query, component::kNumbPath) ? query.wanted.numb_path : kMostPathsOfPair;
}

bool fits(const PathQuery& query, const PathRecord& path) {
  const auto wanted = encode(query.wanted);
  const auto actual = encode(path);
  return matches(attribute::kPathRecord, query.components, wanted, actual);
}

struct Pair {
  EndPort from;
  verbs::Gid sgid;
  EndPort to;
  verbs::Gid dgid;
};

// The LIDs of an end: those of the port, or the one that the request names.
struct LidRange {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  std::uint16_t at(std::uint32_t i) const { return static_cast<std::uint16_t>(first + i); }
};
LidRange lids_of(const EndPort& port, bool is_named, std::uint16_t named) {
  if (is_named) return {named, 1};
  return {port.lid, 1u << port.lmc};
}

// The paths between two ports, LID by LID.
class PairPaths {
 public:
  PairPaths(const Topology& topology, const PathQuery& query, const Pair& pair, RecordList& paths)
      : topology_(topology), query_(query), pair_(pair), paths_(paths), left_(most_paths(query)) {}

  // Returns false if there is no room for more.
  bool add_all() {
    const std::optional<std::uint16_t> pkey = pkey_of(query_, pair_.from, pair_.to);
    if (!pkey) return true;
    pkey_ = *pkey;
    const LidRange from = lids_of(pair_.from, names(query_, component::kSlid), query_.wanted.slid);
    const LidRange to = lids_of(pair_.to, names(query_, component::kDlid), query_.wanted.dlid);
    for (std::uint32_t i = 0; i < std::min(from.count, to.count); ++i) {
      if (!add(from.at(i), to.at(i), kBest)) return false;
    }
    for (std::uint32_t i = 0; i < from.count && left_ > 0; ++i) {
      for (std::uint32_t j = 0; j < to.count && left_ > 0; ++j) {
        if (i != j && !add(from.at(i), to.at(j), kSharesAnEnd)) return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::uint8_t kBest = 0;
  static constexpr std::uint8_t kSharesAnEnd = 2;

  bool add(std::uint16_t slid, std::uint16_t dlid, std::uint8_t preference) {
    if (left_ == 0) return true;
    const std::optional<Route> route = topology_.route(pair_.from, slid, pair_.to, dlid);
    if (!route || (must_be_reversible(query_) && !route->reversible)) return true;
    PathRecord path = marked(query_);
    if (!select(query_, *route, path)) return true;
    path.sgid = pair_.sgid;
    path.dgid = pair_.dgid;
    path.slid = slid;
    path.dlid = dlid;
    path.pkey = pkey_;
    path.sl = route->sl;
    path.reversible = route->reversible;
    path.preference = preference;
    if (!fits(query_, path)) return true;
    if (!paths_.add(encode(path))) return false;
    --left_;
    return true;
  }

  const Topology& topology_;
  const PathQuery& query_;
  const Pair& pair_;
  RecordList& paths_;
  std::uint32_t left_;
  std::uint16_t pkey_ = 0;
};

// Calls `each` with the ports of an end, until it returns false.
template <class Each>
void for_each_end(const Topology& topology, const Ends& ends, Each each) {
  if (!ends.any) {
    for (std::size_t i = 0; i < ends.ports.size(); ++i) {
      if (!each(ends.ports[i], ends.gids[i])) return;
    }
    return;
  }
  for (std::uint32_t i = 0; i < topology.port_count(); ++i) {
    const std::optional<EndPort> port = topology.port(i);
    if (port && !each(*port, port->gids[0])) return;
  }
}

// Returns whether a port that is named by GID and by LID has both.
bool agree(const Ends& ends, bool by_lid, std::uint16_t lid) {
  if (ends.any || !by_lid || ends.ports.empty()) return true;
  return ends.ports[0].has_lid(lid);
}

// A table of all pairs grows with the square of the fabric.
bool is_too_big(const Topology& topology, const RecordList& paths) {
  std::uint64_t ports = 0;
  for (std::uint32_t i = 0; i < topology.port_count(); ++i) {
    if (topology.port(i)) ++ports;
  }
  return ports * ports > paths.max_records();
}

}  // namespace

bool is_for_group(const PathQuery& query) {
  return names(query, component::kDgid) && verbs::is_multicast(query.wanted.dgid);
}

std::uint16_t find_paths(const Topology& topology, const Requester& requester,
                         const PathQuery& query, RecordList& paths) {
  if (names(query, component::kNumbPath) && query.wanted.numb_path == 0) {
    return sa_status::kRequestInvalid;
  }
  const Ends sources = sources_of(topology, query);
  if (sources.status != sa_status::kOk) return sources.status;
  const Ends destinations = destinations_of(topology, query);
  if (destinations.status != sa_status::kOk) return destinations.status;
  if (sources.any && destinations.any && (!query.is_table || is_too_big(topology, paths))) {
    return sa_status::kInsufficientComponents;
  }
  if (!agree(sources, names(query, component::kSlid), query.wanted.slid) ||
      !agree(destinations, names(query, component::kDlid), query.wanted.dlid)) {
    return sa_status::kOk;
  }
  for_each_end(topology, sources, [&](const EndPort& from, const verbs::Gid& sgid) {
    if (!requester.may_see(from)) return true;
    bool has_room = true;
    for_each_end(topology, destinations, [&](const EndPort& to, const verbs::Gid& dgid) {
      if (requester.may_see(to)) {
        const Pair pair{from, sgid, to, dgid};
        has_room = PairPaths(topology, query, pair, paths).add_all();
      }
      return has_room;
    });
    return has_room;
  });
  return sa_status::kOk;
}

std::uint16_t find_group_path(const Topology& topology, const Requester& requester,
                              const PathQuery& query, const GroupRoute& group, RecordList& paths) {
  Ends sources = sources_of(topology, query);
  if (sources.status != sa_status::kOk) return sources.status;
  const EndPort from = sources.any ? requester.port : sources.ports[0];
  const bool wanted =
      requester.may_see(from) && is_member(from.pkeys, group.pkey) &&
      agree(sources, names(query, component::kSlid), query.wanted.slid) &&
      (!names(query, component::kPkey) || is_same_partition(query.wanted.pkey, group.pkey));
  // Nothing comes back along the way to a group.
  if (!wanted || must_be_reversible(query)) return sa_status::kOk;
  PathRecord path = marked(query);
  if (!select(query, group.route, path)) return sa_status::kOk;
  path.sgid = sources.any ? from.gids[0] : sources.gids[0];
  path.dgid = query.wanted.dgid;
  path.slid = names(query, component::kSlid) ? query.wanted.slid : from.lid;
  path.dlid = group.mlid;
  path.pkey = names(query, component::kPkey) ? query.wanted.pkey : group.pkey;
  path.sl = group.route.sl;
  if (fits(query, path)) (void)paths.add(encode(path));
  return sa_status::kOk;
}

}  // namespace ib::sa
