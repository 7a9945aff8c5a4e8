// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A part of a document that tests write from a rule, and compare with it: the lines between two
// marker lines. And a table for it, of operations under conditions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace ib::drivers::test {

class GeneratedPart {
 public:
  // `write_command` is what writes it again.
  GeneratedPart(const char* path, const char* begin, const char* end, const char* write_command)
      : path_(path), begin_(begin), end_(end), write_command_(write_command) {}

  // The part has these lines; with SOFTIB_WRITE_MATRIX in the environment it gets them first.
  void expect(const std::vector<std::string>& lines) const {
    if (std::getenv("SOFTIB_WRITE_MATRIX") != nullptr) write(lines);
    const std::vector<std::string> document = read();
    ASSERT_EQ(document.size(), lines.size()) << write_command_;
    for (std::size_t i = 0; i < document.size(); ++i) {
      EXPECT_EQ(document[i], lines[i]) << write_command_;
    }
  }

 private:
  std::vector<std::string> whole() const {
    std::ifstream file(path_);
    EXPECT_TRUE(file) << "cannot read " << path_;
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  std::vector<std::string> read() const {
    const std::vector<std::string> all = whole();
    const auto begin = std::find(all.begin(), all.end(), begin_);
    const auto end = std::find(all.begin(), all.end(), end_);
    EXPECT_TRUE(begin < end && end != all.end()) << "the marker lines are gone from " << path_;
    return begin < end ? std::vector<std::string>(begin + 1, end) : std::vector<std::string>();
  }
  void write(const std::vector<std::string>& lines) const {
    const std::vector<std::string> all = whole();
    std::ofstream file(path_);
    bool outside = true;
    for (const std::string& line : all) {
      if (line == end_) outside = true;
      if (outside) file << line << '\n';
      if (line != begin_) continue;
      outside = false;
      for (const std::string& made : lines) file << made << '\n';
    }
    EXPECT_TRUE(file.flush()) << "cannot write " << path_;
  }

  const char* path_;
  const char* begin_;
  const char* end_;
  const char* write_command_;
};

// Appends a heading and a table: a row for each operation (its `name`), a column for each condition
// (its `title`), and cell(operation, condition) in them.
template <class Operations, class Columns, class Cell>
void append_table(std::vector<std::string>& lines, const std::string& heading,
                  const Operations& operations, const Columns& columns, Cell cell) {
  std::string titles = "| request";
  std::string rule = "|---";
  for (const auto& column : columns) {
    titles += std::string(" | ") + column.title;
    rule += "|---";
  }
  lines.insert(lines.end(), {"", heading, "", titles + " |", rule + "|"});
  for (const auto& operation : operations) {
    std::string row = std::string("| ") + operation.name;
    for (const auto& column : columns) row += " | " + cell(operation, column.condition);
    lines.push_back(row + " |");
  }
}

}  // namespace ib::drivers::test
