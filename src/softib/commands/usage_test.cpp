// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/commands/usage.h"

#include "setup/cli_error.h"
#include "softib/commands/command.h"
#include "softib/terminal/columns.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ib::softib {
namespace {

using Words = std::vector<std::string>;

TEST(Usage, TheNearestWordIsOneThatIsLikeIt) {
  const Words commands{"run", "up", "down", "status", "trace", "port"};
  EXPECT_EQ(nearest("stauts", commands), "status");
  EXPECT_EQ(nearest("stat", commands), "status");
  EXPECT_EQ(nearest("dwon", commands), "down");
  EXPECT_EQ(nearest("prot", commands), "port");
  EXPECT_EQ(nearest("rn", commands), "run");
  EXPECT_EQ(nearest("--nodez", {"--node", "--nodes"}), "--nodes");
  EXPECT_EQ(nearest("quit", commands), "");
  EXPECT_EQ(nearest("x", commands), "");
  EXPECT_EQ(nearest("", commands), "");
}

TEST(Usage, HelpCommandIsCommandHelp) {
  Words words{"help", "port", "up"};
  turn_help_around(words);
  EXPECT_EQ(words, (Words{"port", "up", "--help"}));
  words = {"port", "help"};
  turn_help_around(words);
  EXPECT_EQ(words, (Words{"port", "help"}));
}

TEST(Usage, TheFabricMayStandBeforeTheCommand) {
  Context context;
  CLI::App app{"", "softib"};
  add_port(app, context);
  add_status(app, context);
  const auto moved = [&](Words words) {
    move_fabric_behind_command(app, words);
    return words;
  };
  EXPECT_EQ(moved({"-f", "lab", "status", "--json"}), (Words{"status", "--fabric=lab", "--json"}));
  EXPECT_EQ(moved({"--fabric", "lab", "port", "up"}), (Words{"port", "up", "--fabric=lab"}));
  EXPECT_EQ(moved({"--fabric=lab", "bogus", "x"}), (Words{"--fabric=lab", "bogus", "x"}));
  EXPECT_EQ(moved({"--fabric"}), (Words{"--fabric"}));
  EXPECT_EQ(moved({"status", "-f", "lab"}), (Words{"status", "-f", "lab"}));
}

TEST(Usage, ActionsHaveTheExamplesThatAreAboutThem) {
  Context context;
  CLI::App app{"", "softib"};
  add_port(app, context);
  add_hca(app, context);
  share_examples(app);
  EXPECT_EQ(app.get_subcommand("port")->get_subcommand("down")->get_footer(),
            "Examples:\n  softib port down\n  softib port down --switch switch-1 --port 3");
  for (const char* action : {"add", "remove", "eject"}) {
    EXPECT_NE(app.get_subcommand("hca")->get_subcommand(action)->get_footer(), "") << action;
  }
}

TEST(Usage, WordsAreWrapped) {
  EXPECT_EQ(wrap_words("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrap_words("one\ntwo three", 20, 2), "one\ntwo three");
  EXPECT_EQ(wrap_words("verylongword x", 4, 0), "verylongword\nx");
  EXPECT_EQ(wrap_words("", 4, 0), "");
  EXPECT_EQ(wrap_words("one two three four", 10, 2, 4), "one\n  two\n  three\n  four");
  EXPECT_EQ(wrap_words("one two three four", 12, 2, 4), "one two\n  three four");
  EXPECT_EQ(wrap_words("verylongword x", 4, 2, 3), "verylongword\n  x");
}

TEST(Usage, AWholeNumberHasDigitsOnlyAndBounds) {
  CLI::App app;
  std::uint64_t value = 0;
  app.add_option("--n", value)->check(whole_number(1, 10));
  for (const char* text : {"0", "11", "-1", "", "x", "3x", "99999999999999999999", "1.5"}) {
    EXPECT_THROW(app.parse(Words{text, "--n"}), CLI::ParseError) << text;
  }
  app.parse(Words{"10", "--n"});
  EXPECT_EQ(value, 10u);
}

TEST(Usage, UnknownCommandsAndActionsAreNamed) {
  Context context;
  CLI::App app{"", "softib"};
  add_port(app, context);
  add_status(app, context);
  const auto said = [&](const Words& words) -> std::string {
    try {
      check_command(app, words);
    } catch (const CliError& error) {
      EXPECT_EQ(error.code(), Exit::Usage);
      return error.what();
    }
    return "fine";
  };
  EXPECT_EQ(said({"stauts"}),
            "there is no command \"stauts\"; did you mean `softib status`?\n"
            "  `softib help` lists the commands.");
  EXPECT_EQ(said({"port", "dwon"}),
            "softib port cannot \"dwon\"; did you mean `softib port down`?\n"
            "  It can down or up.");
  EXPECT_EQ(said({"port", "-n", "1", "up"}), "fine");
  EXPECT_EQ(said({"status", "extra"}), "fine") << "CLI11 has words about that";
}

TEST(Usage, AWrongOptionIsToldWithTheRightOne) {
  Context context;
  CLI::App app{"", "softib"};
  add_status(app, context);
  try {
    app.parse(Words{"--jsno", "status"});
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_EQ(usage_complaint(app, {"status", "--jsno"}, error),
              "softib status has no option --jsno; did you mean --json?\n"
              "  `softib status --help` tells more.");
  }
}

}  // namespace
}  // namespace ib::softib
