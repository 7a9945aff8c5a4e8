// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Directives of ibsim above the lines that it shares with ibnetdiscover.
#include "fabric/topology/ibsim.h"

#include "fabric/topology/link_names.h"
#include "fabric/topology/net_lines_internal.h"
#include "fabric/topology/net_writer_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>

namespace ib::fabric {
namespace {

constexpr std::size_t kMostIncludes = 9;          // of files in each other, as in ibsim
constexpr std::size_t kMostIncludedFiles = 1000;  // in all
constexpr std::uint8_t kDefaultWidth = 2;         // 4x
constexpr std::uint8_t kDefaultSpeed = 1;         // SDR
constexpr unsigned kMostWidth = 15;
constexpr unsigned kMostSpeed = 7;
constexpr unsigned kFastest = 4;  // QDR

// Numbers for the elements of a kind that have none of their own.
struct GuidCounter {
  std::uint64_t base = 0;
  std::uint64_t next = 0;
};

struct Guids {
  GuidCounter adapters{0x100000, 0x100000};
  GuidCounter switches{0x200000, 0x200000};
  GuidCounter routers;
};

class NetReader {
 public:
  explicit NetReader(const ReadIncluded& read_included) : read_included_(read_included) {
    builder_.set_default_link(width_, speed_);
  }

  Result<Topology> read(std::string_view text, std::string& reason) {
    IB_CHECK(read_file(text, "", reason));
    return builder_.finish(reason);
  }

 private:
  Status read_file(std::string_view text, std::string_view file, std::string& reason) {
    std::string_view line;
    for (std::uint32_t number = 1; take_line(text, line); ++number) {
      TextLine at(line, file, number);
      IB_CHECK(read_line(at, reason));
    }
    is_in_block_ = false;
    return Status::Ok;
  }

  Status read_line(TextLine& line, std::string& reason) {
    line.skip_blanks();
    if (line.is_over()) is_in_block_ = false;
    if (line.is_over() || line.begins_with("#")) return Status::Ok;
    if (line.begins_with("[")) return read_port(line, reason);
    if (line.begins_with("@")) return read_alias(line, reason);
    is_in_block_ = false;
    if (is_element_line(line)) return read_element(line, reason);
    for (const std::string_view ignored :
         {"Chassis ", "Non-Chassis Nodes", "Hostname: ", "pdebug"}) {
      if (line.begins_with(ignored)) return Status::Ok;
    }
    return read_directive(line, reason);
  }

  Status read_directive(TextLine& line, std::string& reason) {
    if (line.take("caguid") || line.take("hcaguids"))
      return read_guid(line, guids_.adapters, reason);
    if (line.take("switchguid")) return read_guid(line, guids_.switches, reason);
    if (line.take("rtguid")) return read_guid(line, guids_.routers, reason);
    if (line.take("vendid")) return read_number(line, 0xffffff, next_.vendor, reason);
    if (line.take("devid")) return read_number(line, 0xffff, device_, reason);
    if (line.take("sysimgguid"))
      return read_number(line, ~0ull, next_.system_image.emplace(), reason);
    if (line.take("width")) return read_mask(line, kMostWidth, width_, reason);
    if (line.take("speed")) return read_mask(line, kMostSpeed, speed_, reason);
    if (line.take("module")) return read_module(line, reason);
    if (line.take("include")) return read_include(line, reason);
    if (line.begins_with("do ")) {
      return line.refuse(line.column(),
                         "a command of ibsim's console changes a subnet that runs; a topology has "
                         "no such lines: take it out",
                         reason);
    }
    return line.expected(
        "Switch, Ca, Hca, Rt, a port as in [1], caguid=, hcaguids=, switchguid=, "
        "rtguid=, devid=, width=, speed=, module=, include or a comment that "
        "begins with #",
        reason);
  }

  Status take_sign(TextLine& line, std::string& reason) {
    line.skip_blanks();
    if (!line.take("=")) return line.expected("=", reason);
    line.skip_blanks();
    return Status::Ok;
  }

  Status read_number(TextLine& line, std::uint64_t most, std::uint64_t& value,
                     std::string& reason) {
    IB_CHECK(take_sign(line, reason));
    const std::size_t column = line.column();
    if (line.take_integer(value) && value <= most) return Status::Ok;
    return line.expected_at(column, fmt::format("a number of at most {:#x}", most), reason);
  }

  Status read_mask(TextLine& line, unsigned most, std::uint8_t& value, std::string& reason) {
    IB_CHECK(take_sign(line, reason));
    const std::size_t column = line.column();
    std::uint64_t mask = 0;
    if (!line.take_integer(mask) || mask == 0 || mask > most) {
      return line.expected_at(column, fmt::format("a mask from 1 to {}", most), reason);
    }
    value = static_cast<std::uint8_t>(mask);
    builder_.set_default_link(width_, speed_);
    return Status::Ok;
  }

  Status read_guid(TextLine& line, GuidCounter& counter, std::string& reason) {
    line.skip_blanks();
    const bool is_relative = line.take("+");
    if (!is_relative && !line.take("=")) return line.expected("= or +", reason);
    line.skip_blanks();
    std::uint64_t value = 0;
    if (!line.take_integer(value)) return line.expected("a number, as in 0x100000", reason);
    if (!is_relative) counter.base = value;
    counter.next = is_relative ? counter.base + value : value;
    next_.port_guid = 0;
    if (line.take("(") && (!line.take_hex(next_.port_guid) || !line.take(")"))) {
      return line.expected("a GUID in hexadecimal digits and )", reason);
    }
    return Status::Ok;
  }

  Status read_module(TextLine& line, std::string& reason) {
    IB_CHECK(take_sign(line, reason));
    std::string_view name;
    if (!line.take_quoted(name)) return line.expected("a name in quotation marks", reason);
    prefix_ = keep(std::string(name));
    return Status::Ok;
  }

  Status read_include(TextLine& line, std::string& reason) {
    line.skip_blanks();
    const std::size_t column = line.column();
    std::string_view name;
    if (!line.take_quoted(name)) return line.expected("a file in quotation marks", reason);
    if (includes_.depth == kMostIncludes || ++includes_.count > kMostIncludedFiles) {
      return line.refuse(
          column,
          fmt::format("files include each other {} deep, or {} times in all; that is "
                      "the most",
                      kMostIncludes, kMostIncludedFiles),
          reason);
    }
    auto text = read_included_ ? read_included_(name) : std::nullopt;
    if (!text) {
      return line.refuse(
          column, fmt::format("the file \"{}\" cannot be read; put its lines here", shown(name)),
          reason);
    }
    ++includes_.depth;
    const std::string_view kept = keep(*std::move(text));
    IB_CHECK(read_file(kept, name, reason));
    --includes_.depth;
    return Status::Ok;
  }

  // A name as it stands in the file, with the module before it.
  std::string_view full_name(std::string_view name) {
    if (prefix_.empty() || name.find('#') != std::string_view::npos) return name;
    return keep(fmt::format("{}#{}", prefix_, name));
  }
  // `@ALIAS` is one of this module.
  std::string_view full_alias(std::string_view name) {
    if (prefix_.empty() || !name.starts_with('@')) return name;
    return keep(fmt::format("{}{}", prefix_, name));
  }
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  GuidCounter& counter_of(const TopologyElement& element) {
    if (element.is_switch()) return guids_.switches;
    return element.is_router ? guids_.routers : guids_.adapters;
  }

  Status read_element(TextLine& line, std::string& reason) {
    ElementLine parsed;
    IB_CHECK(parse_element_line(line, parsed, reason));
    if (parsed.name.find_first_of("#@") != std::string_view::npos) {
      return line.expected_at(parsed.name_column, "a name without # and @", reason);
    }
    TopologyElement& element = parsed.element;
    GuidCounter& counter = counter_of(element);
    element.node_guid = counter.next;
    if (element.node_guid == 0) {
      return line.expected_at(0, "a line with a GUID that is not 0, as rtguid=0x300000, above this",
                              reason);
    }
    counter.next += element.is_switch() ? 1 : element.ports + 1;
    element.vendor = static_cast<std::uint32_t>(next_.vendor);
    element.device = static_cast<std::uint32_t>(device_);
    element.system_image_guid = next_.system_image.value_or(element.node_guid);
    if (element.is_switch() && next_.port_guid != 0) element.port_guids = {next_.port_guid};
    next_ = {};
    parsed.name = full_name(parsed.name);
    if (!parsed.has_description) element.description = parsed.name.substr(0, kMaxDescription);
    is_in_block_ = true;
    return builder_.add_element(line, parsed, reason);
  }

  Status check_block(const TextLine& line, std::string& reason) const {
    if (is_in_block_) return Status::Ok;
    return line.expected("a line that begins with Switch, Ca, Hca or Rt before those of ports",
                         reason);
  }

  Status read_port(TextLine& line, std::string& reason) {
    IB_CHECK(check_block(line, reason));
    PortLine parsed;
    IB_CHECK(parse_port_line(line, builder_.last().ports, parsed, reason));
    const bool is_alias = parsed.peer.find('@') != std::string_view::npos;
    parsed.peer = is_alias ? full_alias(parsed.peer) : full_name(parsed.peer);
    return builder_.add_port(line, parsed, reason);
  }

  // `@[3] "ALIAS"`
  Status read_alias(TextLine& line, std::string& reason) {
    IB_CHECK(check_block(line, reason));
    (void)line.take("@");
    PortLine parsed;
    IB_CHECK(parse_port_line(line, builder_.last().ports, parsed, reason));
    if (parsed.peer.find_first_of("#@") != std::string_view::npos) {
      return line.expected_at(parsed.peer_column, "an alias without # and @", reason);
    }
    return builder_.add_alias(line, keep(fmt::format("{}@{}", prefix_, parsed.peer)), parsed.port,
                              reason);
  }

  struct Includes {
    std::size_t depth = 0;
    std::size_t count = 0;
  };
  // Of the next element only.
  struct Next {
    std::uint64_t vendor = 0;
    std::optional<std::uint64_t> system_image;
    std::uint64_t port_guid = 0;
  };

  const ReadIncluded& read_included_;
  NetBuilder builder_;
  std::deque<std::string> kept_;  // the texts that names are pieces of
  Guids guids_;
  Next next_;
  std::uint64_t device_ = 0;  // of all elements that follow; so are the masks and the prefix
  std::uint8_t width_ = kDefaultWidth;
  std::uint8_t speed_ = kDefaultSpeed;
  std::string_view prefix_;
  bool is_in_block_ = false;
  Includes includes_;
};

void append_net_port(std::string& out, const Topology& topology, std::uint32_t index,
                     const CablesOf::Plug& plug) {
  const TopologyElement& element = topology.elements[index];
  const TopologyCable& cable = topology.cables[plug.cable];
  auto to = std::back_inserter(out);
  fmt::format_to(to, "[{}]", plug.port);
  if (!element.port_guids.empty() && !element.is_switch()) {
    fmt::format_to(to, "({:x})", end_port_guid(element, plug.port - 1));
  }
  fmt::format_to(to, "\t\"{}\"[{}]", net_name(topology.elements[plug.peer.element]),
                 plug.peer.port);
  if (cable.width <= kMostWidth) fmt::format_to(to, " w={}", cable.width);
  fmt::format_to(to, " s={}\t# ", std::min<unsigned>(cable.speed, kFastest));
  if (!element.is_switch()) {
    fmt::format_to(to, "lid {} lmc {} ", lid_of(element, plug.port), element.lmc);
  }
  fmt::format_to(to, "{}{}\n", width_name(cable.width), speed_name(cable.speed));
}

}  // namespace

Result<Topology> parse_ibsim(std::string_view text, const ReadIncluded& read_included,
                             std::string& reason) {
  return NetReader(read_included).read(text, reason);
}

std::string write_ibsim(const Topology& topology) {
  std::string out = "# Net file of ibsim: written by softib\n";
  const CablesOf cables(topology);
  for (std::uint32_t i = 0; i < topology.elements.size(); ++i) {
    out += '\n';
    // A line that is missing stands for the node GUID.
    if (topology.elements[i].system_image_guid == 0) out += "sysimgguid=0x0\n";
    append_element_ids(out, topology.elements[i]);
    append_element_line(out, topology.elements[i]);
    out += '\n';
    for (const auto* plug = cables.begin(i); plug != cables.end(i); ++plug) {
      append_net_port(out, topology, i, *plug);
    }
  }
  return out;
}

}  // namespace ib::fabric
