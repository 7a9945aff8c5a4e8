// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Mistakes that stand at one place are told with that place: a name or GUID that is there twice, an
// end of a cable that is nowhere. check() sees to the rest.
#include "setup/toml_topology.h"

#include "fabric/addresses.h"
#include "fabric/topology/link_names.h"
#include "setup/toml_table_internal.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <unordered_map>

namespace ib::softib {
namespace {

using fabric::ElementKind;
using fabric::TopologyCable;
using fabric::TopologyElement;
using fabric::TopologyEnd;

// "node0/softib1" describes itself as "node0 softib1", "node0" as "node0 softib0": so it becomes
// HCA of that node.
std::string default_description(const std::string& name, ElementKind kind) {
  if (kind == ElementKind::Switch) return name;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return name + " softib0";
  return name.substr(0, slash) + " " + name.substr(slash + 1);
}

std::string list_of(auto&& names) {
  std::string text;
  for (const auto& [code, name] : names)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

class Reader {
 public:
  explicit Reader(std::string& reason) : reason_(reason) {}

  Status read(const toml::table& file) {
    TomlTable top(file, "top level", reason_);
    for (const auto& [key, kind] : {std::pair("switch", ElementKind::Switch),
                                    std::pair("hca", ElementKind::ChannelAdapter)}) {
      if (const toml::array* list = top.tables(key)) {
        for (const toml::node& item : *list) read_element(*item.as_table(), kind);
      }
    }
    if (const toml::array* list = top.tables("cable")) {
      for (const toml::node& item : *list) read_cable(*item.as_table());
    }
    top.no_others();
    return reason_.empty() ? Status::Ok : Status::Malformed;
  }
  fabric::Topology take() { return std::move(topology_); }

 private:
  struct Place {
    std::uint32_t element = 0;
    toml::source_region where;
  };

  void read_element(const toml::table& from, ElementKind kind) {
    if (!reason_.empty()) return;
    const bool is_switch = kind == ElementKind::Switch;
    TomlTable table(from, is_switch ? "[[switch]]" : "[[hca]]", reason_);
    TopologyElement element;
    element.kind = kind;
    element.node_guid = next_guid(kind);
    std::string name;
    table.text("name", name, true);
    element.description = default_description(name, kind);
    table.text("description", element.description);
    table.number("ports", element.ports, is_switch);
    table.guid("guid", element.node_guid);
    element.system_image_guid = element.node_guid;
    table.guid("system_image_guid", element.system_image_guid);
    table.guids("port_guids", element.port_guids);
    table.numbers("lids", element.lids, fabric::kLastUnicastLid);
    table.number<std::uint8_t>("lmc", element.lmc, false, 7);
    table.number<std::uint32_t>("vendor", element.vendor, false, 0xffffff);
    table.number<std::uint32_t>("device", element.device, false, 0xffff);
    if (is_switch) {
      table.flag("enhanced_port0", element.enhanced_port0);
    } else {
      table.flag("router", element.is_router);
    }
    table.no_others();
    if (!reason_.empty()) return;
    const auto most = is_switch ? fabric::kMaxSwitchPorts : fabric::kMaxAdapterPorts;
    if (element.ports < 1 || element.ports > most) {
      return table.wrong(*from.get("ports"), "ports",
                         fmt::format("is {}; {} has 1 to {}", element.ports,
                                     is_switch ? "a switch" : "an HCA", most));
    }
    take_names(table, from, name, element);
    if (reason_.empty()) topology_.elements.push_back(std::move(element));
  }

  // Presets have the same ones.
  std::uint64_t next_guid(ElementKind kind) {
    if (kind == ElementKind::Switch) {
      return fabric::position_guid(fabric::kFirstSwitch + switches_++, 0, 0);
    }
    return fabric::position_guid(adapters_++, 0, 0);
  }

  // Its name and GUIDs are its own.
  void take_names(TomlTable& table, const toml::table& from, const std::string& name,
                  const TopologyElement& element) {
    const auto index = static_cast<std::uint32_t>(topology_.elements.size());
    const auto [other, is_new] = by_name_.emplace(name, Place{index, from.source()});
    if (name.empty() || !is_new) {
      return table.wrong(*from.get("name"), "name",
                         name.empty() ? "is empty; cables need one"
                                      : fmt::format("is \"{}\", as in line {}; each needs its own",
                                                    name, other->second.where.begin.line));
    }
    take_guid(table, from, "guid", element.node_guid, node_guids_);
    for (std::uint32_t i = 0; i < element.end_ports() && reason_.empty(); ++i) {
      const char* const key = element.port_guids.empty() ? "guid" : "port_guids";
      take_guid(table, from, key, fabric::end_port_guid(element, i), port_guids_);
    }
  }

  void take_guid(TomlTable& table, const toml::table& from, const char* key, std::uint64_t guid,
                 std::unordered_map<std::uint64_t, toml::source_region>& guids) {
    const auto [other, is_new] = guids.emplace(guid, from.source());
    if (is_new) return;
    const toml::node* given = from.get(key);
    table.wrong(given != nullptr ? given->source() : from.source(), key,
                fmt::format("gives it {:#018x}, which the element of line {} has; each needs its "
                            "own",
                            guid, other->second.begin.line));
  }

  void read_cable(const toml::table& from) {
    if (!reason_.empty()) return;
    TomlTable table(from, "[[cable]]", reason_);
    std::vector<std::string> ends;
    std::string width = "4x";
    std::string speed = "EDR";
    std::string state = "up";
    table.texts("ends", ends, true);
    table.text("width", width);
    table.text("speed", speed);
    table.text("state", state);
    table.no_others();
    TopologyCable cable;
    cable.width = fabric::width_code(width);
    cable.speed = fabric::speed_code(speed);
    cable.is_up = state == "up";
    if (cable.width == 0) {
      table.wrong(*from.get("width"), "width",
                  "is \"" + width + "\"; widths are " + list_of(fabric::kWidthNames));
    }
    if (cable.speed == 0) {
      table.wrong(*from.get("speed"), "speed",
                  "is \"" + speed + "\"; speeds are " + list_of(fabric::kSpeedNames));
    }
    if (!cable.is_up && state != "down") {
      table.wrong(*from.get("state"), "state", "is \"" + state + "\"; it is up or down");
    }
    if (reason_.empty() && ends.size() != 2) {
      table.wrong(*from.get("ends"), "ends",
                  fmt::format("has {} entries; a cable has two ends", ends.size()));
    }
    for (std::size_t i = 0; i < ends.size() && reason_.empty(); ++i) {
      read_end(table, (*from.get_as<toml::array>("ends"))[i], ends[i], i == 0 ? cable.a : cable.b);
    }
    if (reason_.empty()) topology_.cables.push_back(cable);
  }

  // "NAME:PORT"
  void read_end(TomlTable& table, const toml::node& node, const std::string& text,
                TopologyEnd& end) {
    const std::size_t colon = text.rfind(':');
    const char* const last = text.data() + text.size();
    const auto parsed = colon == std::string::npos
                            ? std::from_chars_result{text.data(), std::errc::invalid_argument}
                            : std::from_chars(text.data() + colon + 1, last, end.port);
    if (parsed.ec != std::errc{} || parsed.ptr != last) {
      return table.wrong(node, "ends", fmt::format("has \"{}\"; an end is \"NAME:PORT\"", text));
    }
    const auto found = by_name_.find(text.substr(0, colon));
    if (found == by_name_.end()) {
      return table.wrong(node, "ends",
                         fmt::format("has \"{}\"; no [[switch]] or [[hca]] has the name \"{}\"",
                                     text, text.substr(0, colon)));
    }
    end.element = found->second.element;
    const TopologyElement& element = topology_.elements[end.element];
    if (end.port == 0 || end.port > element.ports) {
      return table.wrong(
          node, "ends",
          fmt::format("has \"{}\"; \"{}\" has ports 1 to {}", text, found->first, element.ports));
    }
    const auto [other, is_free] =
        cables_.emplace(std::uint64_t{end.element} << 32 | end.port, node.source());
    if (is_free) return;
    table.wrong(node, "ends",
                fmt::format("has \"{}\", where the cable of line {} is; a port takes one", text,
                            other->second.begin.line));
  }

  std::string& reason_;
  fabric::Topology topology_;
  std::unordered_map<std::string, Place> by_name_;
  std::unordered_map<std::uint64_t, toml::source_region> node_guids_;
  std::unordered_map<std::uint64_t, toml::source_region> port_guids_;
  std::unordered_map<std::uint64_t, toml::source_region> cables_;  // by element and port
  std::size_t switches_ = 0;
  std::size_t adapters_ = 0;
};

}  // namespace

Result<fabric::Topology> parse_toml_topology(std::string_view text, std::string& reason) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    reason = toml_fault(parsed.error());
    return Status::Malformed;
  }
  reason.clear();
  Reader reader(reason);
  IB_CHECK(reader.read(parsed.table()));
  fabric::Topology topology = reader.take();
  const Status status = check(topology, reason);
  if (status == Status::Ok) return topology;
  reason.insert(0, " ");
  return status;
}

}  // namespace ib::softib
