// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/picture/escape.h"

#include <cstdint>
#include <optional>

namespace ib::fabric {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Character {
  std::uint32_t code = 0;
  std::size_t size = 1;
};

// The first character; nothing if it is not UTF-8 [RFC 3629].
std::optional<Character> first_character(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return Character{first, 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return std::nullopt;
  std::uint32_t code = first & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[size] || code > 0x10ffff) return std::nullopt;
  return Character{code, size};
}

// No control of a terminal, no separator of lines, no mark of direction, and a character of XML.
bool is_shown(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  if (code >= 0xd800 && code < 0xe000) return false;
  if (code >= 0x200b && code <= 0x200f) return false;
  if (code >= 0x2028 && code <= 0x202e) return false;
  if (code >= 0x2060 && code <= 0x206f) return false;
  return code != 0x61c && code != 0xfeff && (code & 0xfffe) != 0xfffe;
}

}  // namespace

std::string clean_text(std::string_view text, std::size_t most) {
  std::string clean;
  std::size_t count = 0;
  while (!text.empty()) {
    if (count++ == most) return clean + "...";
    const std::optional<Character> next = first_character(text);
    const std::size_t size = next ? next->size : 1;
    const bool is_kept = next && is_shown(next->code);
    clean += is_kept ? text.substr(0, size) : kReplacement;
    text.remove_prefix(size);
  }
  return clean;
}

std::size_t character_count(std::string_view clean) {
  std::size_t count = 0;
  for (const char c : clean) count += (static_cast<unsigned char>(c) & 0xc0u) != 0x80 ? 1 : 0;
  return count;
}

std::string xml_text(std::string_view clean) {
  std::string out;
  for (const char c : clean) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string dot_text(std::string_view clean) {
  std::string out;
  for (const char c : clean) {
    // Graphviz reads entities as HTML does, and a backslash as the begin of an escape.
    if (c == '&') {
      out += "&amp;";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string json_in_html(std::string_view json) {
  std::string out;
  for (const char c : json) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace ib::fabric
