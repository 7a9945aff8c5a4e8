// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// say("CQ ", 5, " has ", n, " users"): one text out of its parts. hex(n): "0x2a".
#pragma once

#include "base/buffers.h"

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace ib::drivers {

inline void say_part(std::string& text, std::string_view part) {
  text += part;
}
inline void say_part(std::string& text, const char* part) {
  text += part;
}
inline void say_part(std::string& text, char part) {
  text += part;
}
template <std::integral T>
void say_part(std::string& text, T part) {
  text += std::to_string(part);
}

template <class... Parts>
std::string say(const Parts&... parts) {
  std::string text;
  (say_part(text, parts), ...);
  return text;
}

inline std::string hex(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

// "3 queue pairs"; "" if there are none. For "is in use by ...": list(a, b, c).
inline std::string count_of(std::size_t n, std::string_view noun) {
  if (n == 0) return {};
  return say(n, ' ', noun, n == 1 ? "" : "s");
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
