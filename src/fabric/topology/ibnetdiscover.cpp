// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The blocks of ibnetdiscover: IDs, the line of the element, lines of its ports.
#include "fabric/topology/ibnetdiscover.h"

#include "fabric/topology/link_names.h"
#include "fabric/topology/net_lines_internal.h"
#include "fabric/topology/net_writer_internal.h"

#include <fmt/format.h>

#include <iterator>

namespace ib::fabric {
namespace {

constexpr std::size_t kGuidDigits = 16;

// `S-0002c90200406d40`. Returns false if that is no name of ibnetdiscover's.
bool parse_net_name(std::string_view name, char& kind, std::uint64_t& guid) {
  if (name.size() != 2 + kGuidDigits || name[1] != '-') return false;
  kind = name[0];
  TextLine digits(name.substr(2), "", 0);
  return (kind == 'S' || kind == 'H' || kind == 'R') && !digits.begins_with("0x") &&
         digits.take_hex(guid) && digits.is_over() && guid != 0;
}

class DiscoveryReader {
 public:
  Result<Topology> read(std::string_view text, std::string& reason) {
    std::string_view line;
    for (std::uint32_t number = 1; take_line(text, line); ++number) {
      TextLine at(line, "", number);
      IB_CHECK(read_line(at, reason));
    }
    return builder_.finish(reason);
  }

 private:
  // The lines above that of an element.
  struct Ids {
    TopologyElement element;
    std::uint64_t port_guid = 0;
  };

  Status read_line(TextLine& line, std::string& reason) {
    line.skip_blanks();
    if (line.is_over()) is_in_block_ = false;
    if (line.is_over() || line.begins_with("#")) return Status::Ok;
    if (line.begins_with("[")) return read_port(line, reason);
    is_in_block_ = false;
    if (is_element_line(line)) return read_element(line, reason);
    // With -g: headings of groups.
    for (const std::string_view heading : {"Chassis ", "Non-Chassis Nodes", "Hostname: "}) {
      if (line.begins_with(heading)) return Status::Ok;
    }
    return read_id(line, reason);
  }

  Status read_id(TextLine& line, std::string& reason) {
    const std::size_t column = line.column();
    TopologyElement& element = ids_.element;
    std::uint64_t value = 0;
    const auto number = [&](std::uint64_t most) {
      if (line.take_hex(value) && value <= most) return Status::Ok;
      return line.expected(fmt::format("a hexadecimal number of at most {:#x}", most), reason);
    };
    if (line.take("vendid=")) {
      IB_CHECK(number(0xffffff));
      element.vendor = static_cast<std::uint32_t>(value);
    } else if (line.take("devid=")) {
      IB_CHECK(number(0xffff));
      element.device = static_cast<std::uint32_t>(value);
    } else if (line.take("sysimgguid=")) {
      IB_CHECK(number(~0ull));
      element.system_image_guid = value;
    } else if (line.take("switchguid=") || line.take("caguid=") || line.take("rtguid=")) {
      IB_CHECK(number(~0ull));
      element.node_guid = value;
      if (line.take("(") && (!line.take_hex(ids_.port_guid) || !line.take(")"))) {
        return line.expected("a GUID in hexadecimal digits and )", reason);
      }
    } else {
      return line.expected_at(column,
                              "Switch, Ca, Rt, a port as in [1], vendid=, devid=, sysimgguid=, "
                              "switchguid=, caguid=, rtguid= or a comment that begins with #",
                              reason);
    }
    return Status::Ok;
  }

  Status read_element(TextLine& line, std::string& reason) {
    ElementLine parsed;
    IB_CHECK(parse_element_line(line, parsed, reason));
    TopologyElement& element = parsed.element;
    const char wanted = element.is_switch() ? 'S' : (element.is_router ? 'R' : 'H');
    char kind = 0;
    std::uint64_t guid = 0;
    if (!parse_net_name(parsed.name, kind, guid) || kind != wanted) {
      return line.expected_at(
          parsed.name_column,
          fmt::format("{}- and a GUID of 16 hexadecimal digits in quotation marks", wanted),
          reason);
    }
    const TopologyElement& above = ids_.element;
    if (above.node_guid != 0 && above.node_guid != guid) {
      return line.expected_at(parsed.name_column,
                              fmt::format("the GUID that stands above, {:016x}", above.node_guid),
                              reason);
    }
    element.node_guid = guid;
    element.vendor = above.vendor;
    element.device = above.device;
    element.system_image_guid = above.system_image_guid;
    if (element.is_switch() && ids_.port_guid != 0) element.port_guids = {ids_.port_guid};
    ids_ = {};
    is_in_block_ = true;
    return builder_.add_element(line, parsed, reason);
  }

  Status read_port(TextLine& line, std::string& reason) {
    if (!is_in_block_) {
      return line.expected("a line that begins with Switch, Ca or Rt before those of ports",
                           reason);
    }
    PortLine parsed;
    IB_CHECK(parse_port_line(line, builder_.last().ports, parsed, reason));
    return builder_.add_port(line, parsed, reason);
  }

  NetBuilder builder_;
  Ids ids_;
  bool is_in_block_ = false;
};

void append_port(std::string& out, const Topology& topology, std::uint32_t index,
                 const CablesOf::Plug& plug) {
  const TopologyElement& element = topology.elements[index];
  const TopologyElement& peer = topology.elements[plug.peer.element];
  const TopologyCable& cable = topology.cables[plug.cable];
  auto to = std::back_inserter(out);
  fmt::format_to(to, "[{}]", plug.port);
  if (!element.is_switch()) {
    fmt::format_to(to, "({:x}) ", end_port_guid(element, plug.port - 1));
  }
  fmt::format_to(to, "\t\"{}\"[{}]", net_name(peer), plug.peer.port);
  if (!peer.is_switch()) {
    fmt::format_to(to, "{}({:x}) ", element.is_switch() ? "" : " ",
                   end_port_guid(peer, plug.peer.port - 1));
  }
  out += "\t\t# ";
  if (!element.is_switch()) {
    fmt::format_to(to, "lid {} lmc {} ", lid_of(element, plug.port), element.lmc);
  }
  fmt::format_to(to, "\"{}\" lid {} {}{}\n", peer.description, lid_of(peer, plug.peer.port),
                 width_name(cable.width), speed_name(cable.speed));
}

}  // namespace

bool is_ibnetdiscover(std::string_view text) {
  std::string_view line;
  for (std::uint32_t number = 1; take_line(text, line); ++number) {
    TextLine at(line, "", number);
    at.skip_blanks();
    if (!is_element_line(at)) continue;
    ElementLine parsed;
    std::string reason;
    char kind = 0;
    std::uint64_t guid = 0;
    return parse_element_line(at, parsed, reason) == Status::Ok &&
           parse_net_name(parsed.name, kind, guid);
  }
  return false;
}

Result<Topology> parse_ibnetdiscover(std::string_view text, std::string& reason) {
  return DiscoveryReader().read(text, reason);
}

std::string write_ibnetdiscover(const Topology& topology) {
  std::string out = "#\n# Topology file: written by softib\n#\n";
  const CablesOf cables(topology);
  const auto append = [&](bool is_switch, bool is_router) {
    for (std::uint32_t i = 0; i < topology.elements.size(); ++i) {
      const TopologyElement& element = topology.elements[i];
      if (element.is_switch() != is_switch || element.is_router != is_router) continue;
      out += '\n';
      append_element_ids(out, element);
      append_element_line(out, element);
      out += '\n';
      for (const auto* plug = cables.begin(i); plug != cables.end(i); ++plug) {
        append_port(out, topology, i, *plug);
      }
    }
  };
  append(true, false);
  append(false, false);
  append(false, true);
  return out;
}

}  // namespace ib::fabric
