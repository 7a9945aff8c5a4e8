// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Products become elements and wires; then their connectors are joined.
#include "fabric/topology/system_topology.h"

#include "fabric/addresses.h"
#include "fabric/topology/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace ib::fabric {
namespace {

constexpr std::size_t kDeepest = 8;          // boards on boards
constexpr std::size_t kMostBoards = 100000;  // of all products
constexpr std::string_view kLeftOut = "R";   // the kind of a board that is not there
constexpr WireRate kDefaultRate{2, 1};       // 4x SDR

// Where a connector leads inside of its product.
struct Connector {
  TopologyEnd end;
  WireRate rate;
};
using Connectors = std::map<std::string, Connector, std::less<>>;
// `leaf1` to `R` or `4x`.
using Configuration = std::map<std::string, std::string, std::less<>>;

WireRate either(WireRate first, WireRate second) {
  return {first.width != 0 ? first.width : second.width,
          first.speed != 0 ? first.speed : second.speed};
}

// A product that the file names.
struct Product {
  const SystemDefinition* definition = nullptr;
  std::string type;
  Configuration configuration;
  Connectors connectors;
};

class Builder {
 public:
  Topology topology;

  // Makes the elements and the inner cables of a system. If that cannot be, `reason` says why.
  Status expand(const SystemDefinition& system, const std::string& name,
                const Configuration& configuration, Connectors& connectors, std::string& reason) {
    if (depth_ > kDeepest || ++boards_ > kMostBoards) return refuse_size(name, reason);
    IB_CHECK(check_configuration(system, name, configuration, reason));
    std::map<std::string, Connectors, std::less<>> parts;
    const bool is_one_adapter = system.parts.size() == 1 && system.parts[0].type.empty() &&
                                !system.parts[0].element.is_switch();
    for (const SystemPart& part : system.parts) {
      const std::string path = is_one_adapter ? name : name + "/" + part.name;
      Connectors own;
      if (part.type.empty()) {
        IB_CHECK(add_element(part, path, own, reason));
      } else {
        const auto chosen = configuration.find(part.name);
        const std::string kind = chosen != configuration.end() ? chosen->second : "";
        if (kind == kLeftOut) continue;
        const std::string type = kind.empty() ? part.type : part.type + ":" + kind;
        const auto board = system.boards->find(type);
        if (board == system.boards->end()) {
          reason = fmt::format("\"{}\" is to be a board {}; its IBNL file has none of this name",
                               shown(path), shown(type));
          return Status::Malformed;
        }
        ++depth_;
        IB_CHECK(expand(*board->second, path, {}, own, reason));
        --depth_;
      }
      parts.insert_or_assign(part.name, std::move(own));
    }
    join_all(system, parts, connectors);
    return Status::Ok;
  }

  // Of two ends that each lead somewhere. Returns false if one of them has another cable.
  bool connect(const Connector& a, const Connector& b, WireRate rate) {
    const auto known = peers_.find(a.end);
    if (known != peers_.end()) return known->second == b.end;
    if (peers_.contains(b.end)) return false;
    peers_.emplace(a.end, b.end);
    peers_.emplace(b.end, a.end);
    const WireRate inside{static_cast<std::uint8_t>(std::min(a.rate.width, b.rate.width)),
                          std::min(a.rate.speed, b.rate.speed)};
    const WireRate whole = either(either(rate, inside), kDefaultRate);
    topology.cables.push_back({a.end, b.end, whole.width, whole.speed, true});
    return true;
  }

 private:
  static Status refuse_size(const std::string& name, std::string& reason) {
    reason = fmt::format(
        "\"{}\" makes the subnet too large; it has {} elements and {} boards at "
        "most, {} in each other",
        shown(name), kMaxTopologyLids, kMostBoards, kDeepest);
    return Status::LimitExceeded;
  }

  static Status check_configuration(const SystemDefinition& system, const std::string& name,
                                    const Configuration& configuration, std::string& reason) {
    for (const auto& item : configuration) {
      const bool is_there = std::any_of(
          system.parts.begin(), system.parts.end(),
          [&](const SystemPart& part) { return part.name == item.first && !part.type.empty(); });
      if (is_there) continue;
      reason = fmt::format("\"{}\" has no board {}, of which its CFG: says {}", shown(name),
                           shown(item.first), shown(item.second));
      return Status::Malformed;
    }
    return Status::Ok;
  }

  Status add_element(const SystemPart& part, const std::string& path, Connectors& ports,
                     std::string& reason) {
    if (topology.elements.size() == kMaxTopologyLids) return refuse_size(path, reason);
    const auto index = static_cast<std::uint32_t>(topology.elements.size());
    TopologyElement& element = topology.elements.emplace_back(part.element);
    element.description = path;
    element.node_guid =
        element.is_switch() ? switch_guid(switches_++) : position_guid(adapters_++, 0, 0);
    element.system_image_guid = element.node_guid;
    for (std::uint32_t port = 1; port <= element.ports; ++port) {
      ports.emplace(std::to_string(port), Connector{{index, port}, {}});
    }
    return Status::Ok;
  }

  // All wires of the parts that are there.
  void join_all(const SystemDefinition& system,
                const std::map<std::string, Connectors, std::less<>>& parts,
                Connectors& connectors) {
    for (const SystemPart& part : system.parts) {
      const auto own = parts.find(part.name);
      if (own == parts.end()) continue;
      for (const SystemWire& wire : part.wires) join(parts, own->second, wire, connectors);
    }
  }

  // A wire whose ends are both there becomes a cable, or a connector of the system.
  void join(const std::map<std::string, Connectors, std::less<>>& parts, const Connectors& own,
            const SystemWire& wire, Connectors& connectors) {
    const auto from = own.find(wire.port);
    if (from == own.end()) return;
    if (wire.peer_part.empty()) {
      connectors.insert_or_assign(
          wire.peer_port, Connector{from->second.end, either(wire.rate, from->second.rate)});
      return;
    }
    const auto part = parts.find(wire.peer_part);
    if (part == parts.end()) return;
    const auto to = part->second.find(wire.peer_port);
    // The two lines of a wire say the same; if they do not, the first counts.
    if (to != part->second.end()) (void)connect(from->second, to->second, wire.rate);
  }

  std::map<TopologyEnd, TopologyEnd> peers_;
  std::size_t switches_ = 0;
  std::size_t adapters_ = 0;
  std::size_t boards_ = 0;
  std::size_t depth_ = 0;
};

class SystemReader {
 public:
  explicit SystemReader(const SystemLibrary& library) : library_(library) {}

  Result<Topology> read(std::string_view text, std::string& reason) {
    std::string_view content;
    std::string_view here;
    for (std::uint32_t number = 1; take_line(text, content); ++number) {
      TextLine line(content, "", number);
      line.skip_blanks();
      if (line.is_over() || line.begins_with("#")) continue;
      if (content.find("->") == std::string_view::npos) {
        IB_CHECK(read_product(line, here, reason));
      } else if (here.empty()) {
        return line.expected("a product and its name before its cables", reason);
      } else {
        IB_CHECK(read_cable(line, here, reason));
      }
    }
    for (const std::string_view name : order_) {
      Product& product = products_.find(name)->second;
      IB_CHECK(builder_.expand(*product.definition, std::string(name), product.configuration,
                               product.connectors, reason));
    }
    for (const Cable& cable : cables_) IB_CHECK(join(cable, reason));
    IB_CHECK(check(builder_.topology, reason));
    return std::move(builder_.topology);
  }

 private:
  struct Cable {
    TextLine line;
    std::string_view product, port;
    std::size_t column;
    WireRate rate;
    std::string_view peer, peer_port;
    std::size_t peer_column;
  };

  // `TYPE NAME`, of which the name is the key.
  Status take_product(TextLine& line, std::string_view& name, std::string& reason) {
    line.skip_blanks();
    const std::size_t column = line.column();
    std::string_view type;
    (void)line.take_word(type);
    const SystemDefinition* definition = library_.find(type);
    if (definition == nullptr) {
      return line.expected_at(column, "the type of a product that an IBNL file has", reason);
    }
    line.skip_blanks();
    const std::size_t name_column = line.column();
    if (!line.take_word(name)) return line.expected("the name of the product", reason);
    auto found = products_.find(name);
    if (found == products_.end()) {
      found = products_.emplace(std::string(name), Product{}).first;
      found->second.definition = definition;
      found->second.type = type;
      order_.push_back(found->first);
    }
    if (found->second.definition == definition) return Status::Ok;
    return line.refuse(name_column,
                       fmt::format("\"{}\" is of type {} in another line; it has one type",
                                   shown(name), shown(found->second.type)),
                       reason);
  }

  // `TYPE NAME CFG: leaf1=R,leaf2=4x`
  Status read_product(TextLine& line, std::string_view& name, std::string& reason) {
    IB_CHECK(take_product(line, name, reason));
    line.skip_blanks();
    if (line.is_over()) return Status::Ok;
    if (!line.take("CFG:")) return line.expected("CFG: or the end of the line", reason);
    Configuration& configuration = products_.find(name)->second.configuration;
    for (line.skip_blanks(); !line.is_over(); line.skip_blanks()) {
      const std::string_view item = line.rest().substr(0, line.rest().find_first_of(", \t"));
      const std::size_t sign = item.find('=');
      if (sign == std::string_view::npos || sign == 0 || sign + 1 == item.size()) {
        return line.expected("BOARD=R or BOARD=KIND", reason);
      }
      configuration.insert_or_assign(std::string(item.substr(0, sign)),
                                     std::string(item.substr(sign + 1)));
      (void)line.take(item);
      line.skip_blanks();
      (void)line.take(",");
    }
    return Status::Ok;
  }

  // `PORT -> TYPE NAME PORT`
  Status read_cable(TextLine& line, std::string_view here, std::string& reason) {
    Cable cable{line, here, {}, line.column(), {}, {}, {}, 0};
    (void)line.take_word(cable.port);
    IB_CHECK(take_arrow(line, cable.rate, reason));
    IB_CHECK(take_product(line, cable.peer, reason));
    line.skip_blanks();
    cable.peer_column = line.column();
    if (!line.take_word(cable.peer_port)) return line.expected("a port of the product", reason);
    cables_.push_back(cable);
    return Status::Ok;
  }

  const Connector* find(std::string_view product, std::string_view port) const {
    const Connectors& connectors = products_.find(product)->second.connectors;
    const auto found = connectors.find(port);
    return found != connectors.end() ? &found->second : nullptr;
  }

  Status join(const Cable& cable, std::string& reason) {
    const Connector* from = find(cable.product, cable.port);
    const Connector* to = find(cable.peer, cable.peer_port);
    if (from == nullptr || to == nullptr) {
      return cable.line.expected_at(
          from == nullptr ? cable.column : cable.peer_column,
          fmt::format("a connector of \"{}\", as its IBNL file and its boards have",
                      shown(from == nullptr ? cable.product : cable.peer)),
          reason);
    }
    if (builder_.connect(*from, *to, cable.rate)) return Status::Ok;
    return cable.line.refuse(cable.column, "one of the two ports has another cable; a port has one",
                             reason);
  }

  const SystemLibrary& library_;
  std::map<std::string, Product, std::less<>> products_;
  std::vector<std::string_view> order_;  // keys of products_, as they came
  std::vector<Cable> cables_;
  Builder builder_;
};

}  // namespace

Result<Topology> parse_system_topology(std::string_view text, const SystemLibrary& library,
                                       std::string& reason) {
  return SystemReader(library).read(text, reason);
}

}  // namespace ib::fabric
