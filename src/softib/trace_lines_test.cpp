// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/trace_lines.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

TEST(TraceLines, HaveANumberAndAText) {
  const std::vector<TraceLine> lines = parse_trace("7 first line\n8 second\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].number, 7u);
  EXPECT_EQ(lines[0].text, "first line");
  EXPECT_EQ(lines[1].number, 8u);
  EXPECT_EQ(lines[1].text, "second");
}

TEST(TraceLines, OfAnotherFormAreLeftOut) {
  EXPECT_TRUE(parse_trace("").empty());
  EXPECT_TRUE(parse_trace("\n\nno number\n-3 x\n12\n99999999999999999999 x\n").empty());
  ASSERT_EQ(parse_trace("x\n5 no newline at the end").size(), 1u);
}

}  // namespace
}  // namespace ib::softib
