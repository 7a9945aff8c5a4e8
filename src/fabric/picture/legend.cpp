// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/picture/escape.h"
#include "fabric/picture/legend_internal.h"
#include "fabric/picture/looks_internal.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::fabric {
namespace {

constexpr double kWidest = 720;
constexpr double kRow = 22;
constexpr double kSample = 34;  // width of what is explained
constexpr double kLetter = 6.9;

class LegendWriter {
 public:
  void item(const std::string& sample, const std::string& words) {
    const double width = kSample + 8 + kLetter * static_cast<double>(character_count(words)) + 16;
    if (x_ + width > kWidest && x_ > kLeft) {
      x_ = kLeft;
      y_ += kRow;
    }
    svg_ += fmt::format(
        "<g transform=\"translate({:.0f} {:.0f})\">{}<text x=\"{:.0f}\" y=\"4\">{}"
        "</text></g>\n",
        x_, y_, sample, kSample + 8, xml_text(words));
    x_ += width;
    widest_ = std::max(widest_, x_);
  }
  // `id`: of a text that a script replaces.
  void sentence(const std::string& words, const char* id = "") {
    x_ = kLeft;
    y_ += kRow - 4;
    const std::string named = *id == 0 ? std::string() : fmt::format(" id=\"{}\"", id);
    svg_ += fmt::format("<text{} x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", named, kLeft, y_ + 4,
                        xml_text(words));
    widest_ = std::max(widest_, kLeft + kLetter * static_cast<double>(character_count(words)));
  }
  Legend take() { return {std::move(svg_), widest_ + kLeft, y_ + kRow}; }

 private:
  static constexpr double kLeft = 16;
  std::string svg_;
  double x_ = kLeft, y_ = 10, widest_ = 0;
};

std::string line_sample(const char* kind, const char* more = "") {
  return fmt::format(
      "<g class=\"line {}\"><path class=\"wire\" stroke-width=\"2.2\" d=\"M0 0H34\"/>"
      "{}</g>",
      kind, more);
}

}  // namespace

Legend legend_of(const Picture& picture, bool all) {
  LegendWriter legend;
  legend.item(line_sample("active"), "active");
  legend.item(line_sample("armed"), "armed");
  legend.item(line_sample("init"), "init");
  legend.item(line_sample("down", "<path class=\"cross\" d=\"M12 -5l10 10m0 -10l-10 10\"/>"),
              "down");
  legend.item(
      "<g class=\"errors\"><path class=\"bang\" fill-rule=\"evenodd\" "
      "d=\"M17 -7l7 12h-14zm-.8 4v4h1.6v-4zm0 5v1.6h1.6v-1.6z\"/></g>",
      picture.is_live ? "errors of the last 10 s" : "errors were counted");
  if (!picture.route_text.empty()) {
    legend.item("<path class=\"halo\" d=\"M0 0H34\"/>", picture.route_text);
  }
  const auto is_folded = [](const Box& box) { return box.is_folded(); };
  if (std::any_of(picture.boxes.begin(), picture.boxes.end(), is_folded)) {
    legend.item(
        "<g class=\"box\"><rect x=\"6\" y=\"-9\" width=\"22\" height=\"14\" rx=\"3\"/>"
        "<rect x=\"3\" y=\"-6\" width=\"22\" height=\"14\" rx=\"3\"/></g>",
        "several in one box");
  }
  if (all || picture.hottest != 0) {
    legend.item(
        "<g class=\"line active\"><path class=\"wire\" stroke-width=\"6\" d=\"M0 0H34\"/></g>",
        "thicker: more data");
  }
  if (all || picture.hottest != 0) {
    legend.sentence(hottest_text(picture), "hottest");
  }
  if (!picture.usual_rate.empty()) {
    legend.sentence(fmt::format("Links are {} where nothing else is said.",
                                clean_text(picture.usual_rate, 12)));
  }
  for (const std::string& folded : picture.folded) legend.sentence("Folded: " + folded + ".");
  return legend.take();
}

std::string hottest_text(const Picture& picture) {
  return picture.hottest == 0 ? "No link has carried 64 KiB."
                              : fmt::format("The link with the most data has carried {}.",
                                            data_text(picture.hottest));
}

}  // namespace ib::fabric
