// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The looks of a picture, from the states and counters of a subnet.
#include "fabric/picture/escape.h"
#include "fabric/picture/looks_internal.h"
#include "fabric/picture/picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace ib::fabric {
namespace {

constexpr std::size_t kNameShown = 24;      // characters
constexpr std::size_t kProgramsShown = 20;  // characters of their line

// The two ends of a cable.
struct Ends {
  const ShownElement* a;
  const ShownPort* pa;
  const ShownElement* b;
  const ShownPort* pb;  // nullptr on the ideal network
  LinkState state() const { return pb == nullptr ? pa->state : std::max(pa->state, pb->state); }
  // A counter that one of the ends has not counted stands in the other one's.
  std::uint64_t data() const {
    return pb == nullptr ? pa->data() : std::max(pa->data(), pb->data());
  }
  std::uint64_t packets() const {
    return pb == nullptr ? pa->packets() : std::max(pa->packets(), pb->packets());
  }
  std::uint64_t errors() const { return pa->errors + (pb == nullptr ? 0 : pb->errors); }
  bool has_errors() const { return pa->has_errors || (pb != nullptr && pb->has_errors); }
};

Ends ends_of(const ShownSubnet& subnet, const TopologyEnd& end) {
  const ShownElement& a = subnet.elements[end.element];
  const ShownPort* pa = a.find_port(end.port);
  const ShownElement& b = subnet.elements[pa->peer];
  const ShownPort* pb = b.find_port(pa->peer_port);
  if (a.is_ideal) return {&b, pb, &a, nullptr};
  return {&a, pa, &b, b.is_ideal ? nullptr : pb};
}

std::string shown_name(const ShownElement& element, std::size_t most = kNameShown) {
  return element.name.empty() ? fmt::format("{:#018x}", element.guid)
                              : clean_text(element.name, most);
}

// The most frequent rate of cables.
std::string usual_rate_of(const ShownSubnet& subnet) {
  std::map<std::string, std::size_t> counts;
  for (const ShownElement& element : subnet.elements) {
    for (const ShownPort& port : element.ports) {
      if (port.peer != kNoIndex && !port.rate.empty()) ++counts[port.rate];
    }
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

std::string note_of(const Line& line, const std::set<std::string>& rates,
                    const std::string& usual) {
  std::vector<std::string> notes;
  const std::size_t all = line.cables.size();
  for (std::size_t state = kLinkStates; state-- > 1;) {
    const std::uint32_t count = line.counts[state];
    if (count == 0) continue;
    const char* name = link_state_name(static_cast<LinkState>(state));
    notes.push_back(all == 1 ? name : fmt::format("{} of {} {}", count, all, name));
  }
  for (const std::string& rate : rates) {
    if (rate != usual) notes.push_back(clean_text(rate, 12));
  }
  if (line.errors != 0) notes.push_back(counted_text(line.errors, "error", "errors"));
  return fmt::format("{}", fmt::join(notes, ", "));
}

std::string title_of(const ShownSubnet& subnet, const Picture& picture, const Line& line) {
  if (line.cables.size() > 1) {
    return fmt::format("{} cables between {} and {}{}{}", line.cables.size(),
                       picture.boxes[line.upper].name, picture.boxes[line.lower].name,
                       line.note.empty() ? "" : ": ", line.note);
  }
  const Ends ends = ends_of(subnet, line.cables.front());
  const std::string other = ends.pb == nullptr
                                ? "the ideal network"
                                : fmt::format("{} port {}", shown_name(*ends.b), ends.pb->number);
  return fmt::format("{} port {} - {}: {}{}{}, {}{}", shown_name(*ends.a), ends.pa->number, other,
                     link_state_name(line.state), ends.pa->rate.empty() ? "" : ", ",
                     clean_text(ends.pa->rate, 12), data_text(line.data),
                     line.errors == 0 ? "" : ", " + counted_text(line.errors, "error", "errors"));
}

void refresh_line(Picture& picture, const ShownSubnet& subnet, Line& line) {
  std::set<std::string> rates;
  line.state = LinkState::Active;
  line.counts = {};
  line.data = line.packets = line.errors = 0;
  line.has_errors = false;
  for (const TopologyEnd& cable : line.cables) {
    const Ends ends = ends_of(subnet, cable);
    const LinkState state = ends.state();
    line.state = std::max(line.state, state);
    ++line.counts[static_cast<std::size_t>(state)];
    line.data = std::max(line.data, ends.data());
    line.packets = std::max(line.packets, ends.packets());
    line.errors += ends.errors();
    line.has_errors = line.has_errors || ends.has_errors();
    if (!ends.pa->rate.empty() && ends.pb != nullptr) rates.insert(ends.pa->rate);
  }
  line.note = note_of(line, rates, picture.usual_rate);
}

void refresh_route(Picture& picture, const ShownSubnet& subnet) {
  for (Box& box : picture.boxes) box.is_on_route = false;
  std::map<TopologyEnd, std::uint32_t> hops;  // by the port that a packet leaves by, from 1
  std::set<std::uint32_t> elements(subnet.route_ends.begin(), subnet.route_ends.end());
  for (const TopologyEnd& end : subnet.route) {
    hops.emplace(end, static_cast<std::uint32_t>(hops.size() + 1));
    elements.insert(end.element);
  }
  for (Line& line : picture.lines) {
    line.hop = 0;
    for (const TopologyEnd& end : line.cables) {
      const ShownPort& port = *subnet.elements[end.element].find_port(end.port);
      const auto down = hops.find(end);
      const auto up = hops.find({port.peer, port.peer_port});
      if (down != hops.end()) line.hop = down->second;
      if (up != hops.end()) line.hop = up->second;
      line.is_hop_upwards = up != hops.end();
    }
  }
  for (Box& box : picture.boxes) {
    for (const std::uint32_t member : box.members) {
      box.is_on_route = box.is_on_route || elements.contains(member);
    }
  }
  picture.route_text = clean_text(subnet.route_text);
}

std::string programs_text(const ShownSubnet& subnet, const Box& box) {
  std::map<std::string, std::size_t> counts;
  std::size_t nodes = 0;
  for (const std::uint32_t member : box.members) {
    const ShownElement& element = subnet.elements[member];
    for (const ShownProgram& program : element.programs) ++counts[clean_text(program.name, 40)];
    nodes += element.programs.empty() ? 0u : 1u;
  }
  if (counts.empty()) return {};
  std::vector<std::string> words;
  for (const auto& [name, count] : counts) {
    words.push_back(count == 1 ? name : fmt::format("{} x{}", name, count));
  }
  const std::string text = fmt::format("{}", fmt::join(words, ", "));
  if (character_count(text) <= kProgramsShown) return text;
  if (box.is_folded()) return "programs on " + counted_text(nodes, "node", "nodes");
  return clean_text(text, kProgramsShown - 3);
}

std::string lids_text(const ShownElement& element) {
  std::string text;
  for (const ShownPort& port : element.ports) {
    if (port.lid != 0) text += fmt::format("{}{}", text.empty() ? "LID " : ", ", port.lid);
  }
  return text.empty() ? "no LID" : text;
}

// The name of a box of several: "16 switches, 32 HCAs".
std::string crowd_name(std::size_t switches, std::size_t adapters) {
  std::string text;
  if (switches != 0) text = counted_text(switches, "switch", "switches");
  if (adapters == 0) return text;
  return text + (text.empty() ? "" : ", ") + counted_text(adapters, "HCA", "HCAs");
}

// "1 down, 2 init, 15 active" of states that are not 0.
std::string states_text(const std::array<std::uint32_t, kLinkStates>& counts) {
  std::string text;
  for (std::size_t state = kLinkStates; state-- > 0;) {
    if (counts[state] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[state],
                        link_state_name(static_cast<LinkState>(state)));
  }
  return text.empty() ? "no cable" : text;
}

std::string first_and_last(const ShownSubnet& subnet, const std::vector<std::uint32_t>& members) {
  constexpr std::size_t kShort = 13;
  const ShownElement& first = subnet.elements[members.front()];
  const ShownElement& last = subnet.elements[members.back()];
  const auto name = [](const ShownElement& element) {
    const bool has_node = !element.is_switch && !element.node.empty();
    return has_node ? clean_text(element.node, kShort) : shown_name(element, kShort);
  };
  return fmt::format("{} .. {}", name(first), name(last));
}

std::string summary_of(const ShownSubnet& subnet) {
  std::uint64_t switches = 0;
  std::uint64_t adapters = 0;
  std::array<std::uint64_t, kLinkStates> cables{};
  for (const ShownElement& element : subnet.elements) {
    if (element.is_ideal) continue;
    (element.is_switch ? switches : adapters) += 1;
    for (const ShownPort& port : element.ports) {
      if (port.peer == kNoIndex || subnet.elements[port.peer].is_ideal) continue;
      const ShownPort* other = subnet.elements[port.peer].find_port(port.peer_port);
      ++cables[static_cast<std::size_t>(std::max(port.state, other->state))];
    }
  }
  std::uint64_t all = 0;
  for (std::uint64_t& count : cables) all += count /= 2;  // both ends were counted
  std::string text = fmt::format("{}, {}, {}", counted_text(adapters, "HCA", "HCAs"),
                                 counted_text(switches, "switch", "switches"),
                                 counted_text(all, "cable", "cables"));
  for (std::size_t state = kLinkStates; state-- > 1;) {
    if (cables[state] == 0) continue;
    text += fmt::format(", {} {}", cables[state], link_state_name(static_cast<LinkState>(state)));
  }
  return text;
}

struct Crowd {
  std::vector<std::uint32_t> switches, adapters;
};

Crowd crowd_of(const Box& box, const ShownSubnet& subnet) {
  Crowd crowd;
  for (const std::uint32_t member : box.members) {
    (subnet.elements[member].is_switch ? crowd.switches : crowd.adapters).push_back(member);
  }
  return crowd;
}

// Of the ports with a cable of a switch, and of all ports of an adapter.
std::array<std::uint32_t, kLinkStates> port_states(const ShownSubnet& subnet,
                                                   const std::vector<std::uint32_t>& members) {
  std::array<std::uint32_t, kLinkStates> counts{};
  for (const std::uint32_t member : members) {
    const ShownElement& element = subnet.elements[member];
    for (const ShownPort& port : element.ports) {
      if (port.peer == kNoIndex && element.is_switch) continue;
      ++counts[static_cast<std::size_t>(port.state)];
    }
  }
  return counts;
}

LinkState worst_of(const std::array<std::uint32_t, kLinkStates>& counts) {
  for (std::size_t state = kLinkStates; state-- > 1;) {
    if (counts[state] != 0) return static_cast<LinkState>(state);
  }
  return LinkState::Active;
}

void refresh_folded(Box& box, const ShownSubnet& subnet, bool has_programs) {
  const Crowd crowd = crowd_of(box, subnet);
  box.state = worst_of(port_states(subnet, box.members));
  box.is_there = std::all_of(box.members.begin(), box.members.end(), [&](std::uint32_t member) {
    return subnet.elements[member].is_there;
  });
  const std::string states =
      states_text(port_states(subnet, crowd.adapters.empty() ? crowd.switches : crowd.adapters));
  if (crowd.switches.size() == 1) {
    box.name = shown_name(subnet.elements[crowd.switches.front()]);
    box.texts = {"with " + counted_text(crowd.adapters.size(), "HCA", "HCAs"), "HCAs: " + states};
  } else {
    box.name = crowd_name(crowd.switches.size(), crowd.adapters.size());
    const bool is_region = !crowd.switches.empty() && !crowd.adapters.empty();
    box.texts = {is_region ? "around " + shown_name(subnet.elements[crowd.switches.front()])
                           : first_and_last(subnet, box.members),
                 (is_region ? "HCAs: " : "ports: ") + states};
  }
  if (has_programs && !crowd.adapters.empty()) box.texts.push_back(programs_text(subnet, box));
}

void refresh_single(Box& box, const ShownSubnet& subnet, bool has_programs) {
  const ShownElement& element = subnet.elements[box.members.front()];
  box.is_there = element.is_there;
  box.state = LinkState::Active;
  if (element.is_ideal) {
    box.name = "ideal network";
    box.texts = {"joins all ports without a cable"};
    return;
  }
  if (element.is_switch) {
    box.name = shown_name(element);
    const std::string ports = counted_text(element.ports.size(), "port", "ports");
    box.texts = {!element.is_there  ? "no power"
                 : element.lid == 0 ? "no LID, " + ports
                                    : fmt::format("LID {}, {}", element.lid, ports)};
    return;
  }
  const bool has_node = !element.node.empty();
  box.name = has_node ? clean_text(element.node, kNameShown) : shown_name(element);
  box.state = worst_of(port_states(subnet, box.members));
  const char* state = link_state_name(box.state);
  box.texts = {element.is_there ? fmt::format("{}, {}", lids_text(element), state) : "not present"};
  if (has_programs) box.texts.push_back(programs_text(subnet, box));
}

}  // namespace

std::string counted_text(std::uint64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string data_text(std::uint64_t words) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = 4.0 * static_cast<double>(words);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", 4 * words) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

const char* link_state_name(LinkState state) {
  switch (state) {
    case LinkState::Active: return "active";
    case LinkState::Armed: return "armed";
    case LinkState::Init: return "init";
    case LinkState::Down: return "down";
  }
  return "down";
}

std::string troubles_text(const ShownPort& port) {
  std::string text;
  for (const ShownTrouble& trouble : port.troubles) {
    std::string words = trouble.name;
    std::replace(words.begin(), words.end(), '_', ' ');
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words, trouble.count);
  }
  return text;
}

void refresh(Picture& picture, const ShownSubnet& subnet) {
  picture.usual_rate = usual_rate_of(subnet);
  picture.hottest = 0;
  for (Box& box : picture.boxes) {
    box.has_errors = false;
    if (box.is_folded()) {
      refresh_folded(box, subnet, picture.has_programs);
    } else {
      refresh_single(box, subnet, picture.has_programs);
    }
    for (const std::uint32_t member : box.members) {
      for (const ShownPort& port : subnet.elements[member].ports) {
        box.has_errors = box.has_errors || port.has_errors;
      }
    }
  }
  for (Line& line : picture.lines) {
    refresh_line(picture, subnet, line);
    picture.hottest = std::max(picture.hottest, line.data);
  }
  if (picture.hottest < kLeastHot) picture.hottest = 0;
  for (Line& line : picture.lines) {
    line.load =
        picture.hottest == 0
            ? 0
            : std::sqrt(static_cast<double>(line.data) / static_cast<double>(picture.hottest));
    line.title = title_of(subnet, picture, line);
  }
  refresh_route(picture, subnet);
  picture.summary = summary_of(subnet);
}

}  // namespace ib::fabric
