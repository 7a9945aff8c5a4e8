// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cables out of what each of their two ends says.
#include "fabric/topology/link_names.h"
#include "fabric/topology/net_lines_internal.h"
#include "verbs/link_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ib::fabric {
namespace {

// If the two ends do not agree, the cable is as good as the worse of them; 0: an end that does not
// say.
std::uint8_t worse_width(std::uint8_t a, std::uint8_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return verbs::link_lanes(a) <= verbs::link_lanes(b) ? a : b;
}
std::uint8_t worse_speed(std::uint8_t a, std::uint8_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

void settle_port_guids(TopologyElement& element) {
  std::vector<std::uint64_t>& guids = element.port_guids;
  if (guids.empty()) return;
  const auto given = std::find_if(guids.begin(), guids.end(), [](auto guid) { return guid != 0; });
  const std::uint64_t first = *given - static_cast<std::uint64_t>(given - guids.begin());
  for (std::size_t i = 0; i < guids.size(); ++i) {
    if (guids[i] == 0) guids[i] = first + i;
  }
  const std::vector<std::uint64_t> own = std::move(guids);
  guids.clear();
  for (std::uint32_t i = 0; i < own.size(); ++i) {
    if (own[i] != end_port_guid(element, i)) {
      guids = own;
      return;
    }
  }
}

Status NetBuilder::add_element(const TextLine& line, const ElementLine& parsed,
                               std::string& reason) {
  const auto index = static_cast<std::uint32_t>(topology_.elements.size());
  const auto [found, is_new] =
      elements_.try_emplace(parsed.name, Named{{index, 0}, line.file(), line.number()});
  if (!is_new) {
    return line.refuse(
        parsed.name_column,
        fmt::format("\"{}\" stands in {} already; each element has one place", shown(parsed.name),
                    line_text(found->second.file, found->second.number)),
        reason);
  }
  if (index == kMaxTopologyLids || slots_.size() + parsed.element.ports > kMaxTopologyPorts) {
    return line.refuse(0,
                       fmt::format("too many elements; a subnet has LIDs for {}, and softib room "
                                   "for {} ports",
                                   kMaxTopologyLids, kMaxTopologyPorts),
                       reason);
  }
  topology_.elements.push_back(parsed.element);
  names_.push_back(parsed.name);
  first_.push_back(slots_.size());
  slots_.resize(slots_.size() + parsed.element.ports, kNoIndex);
  return Status::Ok;
}

Status NetBuilder::add_port(const TextLine& line, const PortLine& parsed, std::string& reason) {
  TopologyElement& element = last();
  const TopologyEnd end{static_cast<std::uint32_t>(topology_.elements.size() - 1), parsed.port};
  if (slot(end) != kNoIndex) {
    const Record& other = records_[slot(end)];
    return line.refuse(0,
                       fmt::format("port {} stands in {} already; a port has one cable",
                                   parsed.port, line_text(other.file, other.number)),
                       reason);
  }
  slot(end) = static_cast<std::uint32_t>(records_.size());
  records_.push_back({end, {}, parsed, line.file(), line.number(), width_, speed_});
  if (element.is_switch()) return Status::Ok;
  const std::uint32_t index = parsed.port - 1;
  if (parsed.guid != 0) {
    element.port_guids.resize(element.ports);
    element.port_guids[index] = parsed.guid;
  }
  if (parsed.lid != 0) {
    element.lids.resize(element.ports);
    element.lids[index] = parsed.lid;
  }
  element.lmc = std::max(element.lmc, parsed.lmc);
  return Status::Ok;
}

Status NetBuilder::add_alias(const TextLine& line, std::string_view alias, std::uint32_t port,
                             std::string& reason) {
  const auto element = static_cast<std::uint32_t>(topology_.elements.size() - 1);
  const auto [found, is_new] =
      aliases_.try_emplace(alias, Named{{element, port}, line.file(), line.number()});
  if (is_new) return Status::Ok;
  return line.refuse(0,
                     fmt::format("the alias \"{}\" stands in {} already; it names one port",
                                 shown(alias), line_text(found->second.file, found->second.number)),
                     reason);
}

Status NetBuilder::complain(const Record& record, const std::string& sentence,
                            std::string& reason) const {
  return TextLine("", record.file, record.number).refuse(record.line.peer_column, sentence, reason);
}

// Where the line of a port leads.
Status NetBuilder::resolve(Record& record, std::string& reason) const {
  if (const auto alias = aliases_.find(record.line.peer); alias != aliases_.end()) {
    record.peer = alias->second.end;
    return Status::Ok;
  }
  const auto found = elements_.find(record.line.peer);
  if (found == elements_.end()) {
    return complain(
        record,
        fmt::format("no element is named \"{}\"; a cable leads to one that the file has",
                    shown(record.line.peer)),
        reason);
  }
  const TopologyElement& element = topology_.elements[found->second.end.element];
  if (record.line.peer_port > element.ports) {
    return complain(record,
                    fmt::format("\"{}\" has no port {}; it has 1 to {}", shown(record.line.peer),
                                record.line.peer_port, element.ports),
                    reason);
  }
  record.peer = {found->second.end.element, std::max(record.line.peer_port, 1u)};
  return Status::Ok;
}

// Makes the cable of a record whose other end comes later, or is an alias without a line.
Status NetBuilder::join(std::uint32_t index, std::string& reason) {
  const Record& record = records_[index];
  if (record.peer == record.end) {
    return complain(record, "the cable leads to the port where it begins; it needs two ports",
                    reason);
  }
  const std::uint32_t other = slot(record.peer);
  const bool is_alias = aliases_.contains(record.line.peer);
  if (other == kNoIndex && !is_alias) {
    return complain(record,
                    fmt::format("\"{}\" has no line for its port {}, which must lead back here",
                                shown(name(record.peer.element)), record.peer.port),
                    reason);
  }
  const Record& back = other == kNoIndex ? record : records_[other];
  if (other != kNoIndex && back.peer != record.end) {
    return complain(
        record,
        fmt::format("{} says that port {} of \"{}\" leads to port {} of \"{}\"; it must "
                    "lead back here",
                    line_text(back.file, back.number), record.peer.port,
                    shown(name(record.peer.element)), back.peer.port,
                    shown(name(back.peer.element))),
        reason);
  }
  if (other == kNoIndex) slot(record.peer) = index;
  if (other < index) return Status::Ok;
  const auto mask = [](std::uint8_t own, std::uint8_t absent) { return own != 0 ? own : absent; };
  const auto common = [](unsigned a, unsigned b) {
    return static_cast<std::uint8_t>(std::bit_floor(a & b));
  };
  TopologyCable cable{record.end, record.peer};
  cable.width =
      common(mask(record.line.width_mask, record.width), mask(back.line.width_mask, back.width));
  cable.speed =
      common(mask(record.line.speed_mask, record.speed), mask(back.line.speed_mask, back.speed));
  if (cable.width == 0 || cable.speed == 0) {
    return complain(record, "the two ends of the cable have no width or speed in common", reason);
  }
  if (const auto width = worse_width(record.line.width, back.line.width); width != 0) {
    cable.width = width;
  }
  if (const auto speed = worse_speed(record.line.speed, back.line.speed); speed != 0) {
    cable.speed = speed;
  }
  topology_.cables.push_back(cable);
  return Status::Ok;
}

Result<Topology> NetBuilder::finish(std::string& reason) {
  for (Record& record : records_) IB_CHECK(resolve(record, reason));
  topology_.cables.reserve(records_.size() / 2 + 1);
  for (std::uint32_t i = 0; i < records_.size(); ++i) IB_CHECK(join(i, reason));
  for (TopologyElement& element : topology_.elements) settle_port_guids(element);
  IB_CHECK(check(topology_, reason));
  return std::move(topology_);
}

}  // namespace ib::fabric
