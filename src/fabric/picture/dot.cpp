// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Boxes go to Graphviz as numbers and sizes, and come back as places; svg.cpp draws what is at
// them. Text of elements is written for `-o FILE.dot` only.
#include "fabric/picture/dot.h"

#include "fabric/picture/escape.h"
#include "fabric/picture/looks_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace ib::fabric {
namespace {

constexpr double kPointsPerInch = 72;
constexpr std::size_t kNeatoMost = 60;  // boxes
constexpr double kMargin = 24;          // points around the boxes
constexpr int kStraight = 20;           // weight of lines to adapters, which are to be straight

struct DotStyle {
  const char* color;
  const char* style;
};

// Colours that colour-blind people tell apart [Okabe, Ito], and a style for each state.
DotStyle dot_style(LinkState state) {
  switch (state) {
    case LinkState::Active: return {"#009E73", "solid"};
    case LinkState::Armed: return {"#0072B2", "dashed"};
    case LinkState::Init: return {"#E69F00", "dotted"};
    case LinkState::Down: return {"#D55E00", "dashed,bold"};
  }
  return {"#000000", "solid"};
}

std::string box_label(const Box& box) {
  std::string label = dot_text(box.name);
  for (const std::string& text : box.texts) {
    if (!text.empty()) label += "\\n" + dot_text(text);
  }
  return label;
}

void write_box(std::string& out, const Box& box, std::size_t number) {
  const char* fill = box.is_ideal ? "#F5F5F5" : box.has_switches ? "#DCE9F5" : "#FFFFFF";
  const bool is_well = box.is_there && box.state == LinkState::Active;
  fmt::format_to(std::back_inserter(out),
                 "  b{} [width={:.3f}, height={:.3f}, label=\"{}\", fillcolor=\"{}\", "
                 "style=\"filled,rounded{}\", peripheries={}, color=\"{}\", penwidth={}];\n",
                 number, box.width / kPointsPerInch, box.height / kPointsPerInch, box_label(box),
                 fill, is_well ? "" : ",dashed", box.is_folded() ? 2 : 1,
                 box.is_there ? dot_style(box.state).color : "#808080", box.is_on_route ? 3 : 1);
}

void write_line(std::string& out, const Line& line) {
  const DotStyle style = dot_style(line.state);
  const auto quoted = [&out](const char* name, const std::string& text) {
    if (text.empty()) return;
    fmt::format_to(std::back_inserter(out), ", {}=\"{}\"", name, dot_text(text));
  };
  fmt::format_to(std::back_inserter(out),
                 "  b{} -- b{} [color=\"{}\", style=\"{}\", penwidth={:.1f}", line.upper,
                 line.lower, style.color, style.style, (line.hop != 0 ? 4 : 1) + 4 * line.load);
  quoted("taillabel", line.upper_port);
  quoted("headlabel", line.lower_port);
  quoted("xlabel", line.note);
  quoted("tooltip", line.title);
  out += "];\n";
}

// Boxes of one level stand in one row also if no cable says so.
void write_levels(std::string& out, const Picture& picture) {
  std::map<std::uint32_t, std::string> levels;
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    levels[picture.boxes[i].level] += fmt::format(" b{};", i);
  }
  for (const auto& [level, boxes] : levels) {
    fmt::format_to(std::back_inserter(out), "  {{ rank=same;{} }}\n", boxes);
  }
}

// The words of a line of -Tplain that are no texts of ours.
std::vector<std::string_view> words_of(std::string_view line, std::size_t most) {
  std::vector<std::string_view> words;
  while (words.size() < most && !line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end != 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

// "node b3 1.5 2.25 ...": the middle of box 3, in inches.
void take_place(Picture& picture, std::string_view line, std::vector<bool>& is_placed) {
  const std::vector<std::string_view> words = words_of(line, 4);
  if (words.size() < 4 || words[0] != "node" || !words[1].starts_with('b')) return;
  const auto number = number_in<std::size_t>(words[1].substr(1));
  const auto x = number_in<double>(words[2]);
  const auto y = number_in<double>(words[3]);
  if (!number || *number >= picture.boxes.size() || !x || !y) return;
  constexpr double kFarthest = 1e5;  // inches
  if (!(std::abs(*x) < kFarthest && std::abs(*y) < kFarthest)) return;
  picture.boxes[*number].x = *x * kPointsPerInch;
  picture.boxes[*number].y = -*y * kPointsPerInch;
  is_placed[*number] = true;
}

// Boxes of a level that lead to the same boxes may change places: they get their own order.
void order_twins(Picture& picture) {
  std::vector<std::vector<std::uint32_t>> neighbours(picture.boxes.size());
  for (const Line& line : picture.lines) {
    neighbours[line.upper].push_back(line.lower);
    neighbours[line.lower].push_back(line.upper);
  }
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::vector<std::size_t>> twins;
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    std::sort(neighbours[i].begin(), neighbours[i].end());
    twins[{picture.boxes[i].level, neighbours[i]}].push_back(i);
  }
  for (const auto& [key, boxes] : twins) {
    std::vector<std::pair<double, double>> places;
    for (const std::size_t i : boxes) {
      const Box& box = picture.boxes[i];
      places.emplace_back(picture.lies ? box.y : box.x, picture.lies ? box.x : box.y);
    }
    std::sort(places.begin(), places.end());
    for (std::size_t k = 0; k < boxes.size(); ++k) {
      Box& box = picture.boxes[boxes[k]];
      (picture.lies ? box.y : box.x) = places[k].first;
      (picture.lies ? box.x : box.y) = places[k].second;
    }
  }
}

}  // namespace

const char* layout_program(const Picture& picture) {
  if (picture.has_levels) return "dot";
  return picture.boxes.size() <= kNeatoMost ? "neato" : "sfdp";
}

std::string dot_of(const Picture& picture, DotUse use) {
  std::string out = "// " + picture.summary + "\n";
  for (const std::string& folded : picture.folded) out += "// " + folded + "\n";
  const bool has_many_lines = picture.lines.size() > 300;
  fmt::format_to(std::back_inserter(out),
                 "graph subnet {{\n"
                 "  layout=\"{}\"; splines=\"{}\"; overlap=\"false\"; sep=\"+16\"; ranksep=\"{}\"; "
                 "rankdir=\"{}\"; nodesep=\"0.15\"; outputorder=\"edgesfirst\";\n"
                 "  node [shape=box, fixedsize=true, fontname=\"DejaVu Sans\", fontsize=11];\n"
                 "  edge [fontname=\"DejaVu Sans\", fontsize=9{}];\n",
                 layout_program(picture), use == DotUse::Places ? "false" : "line",
                 has_many_lines ? "4"
                 : picture.lies ? "1.6"
                                : "1.1",
                 picture.lies ? "LR" : "TB", picture.has_levels ? "" : ", len=2.2");
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    if (use == DotUse::Picture) {
      write_box(out, picture.boxes[i], i);
    } else {
      fmt::format_to(std::back_inserter(out), "  b{} [width={:.3f}, height={:.3f}, label=\"\"];\n",
                     i, picture.boxes[i].width / kPointsPerInch,
                     picture.boxes[i].height / kPointsPerInch);
    }
  }
  if (picture.has_levels) write_levels(out, picture);
  for (const Line& line : picture.lines) {
    if (use == DotUse::Picture) {
      write_line(out, line);
    } else {
      fmt::format_to(std::back_inserter(out), "  b{} -- b{} [weight={}];\n", line.upper, line.lower,
                     picture.boxes[line.lower].level == 0 ? kStraight : 1);
    }
  }
  return out + "}\n";
}

Status place_boxes(Picture& picture, std::string_view plain) {
  std::vector<bool> is_placed(picture.boxes.size());
  while (!plain.empty()) {
    const std::size_t end = std::min(plain.find('\n'), plain.size());
    take_place(picture, plain.substr(0, end), is_placed);
    plain.remove_prefix(std::min(end + 1, plain.size()));
  }
  if (std::find(is_placed.begin(), is_placed.end(), false) != is_placed.end()) {
    return Status::Malformed;
  }
  if (picture.has_levels) order_twins(picture);
  double left = std::numeric_limits<double>::max();
  double top = left;
  for (const Box& box : picture.boxes) {
    left = std::min(left, box.x - box.width / 2);
    top = std::min(top, box.y - box.height / 2);
  }
  picture.width = picture.height = 0;
  for (Box& box : picture.boxes) {
    box.x += kMargin - left;
    box.y += kMargin - top;
    picture.width = std::max(picture.width, box.x + box.width / 2 + kMargin);
    picture.height = std::max(picture.height, box.y + box.height / 2 + kMargin);
  }
  return Status::Ok;
}

}  // namespace ib::fabric
