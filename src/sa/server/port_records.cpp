// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a request for records of ports to the attributes that the agents there would tell
// (Topology::attribute), those that match and may be seen; queries.cpp says which are for the
// trusted.
#include "sa/server/port_records.h"

#include "sa/records/node_record.h"
#include "sa/records/table_records.h"

namespace ib::sa {
namespace {

namespace smp = mad::smp_attribute;

// Of PortInfoRecord: bits of the capability masks are to be set, others may be [15.2.5.3].
constexpr std::uint32_t kMatchCapabilityBits = 1u << 31;

template <class T>
std::optional<T> if_named(bool is_named, T value) {
  return is_named ? std::optional(value) : std::nullopt;
}

// A block of a table of a port, or all that there are. Returns what the last `each` did.
template <class Block, class Each>
bool for_each_block(std::optional<Block> only, Each each) {
  if (only) {
    const std::optional<bool> added = each(*only);
    return added.value_or(true);
  }
  for (Block block = 0;; ++block) {
    const std::optional<bool> added = each(block);
    if (!added) return true;  // there is no such block
    if (!*added) return false;
  }
}

// Ports whose tables a request is about. Of a channel adapter the LID names the port: its number in
// the request counts for nothing, as with OpenSM.
template <class Record, class Each>
void for_each_table_port(const RecordSearch<Record>& tables, std::uint64_t lid_bit,
                         std::optional<std::uint8_t> only, Each each) {
  tables.for_each_end(lid_bit, [&](const EndPort& end) {
    return tables.for_each_port_of(end, end.is_switch() ? only : std::nullopt, each);
  });
}

}  // namespace

void find_nodes(const Search& search) {
  const RecordSearch<NodeRecord> nodes(search);
  nodes.for_each_end(node_component::kLid, [&](const EndPort& end) {
    if (!search.requester.may_see(end)) return true;
    const auto port = search.topology.node_port(end, end.number);
    if (!port) return true;
    const auto info = read<mad::NodeInfo>(search.topology, *port, smp::kNodeInfo, 0);
    const auto description = search.topology.attribute(*port, smp::kNodeDescription, 0);
    if (!info || !description) return true;
    return nodes.add({nodes.lid_of(end, node_component::kLid), *info, *description});
  });
}

void find_port_infos(const Search& search) {
  namespace component = port_info_component;
  std::uint64_t components = search.request.components;
  const bool has_bits = (search.request.modifier & kMatchCapabilityBits) != 0;
  if (has_bits) components &= ~(component::kCapabilityMask | component::kCapabilityMask2);
  const RecordSearch<PortInfoRecord> ports(search, components);
  const mad::PortInfo& wanted = ports.wanted().info;
  const bool by_mask = has_bits && ports.names(component::kCapabilityMask);
  const bool by_mask2 = has_bits && ports.names(component::kCapabilityMask2);
  const auto only = if_named(ports.names(component::kPort), ports.wanted().port);
  ports.for_each_port(component::kLid, only, [&](const NodePort& port) {
    auto info = read<mad::PortInfo>(search.topology, port, smp::kPortInfo, port.number);
    if (!info) return true;
    if (by_mask && (wanted.capability_mask & ~info->capability_mask) != 0) return true;
    if (by_mask2 && (wanted.capability_mask2 & ~info->capability_mask2) != 0) return true;
    if (!search.requester.is_trusted) info->m_key = 0;
    return ports.add({ports.lid_of(port.end, component::kLid), port.number, 0, *info});
  });
}

// Of a switch only port 0 has GUIDs.
void find_guid_infos(const Search& search) {
  namespace component = guid_info_component;
  const RecordSearch<GuidInfoRecord> tables(search);
  const auto only = if_named(tables.names(component::kBlock), tables.wanted().block);
  tables.for_each_end(component::kLid, [&](const EndPort& end) {
    const auto port = search.topology.node_port(end, end.number);
    if (!port || !search.requester.may_see(end)) return true;
    return for_each_block(only, [&](std::uint8_t block) -> std::optional<bool> {
      const auto guids = search.topology.attribute(*port, smp::kGuidInfo, block);
      if (!guids) return std::nullopt;
      return tables.add({tables.lid_of(end, component::kLid), block, *guids});
    });
  });
}

void find_pkey_tables(const Search& search) {
  namespace component = pkey_component;
  const RecordSearch<PkeyTableRecord> tables(search);
  const auto only_block = if_named(tables.names(component::kBlock), tables.wanted().block);
  const auto only_port = if_named(tables.names(component::kPort), tables.wanted().port);
  for_each_table_port(tables, component::kLid, only_port, [&](const NodePort& port) {
    const bool is_switch = port.end.is_switch();
    return for_each_block(only_block, [&](std::uint16_t block) -> std::optional<bool> {
      const std::uint32_t place = is_switch ? std::uint32_t{port.number} << 16 : 0;
      const auto pkeys = search.topology.attribute(port, smp::kPkeyTable, place | block);
      if (!pkeys) return std::nullopt;
      const std::uint64_t ignored = is_switch ? 0 : component::kPort;
      return tables.add({tables.lid_of(port.end, component::kLid), block, port.number, *pkeys},
                        search.request.components & ~ignored);
    });
  });
}

void find_sl_to_vl_tables(const Search& search) {
  namespace component = sl_to_vl_component;
  const RecordSearch<SlToVlRecord> tables(search);
  const SlToVlRecord& wanted = tables.wanted();
  const auto add = [&](const NodePort& port, std::uint8_t in, std::uint64_t components) {
    const std::uint32_t place = port.end.is_switch() ? std::uint32_t{in} << 8 | port.number : 0;
    const auto lanes = search.topology.attribute(port, smp::kSlToVlTable, place);
    if (!lanes) return true;
    const std::uint8_t out = port.end.is_switch() ? port.number : std::uint8_t{0};
    SlToVlRecord record{tables.lid_of(port.end, component::kLid), in, out, {}};
    std::copy_n(lanes->begin(), record.lanes.size(), record.lanes.begin());
    return tables.add(record, components);
  };
  tables.for_each_end(component::kLid, [&](const EndPort& end) {
    if (!end.is_switch()) {
      // It has one table, of the packets that it sends: there are no ports to choose from.
      constexpr std::uint64_t kPorts = component::kIn | component::kOut;
      return tables.for_each_port_of(end, std::nullopt, [&](const NodePort& port) {
        return add(port, 0, search.request.components & ~kPorts);
      });
    }
    const auto only_out = if_named(tables.names(component::kOut), wanted.out);
    return tables.for_each_port_of(end, only_out, [&](const NodePort& port) {
      const bool by_in = tables.names(component::kIn);
      const unsigned last = by_in ? wanted.in : end.others;
      for (unsigned in = by_in ? wanted.in : 0u; in <= last; ++in) {
        if (!add(port, static_cast<std::uint8_t>(in), search.request.components)) return false;
      }
      return true;
    });
  });
}

void find_vl_arbitrations(const Search& search) {
  namespace component = arbitration_component;
  constexpr std::uint8_t kParts = 4;
  const RecordSearch<VlArbitrationRecord> tables(search);
  const auto only = if_named(tables.names(component::kPort), tables.wanted().port);
  for_each_table_port(tables, component::kLid, only, [&](const NodePort& port) {
    const bool is_switch = port.end.is_switch();
    const std::uint64_t ignored = is_switch ? 0 : component::kPort;
    for (std::uint8_t part = 1; part <= kParts; ++part) {
      const std::uint32_t place = std::uint32_t{part} << 16 | (is_switch ? port.number : 0u);
      const auto lanes = search.topology.attribute(port, smp::kVlArbitration, place);
      if (!lanes) continue;
      if (!tables.add({tables.lid_of(port.end, component::kLid), port.number, part, *lanes},
                      search.request.components & ~ignored)) {
        return false;
      }
    }
    return true;
  });
}

}  // namespace ib::sa
