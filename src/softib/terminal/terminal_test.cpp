// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/terminal/terminal.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

TEST(Terminal, APageThatFitsIsAsItIs) {
  EXPECT_EQ(fit_to("a\nb\n", {80, 3}), "a\nb\n");
  EXPECT_EQ(fit_to("a\nb\nc\nd\n", {0, 0}), "a\nb\nc\nd\n") << "no terminal";
}

TEST(Terminal, OfALongPageTheRestIsCounted) {
  EXPECT_EQ(fit_to("a\nb\nc\nd\n", {80, 4}), "a\nb\n... 2 more lines\n");
  EXPECT_EQ(fit_to("a\nb\nc\n", {80, 3}), "a\n... 2 more lines\n");
}

TEST(Terminal, LongLinesTakeSeveralRowsAndColourTakesNone) {
  EXPECT_EQ(fit_to("123456\nb\nc\n", {4, 4}), "123456\n... 2 more lines\n");
  EXPECT_EQ(fit_to("\033[1m1234\033[0m\nb\n", {4, 3}), "\033[1m1234\033[0m\nb\n");
  EXPECT_EQ(fit_to("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\nb\n", {4, 3}).find("more"),
            std::string::npos);
}

}  // namespace
}  // namespace ib::softib
