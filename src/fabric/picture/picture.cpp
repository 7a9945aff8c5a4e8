// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Second stage of a picture: boxes and lines of the folded elements. looks.cpp gives them states
// and loads, dot.cpp their places, svg.cpp draws them.
#include "fabric/picture/picture.h"

#include "fabric/picture/escape.h"
#include "fabric/picture/looks_internal.h"
#include "fabric/picture/wires.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace ib::fabric {
namespace {

constexpr std::size_t kNumbersShown = 160;  // lines; with more, ports have no numbers
constexpr double kLetter = 6.9;             // points; wide letters of 11 points
constexpr double kNumberHeight = 9;
constexpr double kNumberWidth = 18;
constexpr std::size_t kMostAbreast = 8;  // boxes of a level, else levels run from left to right

// Both ends of a cable are walked; one of them stands for it.
bool stands_for_cable(const Picture& picture, const std::vector<std::uint32_t>& box,
                      std::uint32_t element, const ShownPort& port) {
  const std::uint32_t own = box[element];
  const std::uint32_t other = box[port.peer];
  if (own == other) return false;  // inside of a box
  const std::uint32_t own_level = picture.boxes[own].level;
  const std::uint32_t other_level = picture.boxes[other].level;
  return std::pair(own_level, other) > std::pair(other_level, own);
}

void make_lines(Picture& picture, const ShownSubnet& subnet,
                const std::vector<std::uint32_t>& box) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> of_folded;
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    for (const ShownPort& port : subnet.elements[i].ports) {
      if (port.peer == kNoIndex || !stands_for_cable(picture, box, i, port)) continue;
      const std::uint32_t upper = box[i];
      const std::uint32_t lower = box[port.peer];
      const bool is_folded = picture.boxes[upper].is_folded() || picture.boxes[lower].is_folded();
      std::size_t place = picture.lines.size();
      if (is_folded) place = of_folded.emplace(std::pair(upper, lower), place).first->second;
      if (place == picture.lines.size()) {
        picture.lines.emplace_back();
        picture.lines.back().upper = upper;
        picture.lines.back().lower = lower;
      }
      picture.lines[place].cables.push_back({i, port.number});
    }
  }
}

// Numbers of ports stand at the ends of lines of single cables.
void number_ports(Picture& picture, const ShownSubnet& subnet) {
  if (picture.lines.size() > kNumbersShown) return;
  for (Line& line : picture.lines) {
    if (line.cables.size() != 1) continue;
    const TopologyEnd& end = line.cables.front();
    const ShownElement& upper = subnet.elements[end.element];
    const ShownPort& port = *upper.find_port(end.port);
    if (!upper.is_ideal) line.upper_port = fmt::to_string(port.number);
    line.lower_port = fmt::to_string(port.peer_port);
  }
}

void size_box(Box& box) {
  std::size_t letters = character_count(box.name) + 1;
  for (const std::string& text : box.texts) letters = std::max(letters, character_count(text));
  box.width = std::max(64.0, kLetter * static_cast<double>(letters) + 12);
  box.height = 22 + 13 * static_cast<double>(box.texts.size());
}

void size_boxes(Picture& picture) {
  std::vector<std::size_t> above(picture.boxes.size());
  std::vector<std::size_t> below(picture.boxes.size());
  bool has_numbers = false;
  for (const Line& line : picture.lines) {
    ++below[line.upper];
    ++above[line.lower];
    has_numbers = has_numbers || !line.lower_port.empty();
  }
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    Box& box = picture.boxes[i];
    size_box(box);
    if (!has_numbers || !picture.has_levels) continue;
    const double room = picture.lies ? kNumberWidth : kNumberHeight;
    const auto most = static_cast<double>(std::max(above[i], below[i]));
    box.numbers_above = above[i] != 0 ? room : 0;
    box.numbers_below = below[i] != 0 ? room : 0;
    if (picture.lies) {
      box.width += box.numbers_above + box.numbers_below;
      box.height = std::max(box.height, kLyingPortRoom * most + 6);
    } else {
      box.width = std::max(box.width, kPortRoom * most + 8);
      box.height += box.numbers_above + box.numbers_below;
    }
  }
}

bool has_wide_level(const Picture& picture) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const Box& box : picture.boxes) ++counts[box.level];
  return std::any_of(counts.begin(), counts.end(),
                     [](const auto& level) { return level.second > kMostAbreast; });
}

struct FoldedLevel {
  std::size_t elements = 0;
  std::size_t boxes = 0;
  void add(std::size_t more) {
    if (more == 0) return;
    elements += more;
    ++boxes;
  }
};

void tell_folded(Picture& picture, const ShownSubnet& subnet) {
  FoldedLevel adapters;
  FoldedLevel absorbed;
  std::map<std::uint32_t, FoldedLevel> switches;
  for (const Box& box : picture.boxes) {
    if (!box.is_folded()) continue;
    const auto count = static_cast<std::size_t>(
        std::count_if(box.members.begin(), box.members.end(),
                      [&](std::uint32_t member) { return subnet.elements[member].is_switch; }));
    (count == 0 ? adapters : absorbed).add(box.members.size() - count);
    if (count > 1) switches[picture.has_levels ? box.level : 0].add(count);
  }
  const auto tell = [&picture](const FoldedLevel& level, const char* one, const char* many,
                               const std::string& which = "") {
    if (level.elements == 0) return;
    picture.folded.push_back(fmt::format("{}{} share {}", counted_text(level.elements, one, many),
                                         which, counted_text(level.boxes, "box", "boxes")));
  };
  tell(adapters, "HCA", "HCAs");
  if (absorbed.elements != 0) {
    picture.folded.push_back(counted_text(absorbed.elements, "HCA is in the box of its switch",
                                          "HCAs are in the boxes of their switches"));
  }
  for (const auto& [level, count] : switches) {
    tell(count, "switch", "switches", level == 0 ? "" : fmt::format(" of level {}", level));
  }
}

}  // namespace

Picture make_picture(const ShownSubnet& subnet, bool is_live, const FoldingLimits& limits) {
  Picture picture;
  picture.is_live = is_live;
  const Levels levels = levels_of(subnet);
  const Folding folding = fold(subnet, levels, limits);
  picture.has_levels = levels.are_levels;
  picture.boxes.resize(folding.boxes);
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    Box& box = picture.boxes[folding.box[i]];
    box.members.push_back(i);
    box.level = std::max(box.level, levels.of[i]);
    (subnet.elements[i].is_switch ? box.has_switches : box.has_adapters) = true;
    box.is_ideal = box.is_ideal || subnet.elements[i].is_ideal;
  }
  picture.lies = picture.has_levels && has_wide_level(picture);
  picture.has_programs =
      is_live || std::any_of(subnet.elements.begin(), subnet.elements.end(),
                             [](const ShownElement& element) { return !element.programs.empty(); });
  make_lines(picture, subnet, folding.box);
  number_ports(picture, subnet);
  refresh(picture, subnet);
  size_boxes(picture);
  tell_folded(picture, subnet);
  return picture;
}

}  // namespace ib::fabric
