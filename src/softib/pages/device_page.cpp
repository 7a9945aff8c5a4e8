// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/device_page.h"

#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ib::softib {
namespace {

// Ids of HCAs have 49; with state and drivers they are just 80.
constexpr std::size_t kWidestName = 50;

std::string joined(const Json& list, const char* separator) {
  std::string text;
  for (const Json& item : list) {
    if (!text.empty()) text += separator;
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

// "soft_hca + ib_bus"; raw devices need none.
std::string drivers_of(const Json& node) {
  std::string text = text_of(node, "driver", "");
  const std::string filters = joined(list_of(node, "filters"), " + ");
  if (!filters.empty()) text += (text.empty() ? "" : " + ") + filters;
  return text;
}

std::size_t widest_name(const Json& node, std::size_t depth) {
  std::size_t width = 2 * depth + text_of(node, "id").size();
  if (width > kWidestName) width = 0;
  for (const Json& child : list_of(node, "children")) {
    width = std::max(width, widest_name(child, depth + 1));
  }
  return width;
}

// `text` behind `indent` blanks, in as many lines as needed.
std::string lines(std::size_t indent, const std::string& text) {
  return wrap_words(std::string(indent, ' ') + text, kColumns, indent + 2) + "\n";
}

// "812, 1485 (2 times)": softibd opens an HCA for each client that a driver is.
std::string pids_of(const Json& files) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const Json& pid : files) ++counts[pid.is_number_unsigned() ? pid.get<std::uint64_t>() : 0];
  std::string text;
  for (const auto& [pid, count] : counts) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", pid,
                        count == 1 ? "" : fmt::format(" ({} times)", count));
  }
  return text;
}

std::string state_cell(const Json& node) {
  const std::string power = text_of(node, "power");
  return fmt::format("{:<11}", text_of(node, "state") + (power == "D0" ? "" : ", " + power));
}

class DevicesPage {
 public:
  DevicesPage(std::size_t name_width, bool with_ids) : width_(name_width), with_ids_(with_ids) {}

  void add(const Json& node, std::size_t depth) {
    const std::string name = std::string(2 * depth, ' ') + text_of(node, "id");
    const bool fits = name.size() <= width_;
    text_ += fits ? fmt::format("{:<{}}", name, width_) : name + "\n" + std::string(width_, ' ');
    const std::string state = state_cell(node);
    const bool failed = text_of(node, "state") == "failed";
    text_ += " " + (failed ? painted(Paint::Bad, state) : state);
    add_rest(node, width_ + 1 + state.size());
    const std::size_t indent = 2 * depth + 4;
    if (const std::string note = text_of(node, "note", ""); !note.empty()) {
      text_ += lines(indent, note);
    }
    if (failed) text_ += lines(indent, text_of(node, "problem"));
    if (with_ids_) {
      text_ += lines(indent, text_of(node, "description") + "; " + text_of(node, "location"));
      text_ += lines(indent, "hardware ids: " + joined(list_of(node, "hardware_ids"), ", "));
      text_ += lines(indent, "compatible ids: " + joined(list_of(node, "compatible_ids"), ", "));
    }
    for (const Json& child : list_of(node, "children")) add(child, depth + 1);
  }
  void say(const std::string& text) { text_ += text; }
  const std::string& text() const { return text_; }

 private:
  // Drivers and users: on the same line if there is room.
  void add_rest(const Json& node, std::size_t column) {
    std::string rest = drivers_of(node);
    if (const Json& files = list_of(node, "open_files"); !files.empty()) {
      rest += (rest.empty() ? "" : "  ") + fmt::format("(open: pid {})", pids_of(files));
    }
    if (column + 1 + rest.size() <= kColumns) {
      text_ += (rest.empty() ? "" : " " + rest) + "\n";
    } else {
      text_ += "\n" + lines(std::min(width_ + 1, kColumns / 2), rest);
    }
  }

  std::size_t width_;
  bool with_ids_;
  std::string text_;
};

}  // namespace

std::string devices_page(const Json& state, bool with_ids) {
  const Json tree = state.value("tree", Json::object());
  const Json& leaving = list_of(state, "leaving");
  std::size_t width = widest_name(tree, 0);
  for (const Json& node : leaving) width = std::max(width, widest_name(node, 0));
  DevicesPage page(width, with_ids);
  page.add(tree, 0);
  if (!leaving.empty())
    page.say("\n" + painted(Paint::Warning, "Pulled out, still in use:") + "\n");
  for (const Json& node : leaving) page.add(node, 0);
  return page.text();
}

std::string drivers_page(const Json& drivers) {
  std::size_t width = 8;
  for (const Json& driver : drivers) width = std::max(width, text_of(driver, "name").size());
  width = std::min(width, kColumns / 2);
  const auto row = [width](const std::string& name, const std::string& kind,
                           const std::string& state, const std::string& held) {
    return fmt::format("{:<{}}  {:<8}  {:<8}  {}", name, width, kind, state, held);
  };
  std::string text = painted(Paint::Heading, row("DRIVER", "KIND", "STATE", "HELD BY")) + "\n";
  for (const Json& driver : drivers) {
    const std::string line = row(text_of(driver, "name"), text_of(driver, "kind"),
                                 text_of(driver, "state"), text_of(driver, "references", ""));
    text += wrap_words(line, kColumns, width + 2) + "\n";
    text += lines(4, "ids: " + joined(list_of(driver, "ids"), ", "));
  }
  return text;
}

}  // namespace ib::softib
