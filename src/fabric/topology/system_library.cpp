// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lines of IBNL files.
#include "fabric/topology/system_library.h"

#include "fabric/topology/link_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::fabric {
namespace {

constexpr std::size_t kMostParts = 1024;  // of a system

// The names of a system stand with commas between them.
template <class Visit>
void for_each_name(std::string_view names, Visit visit) {
  while (!names.empty()) {
    std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    while (name.starts_with(' ') || name.starts_with('\t')) name.remove_prefix(1);
    while (name.ends_with(' ') || name.ends_with('\t')) name.remove_suffix(1);
    if (!name.empty()) visit(std::string(name));
  }
}

Status take_name(TextLine& line, std::string_view what, std::string& name, std::string& reason) {
  line.skip_blanks();
  std::string_view word;
  if (!line.take_word(word)) return line.expected(what, reason);
  name = word;
  return Status::Ok;
}

// After NODE: `SW 24 MT47396 U1`.
Status parse_node(TextLine& line, SystemPart& part, std::string& reason) {
  line.skip_blanks();
  if (line.take("SW ")) {
    part.element.kind = ElementKind::Switch;
  } else if (!line.take("CA ")) {
    return line.expected("SW or CA", reason);
  }
  line.skip_blanks();
  const std::uint32_t most = part.element.is_switch() ? kMaxSwitchPorts : kMaxAdapterPorts;
  const std::size_t column = line.column();
  std::uint32_t& ports = part.element.ports;
  if (!line.take_decimal(ports) || ports == 0 || ports > most) {
    return line.expected_at(column, fmt::format("a number of ports from 1 to {}", most), reason);
  }
  std::string device;
  IB_CHECK(take_name(line, "the name of a chip", device, reason));
  return take_name(line, "the name of the part", part.name, reason);
}

// `1 -4x-> U2 8`
Status parse_wire(TextLine& line, SystemPart& part, std::string& reason) {
  SystemWire wire;
  IB_CHECK(take_name(line, "a port", wire.port, reason));
  IB_CHECK(take_arrow(line, wire.rate, reason));
  IB_CHECK(take_name(line, "a connector, or a part and its port", wire.peer_port, reason));
  line.skip_blanks();
  std::string_view word;
  if (line.take_word(word)) {
    wire.peer_part = std::move(wire.peer_port);
    wire.peer_port = word;
  }
  part.wires.push_back(std::move(wire));
  return Status::Ok;
}

// A line of a system after its first one: a part, or a port of the last part.
Status parse_system_line(TextLine& line, SystemDefinition& system, std::string& reason) {
  const bool is_node = line.take("NODE ");
  if (is_node || line.take("SUBSYSTEM ")) {
    if (system.parts.size() == kMostParts) {
      return line.refuse(0, fmt::format("a system has {} parts at most", kMostParts), reason);
    }
    SystemPart& part = system.parts.emplace_back();
    if (is_node) return parse_node(line, part, reason);
    IB_CHECK(take_name(line, "the name of a board", part.type, reason));
    return take_name(line, "the name of the part", part.name, reason);
  }
  // An attribute of a part, as U1=isChaBma, says nothing about cables.
  const bool is_wire = line.rest().find("->") != std::string_view::npos;
  if (!is_wire && line.rest().find('=') != std::string_view::npos) return Status::Ok;
  if (is_wire && !system.parts.empty()) return parse_wire(line, system.parts.back(), reason);
  return line.expected(
      "TOPSYSTEM, SYSTEM, NODE, SUBSYSTEM, a port of these with an arrow, or "
      "NAME=VALUE",
      reason);
}

}  // namespace

Status take_arrow(TextLine& line, WireRate& rate, std::string& reason) {
  line.skip_blanks();
  const std::size_t column = line.column();
  std::string_view arrow;
  bool is_good = line.take_word(arrow) && arrow.starts_with('-') && arrow.ends_with("->");
  if (is_good) arrow.remove_suffix(2);
  while (is_good && !arrow.empty()) {
    arrow.remove_prefix(1);
    const std::string_view part = arrow.substr(0, arrow.find('-'));
    arrow.remove_prefix(part.size());
    const std::string_view number = part.substr(0, part.empty() ? 0 : part.size() - 1);
    if (part.ends_with('x') || part.ends_with('X')) {
      rate.width = width_code(std::string(number) + "x");
      is_good = rate.width != 0;
    } else {
      rate.speed = part.ends_with('G') ? rate_code(number) : std::uint8_t{0};
      is_good = rate.speed != 0;
    }
  }
  if (is_good) return Status::Ok;
  return line.expected_at(column, "an arrow, as in ->, -4x-> or -12x-10G->", reason);
}

Status SystemLibrary::add(std::string_view text, std::string_view file, std::string& reason) {
  Boards& boards = boards_.emplace_back();
  SystemDefinition* system = nullptr;
  std::string_view content;
  for (std::uint32_t number = 1; take_line(text, content); ++number) {
    TextLine line(content, file, number);
    line.skip_blanks();
    if (line.is_over() || line.begins_with("#")) continue;
    const bool is_product = line.take("TOPSYSTEM ");
    if (is_product || line.take("SYSTEM ")) {
      system = &definitions_.emplace_back();
      system->boards = &boards;
      for_each_name(line.rest(), [&](const std::string& name) {
        (is_product ? products_ : boards).insert_or_assign(name, system);
      });
      continue;
    }
    if (system == nullptr) return line.expected("TOPSYSTEM or SYSTEM and names", reason);
    IB_CHECK(parse_system_line(line, *system, reason));
  }
  return Status::Ok;
}

const SystemDefinition* SystemLibrary::find(std::string_view product) const {
  const auto found = products_.find(product);
  return found != products_.end() ? found->second : nullptr;
}

}  // namespace ib::fabric
