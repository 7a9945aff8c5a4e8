// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the JSON of softibd to the elements, cables and programs that a picture is made of
// (fabric/picture). Nothing in it is trusted but its shape.
#include "softib/picture/subnet_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ib::softib {
namespace {

using fabric::kNoIndex;
using fabric::LinkState;
using fabric::ShownElement;
using fabric::ShownPort;
using fabric::ShownSubnet;
using Places = std::unordered_map<std::string, std::uint32_t>;  // of elements, by GUID as a text

LinkState link_state(const std::string& name) {
  if (name == "active" || name == "active-defer") return LinkState::Active;
  if (name == "armed") return LinkState::Armed;
  if (name == "init") return LinkState::Init;
  return LinkState::Down;
}

// Those that say again, by reason, what another one counts.
bool is_part(const std::string& name) {
  return name == "local_physical_errors" || name == "buffer_overruns" ||
         name == "inactive_discards";
}

fabric::ShownTraffic read_traffic(const Json& counters, const std::string& direction) {
  const auto value = [&](const char* what) {
    return number_of(counters, (direction + what).c_str());
  };
  return {value("_data"), value("_packets"), value("_unicast"), value("_multicast")};
}

// A link that went down, and what was to be sent meanwhile, are no errors: the state of the link
// says how it is now.
void read_counters(ShownPort& port, const Json& counters) {
  port.sent = read_traffic(counters, "sent");
  port.received = read_traffic(counters, "received");
  std::uint64_t gone =
      number_of(counters, "link_downed") + number_of(counters, "inactive_discards");
  for (const auto& [name, value] : counters.items()) {
    const bool is_trouble = !name.starts_with("sent_") && !name.starts_with("received_") &&
                            name != "transmit_wait" && !is_part(name);
    if (!is_trouble || !value.is_number_unsigned()) continue;
    port.troubles.push_back({name, value.get<std::uint64_t>()});
    port.errors += port.troubles.back().count;
  }
  port.errors -= std::min(gone, port.errors);
  port.has_errors = port.errors != 0;
}

ShownPort read_port(const Json& json) {
  ShownPort port;
  port.number = static_cast<std::uint32_t>(number_of(json, "port", 1));
  port.state = link_state(text_of(json, "state"));
  port.lid = static_cast<std::uint32_t>(number_of(json, "lid"));
  if (json.contains("width")) port.rate = text_of(json, "width") + text_of(json, "speed", "");
  if (json.contains("counters")) read_counters(port, json["counters"]);
  return port;
}

ShownElement read_element(const Json& json) {
  ShownElement element;
  element.is_switch = text_of(json, "kind") == "switch";
  element.is_there = json.value(element.is_switch ? "power" : "present", true);
  element.guid = std::strtoull(text_of(json, "guid", "0").c_str(), nullptr, 0);
  element.name = text_of(json, "description", "");
  element.node = text_of(json, "node", "");
  element.hca = text_of(json, "hca", "");
  for (const Json& port : list_of(json, "ports")) {
    const bool is_inner = element.is_switch && number_of(port, "port", 1) == 0;
    if (!is_inner) element.ports.push_back(read_port(port));
  }
  return element;
}

// The LID of a switch is that of its port 0, which has no cable.
void read_switch_lid(ShownElement& element, const Json& json) {
  for (const Json& port : list_of(json, "ports")) {
    if (number_of(port, "port", 1) == 0) {
      element.lid = static_cast<std::uint32_t>(number_of(port, "lid"));
    }
  }
}

void read_cables(ShownSubnet& subnet, const std::vector<const Json*>& from, const Places& places) {
  for (std::size_t i = 0; i < subnet.elements.size(); ++i) {
    for (const Json& json : list_of(*from[i], "ports")) {
      const auto number = static_cast<std::uint32_t>(number_of(json, "port", 1));
      if (!json.contains("peer")) continue;
      const auto place = places.find(text_of(json["peer"], "guid"));
      for (ShownPort& port : subnet.elements[i].ports) {
        if (port.number != number || place == places.end()) continue;
        port.peer = place->second;
        port.peer_port = static_cast<std::uint32_t>(number_of(json["peer"], "port", 1));
      }
    }
  }
  // A cable that the other end does not have as well is none.
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    for (ShownPort& port : subnet.elements[i].ports) {
      if (port.peer == kNoIndex) continue;
      const ShownPort* other = subnet.elements[port.peer].find_port(port.peer_port);
      if (other == nullptr || other->peer != i || other->peer_port != port.number) {
        port.peer = kNoIndex;
      }
    }
  }
}

// Ports of adapters without a cable that are up all the same are on it.
void add_ideal_network(ShownSubnet& subnet) {
  ShownElement ideal;
  ideal.is_switch = ideal.is_ideal = true;
  const auto place = static_cast<std::uint32_t>(subnet.elements.size());
  for (std::uint32_t i = 0; i < place; ++i) {
    for (ShownPort& port : subnet.elements[i].ports) {
      if (subnet.elements[i].is_switch || port.peer != kNoIndex) continue;
      if (port.state == LinkState::Down) continue;
      ShownPort end;
      end.number = static_cast<std::uint32_t>(ideal.ports.size() + 1);
      end.state = port.state;
      end.peer = i;
      end.peer_port = port.number;
      port.peer = place;
      port.peer_port = end.number;
      ideal.ports.push_back(std::move(end));
    }
  }
  if (!ideal.ports.empty()) subnet.elements.push_back(std::move(ideal));
}

void read_programs(ShownSubnet& subnet, const Json& state) {
  std::map<std::string, std::vector<fabric::ShownProgram>> programs;  // by node
  const auto add = [&programs](const Json& program) {
    programs[text_of(program, "node")].push_back(
        {text_of(program, "program"), static_cast<std::int64_t>(number_of(program, "pid"))});
  };
  for (const Json& client : list_of(state, "clients")) add(client);
  for (const Json& program : list_of(state, "programs")) {
    if (program.is_object() && !program.value("has_hca", true)) add(program);
  }
  for (ShownElement& element : subnet.elements) {
    const auto found = programs.find(element.node);
    if (!element.is_switch && found != programs.end()) element.programs = found->second;
  }
}

}  // namespace

ShownSubnet read_subnet(const Json& topology, const Json& state) {
  ShownSubnet subnet;
  Places places;
  std::vector<const Json*> from;
  for (const Json& json : list_of(topology, "elements")) {
    if (!json.is_object()) continue;
    ShownElement element = read_element(json);
    if (element.is_switch) read_switch_lid(element, json);
    const bool has_cable = std::any_of(list_of(json, "ports").begin(), list_of(json, "ports").end(),
                                       [](const Json& port) { return port.contains("peer"); });
    if (element.ports.empty() || (!element.is_there && !has_cable)) continue;
    places.emplace(text_of(json, "guid"), static_cast<std::uint32_t>(subnet.elements.size()));
    subnet.elements.push_back(std::move(element));
    from.push_back(&json);
  }
  read_cables(subnet, from, places);
  add_ideal_network(subnet);
  read_programs(subnet, state);
  return subnet;
}

void read_route(ShownSubnet& subnet, const Json& path, const std::string& from,
                const std::string& to) {
  std::unordered_map<std::uint64_t, std::uint32_t> places;
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    places.emplace(subnet.elements[i].guid, i);
  }
  const auto place = [&places](const Json& object, const char* key) {
    const auto guid = std::strtoull(text_of(object, key, "0").c_str(), nullptr, 0);
    const auto found = places.find(guid);
    return found == places.end() ? kNoIndex : found->second;
  };
  for (const char* key : {"from_guid", "to_guid"}) {
    if (const std::uint32_t end = place(path, key); end != kNoIndex) {
      subnet.route_ends.push_back(end);
    }
  }
  for (const Json& hop : list_of(path, "hops")) {
    const std::uint32_t element = place(hop, "from_guid");
    const auto port = static_cast<std::uint32_t>(number_of(hop, "out"));
    if (element == kNoIndex || subnet.elements[element].find_port(port) == nullptr) continue;
    subnet.route.push_back({element, port});
  }
  const std::string why = text_of(path, "why");
  subnet.route_text =
      fmt::format("{} to {}{}", from, to, path.value("arrives", false) ? "" : " does not arrive");
  if (!why.empty() && why != "-") subnet.route_text += ": " + why;
}

std::uint64_t structure_of(const ShownSubnet& subnet) {
  std::string text;
  for (const ShownElement& element : subnet.elements) {
    text +=
        fmt::format("{:x}{}{};", element.guid, element.is_switch ? 's' : 'a', element.ports.size());
    for (const ShownPort& port : element.ports) {
      if (port.peer != kNoIndex)
        text += fmt::format("{},{},{} ", port.number, port.peer, port.peer_port);
    }
  }
  for (const auto& hop : subnet.route) text += fmt::format("r{},{} ", hop.element, hop.port);
  return std::hash<std::string>{}(text);
}

}  // namespace ib::softib
