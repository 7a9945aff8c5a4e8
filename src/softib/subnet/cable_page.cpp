// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/subnet/cable_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ib::softib {
namespace {

// Why it is not up: an end that was taken down, or one that is silent.
std::string reason_of(const Json& cable) {
  for (const Json& end : list_of(cable, "ends")) {
    if (end.value("is_disabled", false)) return ": " + text_of(end, "text") + " was taken down";
  }
  return ": an end of it is silent";
}

}  // namespace

std::string cable_page(const Json& cable) {
  std::string text;
  bool waits = false;
  for (const Json& end : list_of(cable, "ends")) {
    text += (text.empty() ? "the cable between " : " and ") + text_of(end, "text");
    waits |= text_of(end, "state") == "init" || text_of(end, "state") == "armed";
  }
  const bool is_up = cable.value("is_up", false);
  return fmt::format("{} ({} {}) is {}{}", text, text_of(cable, "width"), text_of(cable, "speed"),
                     is_up ? "up" : "down",
                     is_up ? (waits ? ", and waits for a subnet manager" : "") : reason_of(cable));
}

std::optional<CableEndText> parse_cable_end(std::string_view text) {
  std::size_t at = text.rfind(':');
  if (at == std::string_view::npos && std::ranges::count(text, '/') == 2) at = text.rfind('/');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  CableEndText end{std::string(text.substr(0, at)), 0};
  const char* const last = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + at + 1, last, end.port);
  if (error != std::errc{} || rest != last) return std::nullopt;
  return end;
}

}  // namespace ib::softib
