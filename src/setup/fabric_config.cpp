// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/fabric_config.h"

#include "fabric/port_states.h"
#include "setup/node_addresses.h"
#include "setup/toml_table_internal.h"
#include "verbs/limits.h"
#include "verbs/link_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ib::softib {
namespace {

void read_child(const toml::table& from, std::string& reason, drivers::PortChild& child) {
  TomlTable table(from, "[[child]]", reason);
  table.text("name", child.name, true);
  table.text("device_id", child.device_id, true);
  child.hardware_ids = {child.device_id};
  table.texts("hardware_ids", child.hardware_ids);
  table.texts("compatible_ids", child.compatible_ids);
  table.text("description", child.description);
  table.number("pkey", child.pkey);
  table.no_others();
  std::string bad_name;
  if (reason.empty() && !drivers::is_child_name(child.name, bad_name)) {
    reason = toml_place(from.get("name")->source()) + bad_name;
  }
}

void read_partition(const toml::table& from, std::string& reason, PartitionConfig& partition) {
  partition.place = toml_place(from.source());
  TomlTable table(from, "[[partition]]", reason);
  table.text("node", partition.node);
  table.text("ca", partition.ca);
  table.number("port", partition.port);
  table.number("pkey", partition.pkey, true);
  table.text("name", partition.name, true);
  table.no_others();
}

void read_hca(const toml::table& from, std::string& reason, HcaConfig& hca) {
  hca.place = toml_place(from.source());
  TomlTable table(from, "[[hca]]", reason);
  table.text("node", hca.node);
  table.text("name", hca.name);
  std::string link_layer;
  table.text("link_layer", link_layer, true);
  table.no_others();
  hca.link_layer = verbs::link_layer_of(link_layer);
  if (reason.empty() && hca.link_layer == verbs::LinkLayer::Unspecified) {
    table.wrong(*from.get("link_layer"), "link_layer", "must be infiniband or ethernet");
  }
}

// Returns nothing if the key is not there.
std::optional<IpoibMode> read_ipoib_mode(TomlTable& table, const toml::table& from) {
  std::string text;
  table.text("ipoib_mode", text);
  if (text.empty() && from.get("ipoib_mode") == nullptr) return std::nullopt;
  const auto mode = ipoib_mode_of(text);
  if (!mode) table.wrong(*from.get("ipoib_mode"), "ipoib_mode", "must be datagram or connected");
  return mode;
}

void read_node(const toml::table& from, std::string& reason, NodeConfig& node) {
  node.place = toml_place(from.source());
  TomlTable table(from, "[[node]]", reason);
  table.text("name", node.name, true);
  std::vector<std::string> texts;
  node.ipoib_mode = read_ipoib_mode(table, from);
  // Many a file that is meant to create nodes begins like this.
  table.texts("addresses", texts, !node.ipoib_mode,
              "is missing; [[node]] gives a node of --nodes its addresses");
  table.no_others();
  if (from.get("addresses") != nullptr) node.addresses.emplace();
  for (const std::string& text : texts) {
    const auto ip = parse_address(text);
    if (ip) {
      node.addresses->push_back(*ip);
    } else {
      table.wrong(*from.get("addresses"), "addresses",
                  fmt::format("has \"{}\", which is no IPv4 or IPv6 address of a machine", text));
    }
  }
}

// "node0/softib0/1". Returns false if the text names no port.
bool parse_end(const std::string& text, LinkConfig::End& end) {
  const std::size_t first = text.find('/');
  const std::size_t second = first != std::string::npos ? text.find('/', first + 1) : first;
  if (second == std::string::npos) return false;
  end.text = text;
  end.node = text.substr(0, first);
  end.hca = text.substr(first + 1, second - first - 1);
  const char* const last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + second + 1, last, end.port);
  return error == std::errc{} && stop == last && !end.node.empty() && !end.hca.empty();
}

void read_link(const toml::table& from, std::string& reason, LinkConfig& link) {
  link.place = toml_place(from.source());
  TomlTable table(from, "[[link]]", reason);
  std::vector<std::string> texts;
  table.texts("ports", texts, true);
  table.no_others();
  if (!reason.empty()) return;
  if (texts.size() != link.ends.size()) {
    return table.wrong(*from.get("ports"), "ports",
                       fmt::format("has {} entries; a cable has two ends", texts.size()));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (parse_end(texts[i], link.ends[i])) continue;
    table.wrong((*from.get_as<toml::array>("ports"))[i], "ports",
                fmt::format("has \"{}\", which names no port: node0/softib0/1", texts[i]));
  }
}

std::string no_such_node(const std::string& name, std::size_t count) {
  return fmt::format("the fabric has no node \"{}\", it has {} node{}", name, count,
                     count == 1 ? "" : "s");
}

}  // namespace

IpoibMode ipoib_mode_of_node(const FabricConfig& config, std::string_view node) {
  IpoibMode mode = config.ipoib_mode;
  for (const NodeConfig& one : config.nodes) {
    if (one.name == node && one.ipoib_mode) mode = *one.ipoib_mode;
  }
  return mode;
}

Status apply_link_layers(const FabricConfig& config, fabric::Shape& shape, std::string& reason) {
  for (const HcaConfig& hca : config.hcas) {
    const std::string what = hca.place + "[[hca]]: ";
    if (!hca.node.empty() &&
        std::find(shape.nodes.begin(), shape.nodes.end(), hca.node) == shape.nodes.end()) {
      reason = what + no_such_node(hca.node, shape.nodes.size());
      return Status::NotFound;
    }
    std::uint32_t number = 0;
    while (number < shape.hcas_per_node && hca.name != fmt::format("softib{}", number)) ++number;
    if (number == shape.hcas_per_node) {
      reason = fmt::format("{}no HCA is called \"{}\"; nodes have softib0 to softib{} (--hcas)",
                           what, hca.name, shape.hcas_per_node - 1);
      return Status::NotFound;
    }
    shape.link_layers.push_back({hca.node, number, hca.link_layer});
  }
  return Status::Ok;
}

Status apply_addresses(const FabricConfig& config, fabric::Fabric& fabric, std::string& reason) {
  if (config.nodes.empty()) return Status::Ok;
  const std::vector<Interface> known = interfaces();
  for (const NodeConfig& wanted : config.nodes) {
    const std::string what = wanted.place + "[[node]]: ";
    fabric::Node* node = wanted.name.empty() ? nullptr : fabric.find_node(wanted.name);
    if (node == nullptr) {
      reason = what + no_such_node(wanted.name, fabric.nodes().size());
      return Status::NotFound;
    }
    if (!wanted.addresses) continue;
    std::vector<fabric::Address> addresses;
    for (const verbs::Gid& ip : *wanted.addresses) {
      addresses.push_back({ip, interface_of(ip, known), 0});
    }
    const Status set = fabric.set_addresses(*node, std::move(addresses));
    if (set == Status::Ok) continue;
    reason = fmt::format("{}{}", what,
                         set == Status::AlreadyExists
                             ? fmt::format("one of the addresses of {} is there twice", wanted.name)
                             : fmt::format("{} has more addresses than a port has GIDs ({})",
                                           wanted.name, verbs::limits::kGidTableLength - 1));
    return set;
  }
  return Status::Ok;
}

namespace {

// Returns the port of a cable's end; nullptr, and the reason, if it is not there.
fabric::Port* find_end(fabric::Fabric& fabric, const LinkConfig::End& end, std::string& reason) {
  fabric::Node* node = fabric.find_node(end.node);
  if (node == nullptr) {
    reason += no_such_node(end.node, fabric.nodes().size());
    return nullptr;
  }
  const auto hca = std::find_if(node->hcas.begin(), node->hcas.end(),
                                [&](const fabric::Hca& one) { return one.name == end.hca; });
  if (hca == node->hcas.end()) {
    reason += fmt::format("node {} has no HCA \"{}\", it has softib0 to softib{} (--hcas)",
                          end.node, end.hca, node->hcas.size() - 1);
    return nullptr;
  }
  if (end.port >= 1 && end.port <= hca->ports.size()) return &hca->ports[end.port - 1];
  reason += fmt::format("there is no port {}: HCAs have {} (--ports)", end.text, hca->ports.size());
  return nullptr;
}

std::string why_no_cable(const fabric::Graph& graph, const LinkConfig& link, const fabric::Port& a,
                         const fabric::Port& b) {
  if (&a == &b) return fmt::format("both ends are {}", link.ends[0].text);
  if (a.link_layer != b.link_layer) {
    return fmt::format("{} is {} and {} is {}: no cable joins two link layers", link.ends[0].text,
                       verbs::link_layer_name(a.link_layer), link.ends[1].text,
                       verbs::link_layer_name(b.link_layer));
  }
  const auto& taken = graph.peer_of(a) != nullptr ? link.ends[0] : link.ends[1];
  return fmt::format("{} has a cable already", taken.text);
}

}  // namespace

Status apply_cables(const FabricConfig& config, fabric::Fabric& fabric, std::string& reason) {
  for (const LinkConfig& link : config.links) {
    std::string why = link.place + "[[link]]: ";
    fabric::Port* a = find_end(fabric, link.ends[0], why);
    fabric::Port* b = a != nullptr ? find_end(fabric, link.ends[1], why) : nullptr;
    const Status joined = b != nullptr ? fabric.graph().connect(*a, *b) : Status::NotFound;
    if (joined == Status::Ok) {
      fabric::PortChanges changes;  // nobody looks at the fabric yet
      train(fabric, *a, changes);
      continue;
    }
    if (b != nullptr) why += why_no_cable(fabric.graph(), link, *a, *b);
    reason = why;
    return joined;
  }
  fabric.graph().place_managers();
  return Status::Ok;
}

Result<FabricConfig> parse_fabric_config(std::string_view text, const std::string& folder,
                                         std::string& reason) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    reason = toml_fault(parsed.error());
    return Status::Malformed;
  }
  reason.clear();
  FabricConfig config;
  TomlTable top(parsed.table(), "top level", reason);
  bool ipoib = true;
  top.flag("ipoib", ipoib);
  if (!ipoib) config.children.clear();
  config.ipoib_mode = read_ipoib_mode(top, parsed.table()).value_or(config.ipoib_mode);
  top.number("packet_life_time", config.packet_life_time, false, fabric::kMaxPacketLifeTime);
  top.text("drivers", config.drivers);
  if (!config.drivers.empty()) {
    config.drivers = (std::filesystem::path(folder) / config.drivers).lexically_normal().string();
  }
  if (const toml::array* list = top.tables("child")) {
    for (const toml::node& item : *list) {
      read_child(*item.as_table(), reason, config.children.emplace_back());
    }
  }
  if (const toml::array* list = top.tables("partition")) {
    for (const toml::node& item : *list) {
      read_partition(*item.as_table(), reason, config.partitions.emplace_back());
    }
  }
  if (const toml::array* list = top.tables("hca")) {
    for (const toml::node& item : *list) {
      read_hca(*item.as_table(), reason, config.hcas.emplace_back());
    }
  }
  if (const toml::array* list = top.tables("node")) {
    for (const toml::node& item : *list) {
      read_node(*item.as_table(), reason, config.nodes.emplace_back());
    }
  }
  if (const toml::array* list = top.tables("link")) {
    for (const toml::node& item : *list) {
      read_link(*item.as_table(), reason, config.links.emplace_back());
    }
  }
  top.no_others();
  if (!reason.empty()) return Status::Malformed;
  return config;
}

Result<FabricConfig> read_fabric_config(const std::string& path, std::string& reason) {
  // A FIFO would block until a writer comes; /dev/zero never ends.
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    reason = "configuration " + path + " is no regular file";
    return Status::InvalidParameter;
  }
  std::ifstream file(path);
  if (!file) {
    reason = "configuration " + path + " cannot be read";
    return Status::NotFound;
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto config =
      parse_fabric_config(text, std::filesystem::path(path).parent_path().string(), reason);
  if (!config) reason = path + ":" + reason;
  return config;
}

}  // namespace ib::softib
