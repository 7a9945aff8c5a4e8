// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The names of widths and speeds of links, as ibnetdiscover prints them: "4x" and "QDR".
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ib::fabric {

using LinkName = std::pair<std::uint8_t, std::string_view>;
inline constexpr std::array<LinkName, 5> kWidthNames{
    {{1, "1x"}, {2, "4x"}, {4, "8x"}, {8, "12x"}, {16, "2x"}}};
inline constexpr std::array<LinkName, 8> kSpeedNames{{{1, "SDR"},
                                                      {2, "DDR"},
                                                      {4, "QDR"},
                                                      {8, "FDR10"},
                                                      {16, "FDR"},
                                                      {32, "EDR"},
                                                      {64, "HDR"},
                                                      {128, "NDR"}}};

// Of a code of fabric::Port. Returns an empty name if the code has none.
constexpr std::string_view width_name(std::uint8_t width) {
  for (const auto& [code, name] : kWidthNames) {
    if (code == width) return name;
  }
  return {};
}
constexpr std::string_view speed_name(std::uint8_t speed) {
  for (const auto& [code, name] : kSpeedNames) {
    if (code == speed) return name;
  }
  return {};
}

// Returns the code; 0 if there is no such name.
constexpr std::uint8_t width_code(std::string_view text) {
  for (const auto& [code, name] : kWidthNames) {
    if (name == text) return code;
  }
  return 0;
}
constexpr std::uint8_t speed_code(std::string_view text) {
  for (const auto& [code, name] : kSpeedNames) {
    if (name == text) return code;
  }
  return 0;
}

// Of the Gb/s of a lane, as ibutils writes them: "2.5", "10". Returns 0 if there is no such speed.
constexpr std::uint8_t rate_code(std::string_view text) {
  constexpr std::array<LinkName, 7> kRates{
      {{1, "2.5"}, {2, "5"}, {4, "10"}, {16, "14"}, {32, "25"}, {64, "50"}, {128, "100"}}};
  for (const auto& [code, name] : kRates) {
    if (name == text) return code;
  }
  return 0;
}

}  // namespace ib::fabric
