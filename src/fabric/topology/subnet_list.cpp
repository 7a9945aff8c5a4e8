// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Elements gathered out of all the lines that mention them.
#include "fabric/topology/subnet_list.h"

#include "fabric/topology/link_names.h"
#include "fabric/topology/net_lines_internal.h"
#include "fabric/topology/text_line_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::fabric {
namespace {

constexpr std::uint8_t kSlowest = 1;    // SDR, where a line has no speed
constexpr std::uint32_t kIdShift = 16;  // a device ID may stand in the upper half of its number

// One side of a line.
struct Side {
  TopologyElement element;
  std::uint64_t port_guid = 0;
  std::uint16_t lid = 0;
  std::uint32_t port = 0;
  std::size_t column = 0;
};

struct Fields {
  std::uint64_t ports = 0, system = 0, node = 0, port_guid = 0, vendor = 0, device = 0;
  std::uint64_t revision = 0, lid = 0, port = 0;
};

std::uint64_t* find_field(Fields& fields, TextLine& line) {
  const std::array<std::pair<std::string_view, std::uint64_t*>, 9> names{
      {{"Ports:", &fields.ports},
       {"SystemGUID:", &fields.system},
       {"NodeGUID:", &fields.node},
       {"PortGUID:", &fields.port_guid},
       {"VenID:", &fields.vendor},
       {"DevID:", &fields.device},
       {"Rev:", &fields.revision},
       {"LID:", &fields.lid},
       {"PN:", &fields.port}}};
  for (const auto& [name, field] : names) {
    if (line.take(name)) return field;
  }
  return nullptr;
}

bool take_kind(TextLine& line, TopologyElement& element) {
  if (line.take("SW")) {
    element.kind = ElementKind::Switch;
  } else if (line.take("Rt") || line.take("RT")) {
    element.is_router = true;
  } else if (!line.take("CA")) {
    return false;
  }
  (void)line.take("-SM");  // the subnet manager was there
  return line.begins_with(" ");
}

Status take_side(TextLine& line, Side& side, std::string& reason) {
  line.skip_blanks();
  side.column = line.column();
  if (!line.take("{")) return line.expected("{ before an end of a cable", reason);
  line.skip_blanks();
  TopologyElement& element = side.element;
  if (!take_kind(line, element)) return line.expected("CA, SW or RT", reason);
  Fields fields;
  for (line.skip_blanks(); !line.take("}"); line.skip_blanks()) {
    if (line.take("{")) {
      const std::string_view rest = line.rest();
      const std::string_view text = rest.substr(0, rest.find('}'));
      if (text.size() == rest.size() || text.size() > kMaxDescription) {
        return line.expected(
            fmt::format("a description of at most {} letters and }}", kMaxDescription), reason);
      }
      element.description = text;
      (void)line.take(rest.substr(0, text.size() + 1));
      continue;
    }
    std::uint64_t* field = find_field(fields, line);
    if (field == nullptr || !line.take_hex(*field)) {
      return line.expected(field == nullptr ? "Ports:, SystemGUID:, NodeGUID:, PortGUID:, VenID:, "
                                              "DevID:, Rev:, LID:, PN:, {description} or }"
                                            : "a hexadecimal number",
                           reason);
    }
  }
  const std::uint32_t most = element.is_switch() ? kMaxSwitchPorts : kMaxAdapterPorts;
  if (fields.ports == 0 || fields.ports > most || fields.port == 0 || fields.port > fields.ports) {
    return line.refuse(side.column,
                       fmt::format("expected Ports: from 1 to {:x} and PN: from 1 to Ports:, found "
                                   "{:x} and {:x}, in hexadecimal digits",
                                   most, fields.ports, fields.port),
                       reason);
  }
  if (fields.node == 0) return line.expected_at(side.column, "an end with a NodeGUID:", reason);
  element.ports = static_cast<std::uint32_t>(fields.ports);
  element.node_guid = fields.node;
  element.system_image_guid = fields.system;
  element.vendor = static_cast<std::uint32_t>(fields.vendor & 0xffffff);
  const std::uint64_t id = fields.device > 0xffff ? fields.device >> kIdShift : fields.device;
  element.device = static_cast<std::uint32_t>(id & 0xffff);
  side.port_guid = fields.port_guid;
  side.lid = fields.lid <= kLastUnicastLid ? static_cast<std::uint16_t>(fields.lid) : 0;
  side.port = static_cast<std::uint32_t>(fields.port);
  return Status::Ok;
}

Status take_link(TextLine& line, TopologyCable& cable, std::string& reason) {
  cable.speed = kSlowest;
  for (line.skip_blanks(); !line.is_over(); line.skip_blanks()) {
    const std::size_t column = line.column();
    std::string_view word;
    (void)line.take_word(word);
    const std::string_view value = word.substr(word.find('=') + 1);
    if (word.starts_with("PHY=")) {
      cable.width = width_code(value);
    } else if (word.starts_with("LOG=")) {
      cable.is_up = value != "DWN";
    } else if (word.starts_with("SPD=")) {
      cable.speed = value == "FDR10" ? speed_code(value) : rate_code(value);
    } else {
      return line.expected_at(column, "PHY=, LOG= or SPD=", reason);
    }
    if (cable.width == 0 || cable.speed == 0) {
      return line.expected_at(column,
                              "PHY=1x, 2x, 4x, 8x or 12x, SPD=2.5, 5, 10, 14, 25, 50, 100 "
                              "or FDR10",
                              reason);
    }
  }
  return Status::Ok;
}

class ListReader {
 public:
  Result<Topology> read(std::string_view text, std::string& reason) {
    std::string_view line;
    for (std::uint32_t number = 1; take_line(text, line); ++number) {
      TextLine at(line, "", number);
      at.skip_blanks();
      if (at.is_over() || at.begins_with("#")) continue;
      IB_CHECK(read_cable(at, reason));
    }
    for (std::size_t i = 0; i < topology_.elements.size(); ++i) settle(i);
    IB_CHECK(check(topology_, reason));
    return std::move(topology_);
  }

 private:
  struct Seen {
    std::uint32_t port = 0;
    std::uint64_t guid = 0;
    std::uint16_t lid = 0;
    std::uint32_t cable = 0;
    std::uint32_t line = 0;
  };

  Status read_cable(TextLine& line, std::string& reason) {
    Side one;
    Side other;
    TopologyCable cable;
    IB_CHECK(take_side(line, one, reason));
    IB_CHECK(take_side(line, other, reason));
    IB_CHECK(take_link(line, cable, reason));
    IB_CHECK(place(line, one, cable.a, reason));
    IB_CHECK(place(line, other, cable.b, reason));
    const Seen* a = find(cable.a);
    const Seen* b = find(cable.b);
    for (const auto& [seen, end, side] :
         {std::tuple(a, cable.a, &one), std::tuple(b, cable.b, &other)}) {
      if (seen == nullptr || (a != nullptr && b != nullptr && a->cable == b->cable)) continue;
      return line.refuse(side->column,
                         fmt::format("{} has another cable in line {}; a port has one",
                                     end_text(topology_, end), seen->line),
                         reason);
    }
    if (a != nullptr) return Status::Ok;
    const auto index = static_cast<std::uint32_t>(topology_.cables.size());
    seen_[cable.a.element].push_back({cable.a.port, one.port_guid, one.lid, index, line.number()});
    if (cable.a != cable.b) {
      seen_[cable.b.element].push_back(
          {cable.b.port, other.port_guid, other.lid, index, line.number()});
    }
    topology_.cables.push_back(cable);
    return Status::Ok;
  }

  // Finds or adds the element of a side.
  Status place(const TextLine& line, const Side& side, TopologyEnd& end, std::string& reason) {
    const auto [found, is_new] = index_.try_emplace(
        side.element.node_guid, static_cast<std::uint32_t>(topology_.elements.size()));
    end = {found->second, side.port};
    if (!is_new) {
      const TopologyElement& known = topology_.elements[found->second];
      if (known.ports == side.element.ports && known.kind == side.element.kind) return Status::Ok;
      return line.refuse(side.column,
                         fmt::format("{} had {} ports in a line before; its kind and its number of "
                                     "ports are the same everywhere",
                                     element_text(known), known.ports),
                         reason);
    }
    if (topology_.elements.size() == kMaxTopologyLids) {
      return line.refuse(
          side.column, fmt::format("too many elements; a subnet has LIDs for {}", kMaxTopologyLids),
          reason);
    }
    topology_.elements.push_back(side.element);
    seen_.emplace_back();
    return Status::Ok;
  }

  const Seen* find(TopologyEnd end) const {
    for (const Seen& seen : seen_[end.element]) {
      if (seen.port == end.port) return &seen;
    }
    return nullptr;
  }

  // The GUIDs and LIDs of an element, when all its ports have been seen.
  void settle(std::size_t index) {
    TopologyElement& element = topology_.elements[index];
    const std::vector<Seen>& ports = seen_[index];
    const bool has_one_guid =
        ports.size() > 1 && std::all_of(ports.begin(), ports.end(), [&](const Seen& seen) {
          return seen.guid == ports[0].guid;
        });
    if (has_one_guid && !element.is_router && element.ports <= kMaxSwitchPorts) {
      element.kind = ElementKind::Switch;
    }
    for (const Seen& seen : ports) {
      const std::size_t at = element.is_switch() ? 0 : seen.port - 1;
      if (seen.guid != 0) {
        element.port_guids.resize(element.end_ports());
        element.port_guids[at] = seen.guid;
      }
      if (seen.lid != 0) {
        element.lids.resize(element.end_ports());
        element.lids[at] = seen.lid;
      }
    }
    settle_port_guids(element);
  }

  Topology topology_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // of elements by node GUID
  std::vector<std::vector<Seen>> seen_;                     // by element: ports with a cable
};

}  // namespace

bool is_subnet_list(std::string_view text) {
  std::string_view line;
  while (take_line(text, line)) {
    TextLine at(line, "", 0);
    at.skip_blanks();
    if (!at.is_over() && !at.begins_with("#")) return at.begins_with("{");
  }
  return false;
}

Result<Topology> parse_subnet_list(std::string_view text, std::string& reason) {
  return ListReader().read(text, reason);
}

}  // namespace ib::fabric
