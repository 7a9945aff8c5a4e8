// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/topology_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::softib {
namespace {

std::string lid_text(const Json& port) {
  return port.contains("lid") ? fmt::format("LID {}", number_of(port, "lid")) : "no LID";
}

std::string speed_text(const Json& port) {
  if (!port.contains("width")) return {};
  return fmt::format(" {} {:g} Gb/s", text_of(port, "width"),
                     port.value("gbit_per_lane", 0.0) *
                         std::stod(text_of(port, "width")));  // "4x": the number before the x
}

bool is_switch(const Json& element) {
  return text_of(element, "kind") == "switch";
}

// The LID that the element has: of a switch that of port 0.
std::string headline(const Json& element) {
  const Json& ports = list_of(element, "ports");
  const std::string lid = ports.empty() ? "" : ", " + lid_text(ports.front());
  const std::size_t count = ports.size() - (is_switch(element) && !ports.empty() ? 1 : 0);
  return fmt::format("{} {}{}, {} port{}, GUID {}\n", text_of(element, "kind"),
                     text_of(element, "description"), is_switch(element) ? lid : "", count,
                     count == 1 ? "" : "s", text_of(element, "guid"));
}

std::string cable_line(const Json& port) {
  const Json& peer = port["peer"];
  return fmt::format("  port {:>3}  {:<6} {}{} -> port {} of {}\n", number_of(port, "port"),
                     text_of(port, "state"), port.contains("lid") ? lid_text(port) : "",
                     speed_text(port), number_of(peer, "port"), text_of(peer, "description"));
}

}  // namespace

std::string topology_tree(const Json& topology) {
  std::string text;
  std::size_t alone = 0;
  std::size_t switches = 0;
  for (const Json& element : list_of(topology, "elements")) {
    if (!is_switch(element)) continue;
    ++switches;
    text += headline(element);
    for (const Json& port : list_of(element, "ports")) {
      if (port.contains("peer")) text += cable_line(port);
    }
  }
  for (const Json& element : list_of(topology, "elements")) {
    if (is_switch(element)) continue;
    const Json& ports = list_of(element, "ports");
    const bool is_cabled = std::ranges::any_of(ports, [](const Json& port) {
      return port.contains("peer");
    });
    const bool is_shown = is_cabled && switches == 0;
    if (!is_cabled) ++alone;
    if (!is_shown) continue;
    text += headline(element);
    for (const Json& port : ports) {
      if (port.contains("peer")) text += cable_line(port);
    }
  }
  if (alone != 0) {
    text += fmt::format("{} adapter{} on the ideal network, which needs no switch and no cable\n",
                        alone, alone == 1 ? "" : "s");
  }
  return text;
}

std::string topology_table(const Json& topology) {
  std::string text = fmt::format("{:<24} {:>4}  {:<24} {:>4}  {:<6} {}\n", "FROM", "PORT", "TO",
                                 "PORT", "STATE", "LINK");
  for (const Json& element : list_of(topology, "elements")) {
    for (const Json& port : list_of(element, "ports")) {
      if (!port.contains("peer")) continue;
      const Json& peer = port["peer"];
      const bool is_second = text_of(peer, "guid") < text_of(element, "guid");
      if (is_second) continue;  // its line is that of the other end
      text += fmt::format("{:<24} {:>4}  {:<24} {:>4}  {:<6}{}\n", text_of(element, "description"),
                          number_of(port, "port"), text_of(peer, "description"),
                          number_of(peer, "port"), text_of(port, "state"), speed_text(port));
    }
  }
  return text;
}

std::string path_page(const Json& path) {
  std::string text = fmt::format("from LID {} to LID {}\n", number_of(path, "from_lid"),
                                 number_of(path, "to_lid"));
  for (const Json& hop : list_of(path, "hops")) {
    text += fmt::format("  {} port {} -> {} port {}\n", text_of(hop, "from"), number_of(hop, "out"),
                        text_of(hop, "to"), number_of(hop, "in"));
  }
  const std::string why = text_of(path, "why");
  const std::string reason = why.empty() ? "" : ": " + why;
  return text + (path.value("arrives", false) ? "it arrives" : "it does not arrive") + reason +
         "\n";
}

}  // namespace ib::softib
