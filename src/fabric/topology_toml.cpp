// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology_toml.h"

#include "fabric/topology/link_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <string_view>
#include <unordered_set>

namespace ib::fabric {
namespace {

// Bytes of the UTF-8 character that begins here; 0: there is none [RFC 3629, 4].
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  const unsigned next = byte(1);
  const bool is_bad = (lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) ||
                      (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f);
  return is_bad ? 0 : size;
}

// Descriptions have no control characters (check()).
std::string toml_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    if (text[0] == '"' || text[0] == '\\') out += '\\';
    out += size != 0 ? text.substr(0, size) : "?";
    text.remove_prefix(size != 0 ? size : 1);
  }
  return out + '"';
}

// By its description, as far as no other element has that name.
std::string name_of(const TopologyElement& element, std::unordered_set<std::string>& taken) {
  std::string name = element.description;
  if (const std::size_t blank = name.find(' ');
      !element.is_switch() && blank != std::string::npos) {
    name[blank] = '/';
  }
  if (name.empty() || !taken.insert(name).second) {
    name = fmt::format("{:#018x}", element.node_guid);
    taken.insert(name);
  }
  return name;
}

// 63 bits are a number of TOML.
std::string guid_text(std::uint64_t guid) {
  return guid >> 63 == 0 ? fmt::format("{:#018x}", guid) : fmt::format("\"{:#018x}\"", guid);
}

void append_element(std::string& out, const TopologyElement& element, const std::string& name) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "\n[[{}]]\nname = {}\ndescription = {}\nports = {}\nguid = {}\n",
                 element.is_switch() ? "switch" : "hca", toml_string(name),
                 toml_string(element.description), element.ports, guid_text(element.node_guid));
  if (element.system_image_guid != 0 && element.system_image_guid != element.node_guid) {
    fmt::format_to(to, "system_image_guid = {}\n", guid_text(element.system_image_guid));
  }
  bool is_default = true;
  std::vector<std::string> guids;
  for (std::uint32_t i = 0; i < element.port_guids.size(); ++i) {
    guids.push_back(guid_text(element.port_guids[i]));
    TopologyElement without;
    without.kind = element.kind;
    without.node_guid = element.node_guid;
    is_default &= element.port_guids[i] == end_port_guid(without, i);
  }
  if (!is_default) fmt::format_to(to, "port_guids = [{}]\n", fmt::join(guids, ", "));
  if (!element.lids.empty()) fmt::format_to(to, "lids = [{}]\n", fmt::join(element.lids, ", "));
  if (element.lmc != 0) fmt::format_to(to, "lmc = {}\n", element.lmc);
  if (element.vendor != 0) fmt::format_to(to, "vendor = {:#x}\n", element.vendor);
  if (element.device != 0) fmt::format_to(to, "device = {}\n", element.device);
  if (element.enhanced_port0) out += "enhanced_port0 = true\n";
  if (element.is_router) out += "router = true\n";
}

}  // namespace

std::string write_toml_topology(const Topology& topology) {
  std::string out = "# Topology: written by softib\n";
  std::unordered_set<std::string> taken;
  std::vector<std::string> names;
  for (const TopologyElement& element : topology.elements) {
    names.push_back(name_of(element, taken));
    append_element(out, element, names.back());
  }
  for (const TopologyCable& cable : topology.cables) {
    const auto end = [&](TopologyEnd at) {
      return toml_string(fmt::format("{}:{}", names[at.element], at.port));
    };
    fmt::format_to(std::back_inserter(out),
                   "\n[[cable]]\nends = [{}, {}]\nwidth = \"{}\"\nspeed = \"{}\"\n", end(cable.a),
                   end(cable.b), width_name(cable.width), speed_name(cable.speed));
    if (!cable.is_up) out += "state = \"down\"\n";
  }
  return out;
}

}  // namespace ib::fabric
