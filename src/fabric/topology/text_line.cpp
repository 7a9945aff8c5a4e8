// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tokens of a line and messages about it.
#include "fabric/topology/preset_parts_internal.h"
#include "fabric/topology/text_line_internal.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::fabric {
namespace {

constexpr std::size_t kMostShown = 24;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

}  // namespace

void TextLine::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

bool TextLine::take(std::string_view what) {
  if (!begins_with(what)) return false;
  at_ += what.size();
  return true;
}

bool TextLine::take_decimal(std::uint32_t& value) {
  std::size_t end = at_;
  while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
  if (!parse_decimal(text_.substr(at_, end - at_), value)) return false;
  at_ = end;
  return true;
}

bool TextLine::take_hex(std::uint64_t& value) {
  std::size_t end = at_;
  if (begins_with("0x") || begins_with("0X")) end += 2;
  const std::size_t first = end;
  std::uint64_t sum = 0;
  while (end < text_.size() && hex_digit(text_[end]) >= 0) {
    if (sum >> 60 != 0) return false;
    sum = sum << 4 | static_cast<unsigned>(hex_digit(text_[end++]));
  }
  if (end == first) return false;
  value = sum;
  at_ = end;
  return true;
}

bool TextLine::take_integer(std::uint64_t& value) {
  if (begins_with("0x") || begins_with("0X")) return take_hex(value);
  std::uint32_t decimal = 0;
  if (!take_decimal(decimal)) return false;
  value = decimal;
  return true;
}

bool TextLine::take_quoted(std::string_view& value) {
  if (!begins_with("\"")) return false;
  const std::size_t end = text_.find('"', at_ + 1);
  if (end == std::string_view::npos) return false;
  value = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return true;
}

bool TextLine::take_quoted_to_last(std::string_view& value) {
  const std::size_t end = text_.rfind('"');
  if (!begins_with("\"") || end == at_) return false;
  value = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return true;
}

bool TextLine::take_word(std::string_view& value) {
  std::size_t end = at_;
  while (end < text_.size() && !is_blank(text_[end])) ++end;
  if (end == at_) return false;
  value = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

Status TextLine::expected_at(std::size_t column, std::string_view what, std::string& reason) const {
  const std::string_view there = text_.substr(std::min(column, text_.size()));
  const std::string found = there.empty() ? "the end of the line" : "'" + shown(there) + "'";
  return refuse(column, fmt::format("expected {}, found {}", what, found), reason);
}

Status TextLine::refuse(std::size_t column, std::string_view sentence, std::string& reason) const {
  reason = fmt::format("{}, column {}: {}", line_text(file_, number_), column + 1, sentence);
  return Status::Malformed;
}

std::string line_text(std::string_view file, std::uint32_t number) {
  if (file.empty()) return fmt::format("line {}", number);
  return fmt::format("{}, line {}", shown(file), number);
}

bool take_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

std::string shown(std::string_view text) {
  std::string piece(text.substr(0, kMostShown));
  if (piece.size() < text.size()) piece += "...";
  std::replace_if(
      piece.begin(), piece.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  return piece;
}

}  // namespace ib::fabric
