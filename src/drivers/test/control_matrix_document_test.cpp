// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/test/control_matrix_document_test.h"

#include "base/result.h"
#include "base/test/source_files_test.h"
#include "drivers/test/control_matrix_case_test.h"
#include "drivers/test/generated_part_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>

namespace ib::drivers::test {
namespace {

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Returns every name of a status in the text.
std::set<std::string> statuses_in(std::string_view text) {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (std::uint32_t i = 0; i < kStatusCount; ++i) all.insert(status_name(Status{i}));
    return all;
  }();
  std::set<std::string> found;
  std::string word;
  for (const char c : std::string(text) + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (names.contains(word)) found.insert(word);
    word.clear();
  }
  return found;
}

// Returns the name of the enumerator that a line defines ("  CreateQp = 75,"), or an empty string.
std::string enumerator_in(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  const std::size_t equals = line.find(" = ");
  const bool is_one = begin == 2 && equals != std::string::npos && line.ends_with(",");
  return is_one ? line.substr(begin, equals - begin) : std::string();
}

std::string_view comment_in(std::string_view line) {
  const std::size_t begin = line.find("//");
  return begin != std::string_view::npos ? line.substr(begin + 2) : std::string_view();
}

}  // namespace

DocumentedErrors::DocumentedErrors() {
  std::string block;
  std::set<std::string> group;
  bool in_general = false;
  bool in_codes = false;
  for (const std::string& line : lines_of(ib::test::kControlHeader)) {
    in_general = (in_general || line.find("Errors that any request") != std::string::npos) &&
                 line.starts_with("//");
    if (in_general) by_code_[""].merge(statuses_in(line));
    in_codes = in_codes || line.starts_with("enum class Code");
    if (!in_codes) continue;
    if (const std::string code = enumerator_in(line); !code.empty()) {
      const std::size_t own = block.find('!');
      by_code_[code] =
          own != std::string::npos ? statuses_in(block.substr(own)) : std::set<std::string>();
      by_code_[code].insert(group.begin(), group.end());
      block.clear();
    } else if (!comment_in(line).empty()) {
      block += std::string(comment_in(line)) + "\n";
    } else {
      if (block.starts_with(" ---")) group = statuses_in(block);
      block.clear();
    }
  }
}

bool DocumentedErrors::has(std::string_view code, const std::string& status) const {
  const auto own = by_code_.find(code);
  return by_code_.at("").contains(status) ||
         (own != by_code_.end() && own->second.contains(status));
}

void expect_matrix(const std::vector<std::string>& lines) {
  GeneratedPart(ib::test::kControlMatrix, "<!-- generated: begin -->", "<!-- generated: end -->",
                "SOFTIB_WRITE_MATRIX=1 build/dev/test-bin/drivers_test "
                "--gtest_filter='*ControlMatrix*'")
      .expect(lines);
}

}  // namespace ib::drivers::test
