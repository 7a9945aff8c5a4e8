// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A line of a topology file, read from left to right, and the sentence that says where a file is
// wrong.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ib::fabric {

class TextLine {
 public:
  // `file`: a name for messages; empty: the one file that was read.
  TextLine(std::string_view text, std::string_view file, std::uint32_t number)
      : text_(text), file_(file), number_(number) {}

  std::string_view file() const { return file_; }
  std::uint32_t number() const { return number_; }
  std::size_t column() const { return at_; }  // 0-based
  bool is_over() const { return at_ == text_.size(); }
  std::string_view rest() const { return text_.substr(at_); }
  bool begins_with(std::string_view what) const { return rest().starts_with(what); }

  void skip_blanks();
  // Each moves on if it returns true, and stays if it returns false.
  bool take(std::string_view what);
  bool take_decimal(std::uint32_t& value);
  bool take_hex(std::uint64_t& value);      // with or without 0x; at most 64 bits
  bool take_integer(std::uint64_t& value);  // hexadecimal if it begins with 0x
  bool take_quoted(std::string_view& value);
  bool take_word(std::string_view& value);  // up to the next blank
  // Up to the last quotation mark of the line: the text may have some in it.
  bool take_quoted_to_last(std::string_view& value);

  // Malformed: what was expected here, or at a column, and what is there.
  Status expected(std::string_view what, std::string& reason) const {
    return expected_at(at_, what, reason);
  }
  Status expected_at(std::size_t column, std::string_view what, std::string& reason) const;
  // Malformed: another sentence.
  Status refuse(std::size_t column, std::string_view sentence, std::string& reason) const;

 private:
  std::string_view text_;
  std::string_view file_;
  std::uint32_t number_;
  std::size_t at_ = 0;
};

// "line 3", or "FILE, line 3".
std::string line_text(std::string_view file, std::uint32_t number);
// Takes the next line off a text, without its end. Returns false if there is none.
bool take_line(std::string_view& text, std::string_view& line);
// A piece of a file that may be shown: short and without control characters.
std::string shown(std::string_view text);

}  // namespace ib::fabric
