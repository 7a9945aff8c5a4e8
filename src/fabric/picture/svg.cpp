// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Last stage of a picture: boxes, lines, the way of a pair and the legend as SVG text, for a file
// or the page of softib/picture.
#include "fabric/picture/svg.h"

#include "fabric/picture/escape.h"
#include "fabric/picture/legend_internal.h"
#include "fabric/picture/wires.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

namespace ib::fabric {
namespace {

constexpr double kHeadingHeight = 30;
constexpr std::size_t kMany = 200;  // lines; with more, those without a fault are paler

class SvgWriter {
 public:
  SvgWriter(const Picture& picture, const std::string& title, SvgUse use)
      : picture_(picture), title_(title), is_page_(use == SvgUse::Page) {}

  std::string write() {
    const Legend legend = legend_of(picture_, is_page_);
    const double width = std::max(picture_.width, legend.width);
    shift_ = (width - picture_.width) / 2;
    const double height = kHeadingHeight + picture_.height + legend.height;
    // Within HTML the name space is known.
    put("<svg{2} class=\"picture\" id=\"picture\" role=\"img\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
        width, height, is_page_ ? "" : " xmlns=\"http://www.w3.org/2000/svg\"");
    if (!is_page_) put("<title>{}</title>\n<style>{}</style>\n", xml_text(title_), kSvgStyle);
    put("<rect class=\"paper\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", width, height);
    put("<text class=\"heading\" x=\"16\" y=\"22\">{}: <tspan id=\"summary\">{}</tspan></text>\n",
        xml_text(title_), xml_text(picture_.summary));
    put("<g transform=\"translate({:.1f} {:.0f})\">\n", shift_, kHeadingHeight);
    write_lines();
    for (std::size_t i = 0; i < picture_.boxes.size(); ++i) write_box(i);
    write_numbers();
    for (std::size_t i = 0; i < picture_.lines.size(); ++i) write_marks(i);
    out_ += "</g>\n";
    put("<g transform=\"translate(0 {:.0f})\">\n{}</g>\n</svg>\n", kHeadingHeight + picture_.height,
        legend.svg);
    return std::move(out_);
  }

 private:
  template <class... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  // Those with something to see last, above the others.
  void write_lines() {
    wires_ = wires_of(picture_);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < picture_.lines.size(); ++i) order.push_back(i);
    const auto rank = [this](std::size_t i) {
      const Line& line = picture_.lines[i];
      return std::pair(line.hop != 0 || line.has_errors, line.state);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    put("<g id=\"lines\"{}>\n", picture_.lines.size() > kMany ? " class=\"many\"" : "");
    for (const std::size_t i : order) write_line(i);
    out_ += "</g>\n";
  }

  void write_line(std::size_t number) {
    const Line& line = picture_.lines[number];
    const Wire& wire = wires_[number];
    const std::string way =
        fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", wire.from.x, wire.from.y, wire.to.x, wire.to.y);
    put("<g class=\"{}\" id=\"l{}\"><title>{}</title>", line_class(line), number,
        xml_text(line.title));
    if (line.hop != 0) put("<path class=\"halo\" d=\"{}\"/>", way);
    put("<path class=\"wire\" stroke-width=\"{:.1f}\" d=\"{}\"/>", line_width(line), way);
    if (is_page_) put("<path class=\"hit\" d=\"{}\"/>", way);
    out_ += "</g>\n";
  }

  // Of each line, above the boxes: what is not usual about it.
  void write_marks(std::size_t number) {
    const Line& line = picture_.lines[number];
    const bool has_any = line.state == LinkState::Down || line.has_errors || !line.note.empty();
    if (!is_page_ && !has_any && line.hop == 0) return;
    const Wire& wire = wires_[number];
    put("<g class=\"{}\" id=\"m{}\">", line_class(line), number);
    // Those of neighbours stand at different heights.
    const Point mark = wire.at(0.26 + 0.13 * static_cast<double>(number % 3));
    if (is_page_ || line.state == LinkState::Down) {
      put("<path class=\"cross\" d=\"M{:.1f} {:.1f}l10 10m0 -10l-10 10\"/>", mark.x - 5,
          mark.y - 5);
    }
    if (is_page_ || line.has_errors) write_bang({mark.x - 12, mark.y});
    if (is_page_ || !line.note.empty()) {
      put("<text class=\"note\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", mark.x + 8, mark.y - 5,
          xml_text(line.note));
    }
    if (line.hop != 0) write_step(line, wire);
    out_ += "</g>\n";
  }

  // A triangle with a gap: a port has errors.
  void write_bang(Point at) {
    put("<path class=\"bang\" fill-rule=\"evenodd\" "
        "d=\"M{:.1f} {:.1f}l7 12h-14zm-.8 4v4h1.6v-4zm0 5v1.6h1.6v-1.6z\"/>",
        at.x, at.y - 7);
  }

  // The number of a hop, and where it leads.
  void write_step(const Line& line, const Wire& wire) {
    const Point start = line.is_hop_upwards ? wire.to : wire.from;
    const Point end = line.is_hop_upwards ? wire.from : wire.to;
    const double length = std::max(1.0, length_of({end.x - start.x, end.y - start.y}));
    const Point ahead{(end.x - start.x) / length, (end.y - start.y) / length};
    const Point at = line.is_hop_upwards ? wire.at(0.8) : wire.at(0.2);
    put("<g class=\"step\"><path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}z\"/>",
        at.x + ahead.x * 16, at.y + ahead.y * 16, at.x - ahead.y * 6, at.y + ahead.x * 6,
        at.x + ahead.y * 6, at.y - ahead.x * 6);
    put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"8\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text></g>",
        at.x, at.y, at.x, at.y + 3.4, line.hop);
  }

  void write_box(std::size_t number) {
    const Box& box = picture_.boxes[number];
    const double left = box.x - box.width / 2;
    const double top = box.y - box.height / 2;
    put("<g class=\"{}\" id=\"b{}\">", box_class(box), number);
    const auto rectangle = [&](double aside) {
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\"/>",
          left + aside, top - aside, box.width, box.height);
    };
    if (box.is_folded()) {
      rectangle(5);
      rectangle(2.5);
    }
    rectangle(0);
    // In the middle of what the numbers of ports leave.
    const double aside = (box.numbers_above - box.numbers_below) / 2;
    const double x = box.x + (picture_.lies ? aside : 0);
    double y =
        box.y + (picture_.lies ? 0 : aside) + 4 - 6.5 * static_cast<double>(box.texts.size());
    put("<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x, y, xml_text(box.name));
    const bool has_programs = picture_.has_programs && box.has_adapters;
    for (std::size_t i = 0; i < box.texts.size(); ++i) {
      y += 13;
      if (!is_page_ && box.texts[i].empty()) continue;
      put("<text{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
          i + 1 == box.texts.size() && has_programs ? " class=\"programs\"" : "", x, y,
          xml_text(box.texts[i]));
    }
    if (is_page_ || box.has_errors) write_bang({left + box.width - 1, top + 2});
    out_ += "</g>\n";
  }

  // By levels inside of the boxes; else beside them, along the lines.
  void write_numbers() {
    for (std::size_t i = 0; i < picture_.lines.size(); ++i) {
      const Line& line = picture_.lines[i];
      const Wire& wire = wires_[i];
      if (picture_.lies) {
        write_number({wire.from.x - 8, wire.from.y + 3}, line.upper_port);
        write_number({wire.to.x + 8, wire.to.y + 3}, line.lower_port);
        continue;
      }
      if (picture_.has_levels) {
        write_number({wire.from.x, wire.from.y - 3}, line.upper_port);
        write_number({wire.to.x, wire.to.y + 9}, line.lower_port);
        continue;
      }
      const double length =
          std::max(24.0, length_of({wire.to.x - wire.from.x, wire.to.y - wire.from.y}));
      const Point near = wire.at(10 / length);
      const Point far = wire.at(1 - 10 / length);
      write_number({near.x, near.y + 3}, line.upper_port);
      write_number({far.x, far.y + 3}, line.lower_port);
    }
  }

  void write_number(Point at, const std::string& number) {
    if (number.empty()) return;
    put("<text class=\"port{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        picture_.has_levels ? "" : " note", at.x, at.y, number);
  }

  const Picture& picture_;
  const std::string& title_;
  bool is_page_;
  double shift_ = 0;
  std::vector<Wire> wires_;
  std::string out_;
};

}  // namespace

std::string box_class(const Box& box) {
  std::string text = "box";
  if (box.is_ideal) text += " ideal";
  if (box.has_switches) text += " switch";
  text += fmt::format(" {}", link_state_name(box.state));
  if (!box.is_there) text += " gone";
  if (box.has_errors) text += " errors";
  if (box.is_on_route) text += " route";
  return text;
}

std::string line_class(const Line& line) {
  return fmt::format("line {}{}{}", link_state_name(line.state), line.has_errors ? " errors" : "",
                     line.hop != 0 ? " hop" : "");
}

double line_width(const Line& line) {
  return 1.4 + 5.6 * line.load + (line.state == LinkState::Active ? 0 : 0.8);
}

std::string svg_of(const Picture& picture, const std::string& title, SvgUse use) {
  return SvgWriter(picture, title, use).write();
}

}  // namespace ib::fabric
