// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/trace_lines.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

const std::chrono::system_clock::time_point kStart{std::chrono::seconds(1'800'000'000)};

TEST(TraceLines, HaveANumberATimeAndAText) {
  const std::vector<TraceLine> lines = parse_trace(
      R"({"number":7,"at_ns":1500000000,"kind":"error","text":"first line"}
{"number":8,"at_ns":0,"kind":"device","text":"second","count":3,"last_at_ns":0}
)",
      kStart);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].number, 7u);
  EXPECT_EQ(lines[0].text, "first line");
  EXPECT_FALSE(lines[0].is_step);
  EXPECT_EQ(lines[0].fields["time"].get<std::string>().substr(16, 7), ":01.500");
  EXPECT_FALSE(lines[0].fields.contains("at_ns"));
  EXPECT_EQ(shown(lines[0]).substr(5), ":01.500  first line");
  EXPECT_TRUE(lines[1].is_step);
  EXPECT_NE(shown(lines[1]).find("second (3 times, last at "), std::string::npos);
}

TEST(TraceLines, AreWrappedBehindTheirTime) {
  const std::vector<TraceLine> lines = parse_trace(
      R"({"number":7,"at_ns":0,"kind":"change","text":"one two three four five six"})", kStart);
  const std::string text = shown(lines[0], 30);
  EXPECT_EQ(text.substr(12), "  one two three\n              four five six") << text;
  EXPECT_EQ(shown(lines[0]).find('\n'), std::string::npos);
}

TEST(TraceLines, OfAnotherFormAreLeftOut) {
  EXPECT_TRUE(parse_trace("", kStart).empty());
  EXPECT_TRUE(
      parse_trace("\n\nno json\n{}\n{\"number\":3}\n[1]\n{\"text\":\"x\"}\n", kStart).empty());
  ASSERT_EQ(parse_trace("x\n{\"number\":5,\"text\":\"no newline at the end\"}", kStart).size(), 1u);
}

}  // namespace
}  // namespace ib::softib
