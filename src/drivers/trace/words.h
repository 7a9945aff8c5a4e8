// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Words that many texts need; the texts themselves are fmt's.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ib::drivers {

// "00fe" for 254 and width 4.
inline std::string digits(std::uint64_t value, int width) {
  return fmt::format("{:0{}x}", value, width);
}

// "3 queue pairs"; "" if there are none. For "is in use by ...": list(a, b, c).
inline std::string count_of(std::size_t n, std::string_view noun) {
  if (n == 0) return {};
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}
template <class... Texts>
std::string list(const Texts&... texts) {
  std::string all;
  const auto add = [&all](std::string_view text) {
    if (text.empty()) return;
    if (!all.empty()) all += ", ";
    all += text;
  };
  (add(texts), ...);
  return all;
}

// The text in a fixed array of a public structure, which need not be terminated.
template <std::size_t N>
std::string_view text_in(const std::array<char, N>& chars) {
  const std::string_view all(chars.data(), N);
  return all.substr(0, all.find('\0'));
}
}  // namespace ib::drivers
