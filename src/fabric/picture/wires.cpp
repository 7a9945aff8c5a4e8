// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/picture/wires.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

namespace ib::fabric {

double length_of(Point difference) {
  return std::sqrt(difference.x * difference.x + difference.y * difference.y);
}
namespace {

constexpr double kBetween = 9;  // lines that join the same boxes

// The lines at one side of a box, in the order of what they lead to.
void spread(const Picture& picture, std::uint32_t box_number, std::vector<std::size_t>& lines,
            bool is_lower_side, std::vector<Wire>& wires) {
  const auto other = [&](std::size_t i) {
    const Line& line = picture.lines[i];
    const Box& box = picture.boxes[is_lower_side ? line.lower : line.upper];
    return picture.lies ? box.y : box.x;
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](std::size_t a, std::size_t b) { return other(a) < other(b); });
  const Box& box = picture.boxes[box_number];
  const auto count = static_cast<double>(lines.size());
  const double room = picture.lies ? kLyingPortRoom : kPortRoom;
  const double step = std::min(room, ((picture.lies ? box.height : box.width) - 8) / count);
  const double depth = (picture.lies ? box.width : box.height) / 2 * (is_lower_side ? 1 : -1);
  double along = -step * (count - 1) / 2;
  for (const std::size_t i : lines) {
    (is_lower_side ? wires[i].from : wires[i].to) =
        picture.lies ? Point{box.x + depth, box.y + along} : Point{box.x + along, box.y + depth};
    along += step;
  }
}

std::vector<Wire> wires_by_levels(const Picture& picture) {
  std::vector<Wire> wires(picture.lines.size());
  std::vector<std::vector<std::size_t>> above(picture.boxes.size());
  std::vector<std::vector<std::size_t>> below(picture.boxes.size());
  for (std::size_t i = 0; i < picture.lines.size(); ++i) {
    below[picture.lines[i].upper].push_back(i);
    above[picture.lines[i].lower].push_back(i);
  }
  for (std::uint32_t box = 0; box < picture.boxes.size(); ++box) {
    if (!below[box].empty()) spread(picture, box, below[box], true, wires);
    if (!above[box].empty()) spread(picture, box, above[box], false, wires);
  }
  return wires;
}

// Where the way from the middle of a box into a direction leaves it.
Point border_of(const Box& box, Point start, Point direction) {
  double part = 1;
  if (direction.x != 0) part = std::min(part, box.width / 2 / std::abs(direction.x));
  if (direction.y != 0) part = std::min(part, box.height / 2 / std::abs(direction.y));
  return {start.x + direction.x * part, start.y + direction.y * part};
}

Wire straight_wire(const Box& from, const Box& to, double aside) {
  const Point direction{to.x - from.x, to.y - from.y};
  const double length = std::max(1.0, length_of(direction));
  const Point offset{-direction.y / length * aside, direction.x / length * aside};
  return {border_of(from, {from.x + offset.x, from.y + offset.y}, direction),
          border_of(to, {to.x + offset.x, to.y + offset.y}, {-direction.x, -direction.y})};
}

}  // namespace

std::vector<Wire> wires_of(const Picture& picture) {
  if (picture.has_levels) return wires_by_levels(picture);
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> counts;
  for (const Line& line : picture.lines) counts[std::minmax(line.upper, line.lower)] += 1;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> seen;
  std::vector<Wire> wires;
  for (const Line& line : picture.lines) {
    const std::pair<std::uint32_t, std::uint32_t> pair = std::minmax(line.upper, line.lower);
    double aside = kBetween * (seen[pair] - (counts[pair] - 1) / 2);
    seen[pair] += 1;
    if (line.upper > line.lower) aside = -aside;  // the direction is the other one
    wires.push_back(straight_wire(picture.boxes[line.upper], picture.boxes[line.lower], aside));
  }
  return wires;
}

}  // namespace ib::fabric
