// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/element_names.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

bool has_guid(const fabric::Element& element, std::string_view text) {
  return fmt::format("{:#x}", element.node_guid) == text ||
         fmt::format("{:#018x}", element.node_guid) == text;
}

// By GUID, or, of a switch, by description; several: none of them.
fabric::Element* find(fabric::Graph& graph, std::string_view name, bool only_switches,
                      std::string& reason) {
  fabric::Element* found = nullptr;
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    fabric::Element& element = graph.element_of(*graph.port(graph.element(i).first_port));
    if (element.is_gone || (only_switches && !element.is_switch())) continue;
    if (has_guid(element, name)) return &element;
    if (!element.is_switch() || element.description != name) continue;
    if (found != nullptr) {
      reason =
          fmt::format("two switches are called \"{}\"; name one by its GUID, {:#018x} or {:#018x}",
                      name, found->node_guid, element.node_guid);
      return nullptr;
    }
    found = &element;
  }
  return found;
}

fabric::Element* find_hca(fabric::Fabric& fabric, std::string_view name, std::string& reason) {
  const std::size_t slash = name.rfind('/');
  const bool has_hca = slash != std::string_view::npos;
  fabric::Node* node = name.empty() ? nullptr : fabric.find_node(name.substr(0, slash));
  if (node == nullptr) return nullptr;
  for (fabric::Hca& hca : node->hcas) {
    const bool is_it = has_hca ? hca.name == name.substr(slash + 1) : hca.present;
    if (is_it) return &fabric.graph().element_of(hca.ports.front());
  }
  reason = has_hca ? fmt::format("{} has no HCA \"{}\"; `softib status` lists them", node->name,
                                 name.substr(slash + 1))
                   : fmt::format("no HCA of {} is plugged in", node->name);
  return nullptr;
}

}  // namespace

fabric::Element* find_switch(fabric::Fabric& fabric, std::string_view name, std::string& reason) {
  fabric::Element* found = find(fabric.graph(), name, true, reason);
  if (found == nullptr && reason.empty()) {
    reason = fmt::format("there is no switch \"{}\"; `softib topology` lists them", name);
  }
  return found;
}

fabric::Element* find_element(fabric::Fabric& fabric, std::string_view name, std::string& reason) {
  fabric::Element* found = find(fabric.graph(), name, false, reason);
  if (found == nullptr && reason.empty()) found = find_hca(fabric, name, reason);
  if (found == nullptr && reason.empty()) {
    reason = fmt::format(
        "there is no switch, node or HCA \"{}\" in this fabric; `softib topology` lists them: "
        "switches by name or GUID, HCAs as NODE or NODE/HCA",
        name);
  }
  return found;
}

fabric::Port* find_outer_port(fabric::Fabric& fabric, const fabric::Element& element,
                              std::uint32_t number, std::string& reason) {
  fabric::Port* port = number != 0 ? fabric.graph().port_of(element, number) : nullptr;
  if (port == nullptr) {
    reason = element.port_count == 1
                 ? fmt::format("{} has port 1 only, not {}", element.description, number)
                 : fmt::format("{} has ports 1 to {}, not {}", element.description,
                               element.port_count, number);
  }
  return port;
}

}  // namespace ib::drivers
