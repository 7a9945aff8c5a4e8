// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The same for links, switches with their tables, and managers: queries.cpp gives a request to one
// of these functions, which adds the records that match.
#include "sa/server/subnet_records.h"

#include "sa/records/table_records.h"

#include <algorithm>

namespace ib::sa {
namespace {

namespace smp = mad::smp_attribute;

// Calls `each` with port 0 and SwitchInfo of the switches that the requester sees.
template <class Record, class Each>
void for_each_switch(const Search& search, const RecordSearch<Record>& found, std::uint64_t lid_bit,
                     Each each) {
  found.for_each_end(lid_bit, [&](const EndPort& end) {
    if (!end.is_switch() || !search.requester.may_see(end)) return true;
    const auto port = search.topology.node_port(end, 0);
    if (!port) return true;
    const auto info = read<mad::SwitchInfo>(search.topology, *port, smp::kSwitchInfo, 0);
    return !info || each(*port, *info);
  });
}

bool share_partition(const NodePort& a, const NodePort& b) {
  return a.pkeys.empty() || b.pkeys.empty() || common_pkey(a.pkeys, b.pkeys).has_value();
}

std::optional<EndPort> end_at(const Topology& topology, bool is_named, std::uint16_t lid) {
  return is_named ? topology.find_lid(lid) : std::nullopt;
}

std::uint32_t multicast_place(std::uint32_t position, std::uint32_t block) {
  return position << 28 | block;
}

// Sixteen ports each, port 0 among them.
std::uint8_t positions_of(const NodePort& port) {
  return static_cast<std::uint8_t>(port.end.others / mad::kPortsPerPosition + 1);
}

// How many blocks of a multicast table there are up to the last one with a port.
std::uint16_t multicast_blocks(const Topology& topology, const NodePort& port,
                               const mad::SwitchInfo& info) {
  const std::uint32_t positions = positions_of(port);
  for (std::uint32_t block = info.multicast_cap / mad::kGroupsPerBlock; block-- > 0;) {
    for (std::uint32_t position = 0; position < positions; ++position) {
      const auto masks =
          topology.attribute(port, smp::kMulticastForwarding, multicast_place(position, block));
      const bool is_used = masks && std::any_of(masks->begin(), masks->end(),
                                                [](std::uint8_t byte) { return byte != 0; });
      if (is_used) return static_cast<std::uint16_t>(block + 1);
    }
  }
  return 0;
}

}  // namespace

void find_links(const Search& search) {
  namespace component = link_component;
  // LIDs are compared here: any of a port's names it.
  const RecordSearch<LinkRecord> links(
      search, search.request.components & ~(component::kFromLid | component::kToLid));
  const LinkRecord& wanted = links.wanted();
  const bool by_from = links.names(component::kFromLid);
  const bool by_to = links.names(component::kToLid);
  const std::optional<EndPort> from_end = end_at(search.topology, by_from, wanted.from_lid);
  const std::optional<EndPort> to_end = end_at(search.topology, by_to, wanted.to_lid);
  if ((by_from && !from_end) || (by_to && !to_end)) return;
  const auto add = [&](const NodePort& from, const NodePort& to) {
    const bool is_wanted = (!from_end || from_end->index == from.end.index) &&
                           (!to_end || to_end->index == to.end.index);
    if (!is_wanted || !search.requester.may_see(from) || !search.requester.may_see(to) ||
        !share_partition(from, to)) {
      return true;
    }
    return links.add({by_from ? wanted.from_lid : from.end.lid, from.number, to.number,
                      by_to ? wanted.to_lid : to.end.lid});
  };
  // From the end that is named, so that not all links are looked at.
  const auto look_at = [&](const EndPort& end, bool is_from) {
    return links.for_each_port_of(end, std::nullopt, [&](const NodePort& port) {
      const std::optional<NodePort> peer = search.topology.peer(port);
      if (!peer) return true;
      return is_from ? add(port, *peer) : add(*peer, port);
    });
  };
  if (from_end) {
    (void)look_at(*from_end, true);
  } else if (to_end) {
    (void)look_at(*to_end, false);
  } else {
    links.for_all_ends([&](const EndPort& end) { return look_at(end, true); });
  }
}

void find_switch_infos(const Search& search) {
  const RecordSearch<SwitchInfoRecord> switches(search);
  for_each_switch(
      search, switches, switch_info_component::kLid,
      [&](const NodePort& port, const mad::SwitchInfo& info) {
        return switches.add({switches.lid_of(port.end, switch_info_component::kLid), info});
      });
}

void find_linear_tables(const Search& search) {
  namespace component = linear_component;
  const RecordSearch<LinearForwardingRecord> tables(search);
  for_each_switch(
      search, tables, component::kLid, [&](const NodePort& port, const mad::SwitchInfo& info) {
        const unsigned last = info.linear_top / mad::kLinearPerBlock;
        const bool is_one = tables.names(component::kBlock);
        if (is_one && tables.wanted().block > last) return true;
        unsigned block = is_one ? tables.wanted().block : 0u;
        for (; block <= (is_one ? tables.wanted().block : last); ++block) {
          const auto ports = search.topology.attribute(port, smp::kLinearForwarding, block);
          if (ports && !tables.add({tables.lid_of(port.end, component::kLid),
                                    static_cast<std::uint16_t>(block), *ports})) {
            return false;
          }
        }
        return true;
      });
}

void find_multicast_tables(const Search& search) {
  namespace component = multicast_component;
  const RecordSearch<MulticastForwardingRecord> tables(search);
  const auto add_all = [&](const NodePort& port, const mad::SwitchInfo& info) {
    const std::uint16_t blocks = multicast_blocks(search.topology, port, info);
    const std::uint8_t positions = positions_of(port);
    const std::uint16_t lid = tables.lid_of(port.end, component::kLid);
    for (std::uint16_t block = 0; block < blocks; ++block) {
      for (std::uint8_t position = 0; position < positions; ++position) {
        const auto masks = search.topology.attribute(port, smp::kMulticastForwarding,
                                                     multicast_place(position, block));
        if (masks && !tables.add({lid, position, block, *masks})) return false;
      }
    }
    return true;
  };
  for_each_switch(search, tables, component::kLid, add_all);
}

void find_managers(const Search& search) {
  const RecordSearch<SmInfoRecord> managers(search);
  for (SmInfoRecord record : search.topology.managers()) {
    const std::optional<EndPort> end = search.topology.find_lid(record.lid);
    if (!end || !search.requester.may_see(*end)) continue;
    if (managers.names(sm_info_component::kLid) && end->has_lid(managers.wanted().lid)) {
      record.lid = managers.wanted().lid;
    }
    record.sm_key = 0;  // [IBA1 14.2.5.13] tells it to managers only
    if (!managers.add(record)) return;
  }
}

}  // namespace ib::sa
