// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the subnet as softibd tells it (softib/picture/subnet_reading.h) to a line for each port,
// those of a name, and what has come since another reading.
#include "softib/subnet/port_counts.h"

#include "softib/subnet/cable_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace ib::softib {
namespace {

using fabric::ShownTraffic;
using fabric::ShownTrouble;

std::string name_of(const fabric::ShownElement& element) {
  if (element.is_ideal) return "ideal network";
  if (!element.is_switch && !element.node.empty()) {
    const bool is_first = element.hca.empty() || element.hca == "softib0";
    return is_first ? element.node : element.node + "/" + element.hca;
  }
  return element.name.empty() ? fmt::format("{:#018x}", element.guid) : element.name;
}

bool is_named(const PortCount& port, std::string_view name) {
  return name == port.element || (!port.node.empty() && name == port.node) ||
         (!port.hca.empty() && name == port.node + "/" + port.hca) ||
         name == fmt::format("{:#018x}", port.guid) || name == fmt::format("{:#x}", port.guid);
}

std::uint64_t since(std::uint64_t before, std::uint64_t now) {
  return now >= before ? now - before : now;
}

ShownTraffic since(const ShownTraffic& before, const ShownTraffic& now) {
  return {since(before.data, now.data), since(before.packets, now.packets),
          since(before.unicast, now.unicast), since(before.multicast, now.multicast)};
}

std::vector<ShownTrouble> since(const std::vector<ShownTrouble>& before,
                                const std::vector<ShownTrouble>& now) {
  std::vector<ShownTrouble> more;
  for (const ShownTrouble& trouble : now) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const ShownTrouble& one) {
      return one.name == trouble.name;
    });
    const std::uint64_t count = since(known == before.end() ? 0 : known->count, trouble.count);
    if (count != 0) more.push_back({trouble.name, count});
  }
  return more;
}

}  // namespace

std::vector<PortCount> port_counts(const fabric::ShownSubnet& subnet) {
  std::vector<PortCount> all;
  for (const fabric::ShownElement& element : subnet.elements) {
    if (element.is_ideal) continue;
    for (const fabric::ShownPort& port : element.ports) {
      PortCount& count = all.emplace_back();
      count.element = name_of(element);
      count.node = element.node;
      count.hca = element.hca;
      count.guid = element.guid;
      count.number = port.number;
      count.lid = element.is_switch ? element.lid : port.lid;
      count.state = port.state;
      count.is_switch = element.is_switch;
      if (port.peer != fabric::kNoIndex) {
        count.peer = name_of(subnet.elements[port.peer]);
        count.peer_port = subnet.elements[port.peer].is_ideal ? 0 : port.peer_port;
      }
      count.sent = port.sent;
      count.received = port.received;
      count.troubles = port.troubles;
    }
  }
  return all;
}

std::vector<PortCount> ports_named(const std::vector<PortCount>& all, std::string_view name) {
  std::vector<PortCount> found;
  // First as a whole: names of switches may have a colon.
  for (const PortCount& port : all) {
    if (is_named(port, name)) found.push_back(port);
  }
  const auto end = parse_cable_end(name);
  if (!found.empty() || !end) return found;
  for (const PortCount& port : all) {
    if (port.number != end->port || !is_named(port, end->element)) continue;
    found.push_back(port);
    found.back().is_asked_for = true;
    break;  // of a node's first HCA, as everywhere
  }
  return found;
}

std::vector<std::string> element_names(const std::vector<PortCount>& all) {
  std::vector<std::string> names;
  for (const PortCount& port : all) {
    if (names.empty() || names.back() != port.element) names.push_back(port.element);
  }
  return names;
}

std::vector<PortCount> counted_since(const std::vector<PortCount>& before,
                                     std::vector<PortCount> now) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, const PortCount*> known;
  for (const PortCount& port : before) known[{port.guid, port.number}] = &port;
  for (PortCount& port : now) {
    const auto found = known.find({port.guid, port.number});
    if (found == known.end()) continue;
    const PortCount& old = *found->second;
    port.sent = since(old.sent, port.sent);
    port.received = since(old.received, port.received);
    port.troubles = since(old.troubles, port.troubles);
  }
  return now;
}

}  // namespace ib::softib
