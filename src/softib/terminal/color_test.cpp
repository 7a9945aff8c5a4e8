// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/terminal/color.h"

#include "setup/cli_error.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

using Words = std::vector<std::string>;

TEST(Color, IsForTerminalsUnlessSomebodyDoesNotWantIt) {
  EXPECT_TRUE(wants_color(ColorWhen::Auto, true, nullptr, "xterm"));
  EXPECT_TRUE(wants_color(ColorWhen::Auto, true, "", "xterm"));
  EXPECT_FALSE(wants_color(ColorWhen::Auto, false, nullptr, "xterm"));
  EXPECT_FALSE(wants_color(ColorWhen::Auto, true, "1", "xterm"));
  EXPECT_FALSE(wants_color(ColorWhen::Auto, true, nullptr, "dumb"));
  EXPECT_FALSE(wants_color(ColorWhen::Auto, true, nullptr, nullptr));
  EXPECT_TRUE(wants_color(ColorWhen::Always, false, "1", "dumb"));
  EXPECT_FALSE(wants_color(ColorWhen::Never, true, nullptr, "xterm"));
}

TEST(Color, TheOptionMayStandAnywhereButAmongTheWordsOfAProgram) {
  Words words{"status", "--color=always", "--json"};
  EXPECT_EQ(take_color(words), ColorWhen::Always);
  EXPECT_EQ(words, (Words{"status", "--json"}));
  words = {"--color", "never", "run", "ls", "--color=always"};
  EXPECT_EQ(take_color(words), ColorWhen::Never);
  EXPECT_EQ(words, (Words{"run", "ls", "--color=always"}));
  words = {"status"};
  EXPECT_EQ(take_color(words), ColorWhen::Auto);
  for (Words wrong : {Words{"--color=mauve", "status"}, Words{"status", "--color"}}) {
    EXPECT_THROW(take_color(wrong), CliError);
  }
}

TEST(Color, WithoutColorsATextIsItself) {
  EXPECT_EQ(painted(Paint::Bad, "down"), "down");
}

}  // namespace
}  // namespace ib::softib
