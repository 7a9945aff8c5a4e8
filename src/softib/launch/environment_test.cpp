// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/environment.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

Installation installation() {
  Installation it;
  it.bin_dir = "/opt/softib/bin";
  it.lib_dir = it.loader_dir = "/opt/softib/lib";
  return it;
}

ProgramSettings settings() {
  ProgramSettings it;
  it.socket = "/run/x/default.sock";
  it.runtime_dir = "/run/x";
  it.fabric = "default";
  it.node = "node0";
  return it;
}

std::string value(const Environment& environment, const std::string& name) {
  std::string found = "(unset)";
  int times = 0;
  for (const auto& [key, text] : environment) {
    if (key != name) continue;
    found = text;
    ++times;
  }
  EXPECT_LE(times, 1) << name;
  return found;
}

TEST(Environment, AnEmptyOneGetsAllThatAProgramNeeds) {
  const Environment it = compose_environment({}, installation(), settings());
  EXPECT_EQ(value(it, "LD_PRELOAD"), "/opt/softib/lib/libsoftib_preload.so");
  EXPECT_EQ(value(it, "RDMAV_DRIVERS"), "/opt/softib/lib/libsoftib");
  EXPECT_EQ(value(it, "SOFTIB_SOCKET"), "/run/x/default.sock");
  EXPECT_EQ(value(it, "SOFTIB_NODE"), "node0");
  EXPECT_EQ(value(it, "SOFTIB_MEMORY_PATH"), "(unset)");
}

TEST(Environment, WhatTheUserPreloadsStaysBehindOurs) {
  const Environment base{{"LD_PRELOAD", "libasan.so.8 /lib/libx.so"},
                         {"RDMAV_DRIVERS", "mlx5;rxe"}};
  const Environment it = compose_environment(base, installation(), settings());
  EXPECT_EQ(value(it, "LD_PRELOAD"),
            "/opt/softib/lib/libsoftib_preload.so:libasan.so.8:/lib/libx.so");
  EXPECT_EQ(value(it, "RDMAV_DRIVERS"), "/opt/softib/lib/libsoftib:mlx5:rxe");
}

TEST(Environment, ARunInsideARunReplacesTheOuterOne) {
  Installation outer = installation();
  outer.lib_dir = outer.loader_dir = "/home/me/build/lib";
  const Environment first = compose_environment({{"LD_PRELOAD", "a.so"}}, outer, settings());
  const Environment second = compose_environment(first, installation(), settings());
  EXPECT_EQ(value(second, "LD_PRELOAD"), "/opt/softib/lib/libsoftib_preload.so:a.so");
  EXPECT_EQ(value(second, "RDMAV_DRIVERS"), "/opt/softib/lib/libsoftib");
}

TEST(Environment, TheDaemonSeesNothingOfSoftib) {
  const Environment base{{"PATH", "/bin"}, {"LD_PRELOAD", "a.so"}};
  EXPECT_EQ(without_softib(compose_environment(base, installation(), settings())), base);
  EXPECT_EQ(without_softib(compose_environment({}, installation(), settings())), Environment{});
}

TEST(Environment, PathAutoUndoesAnInheritedPath) {
  const Environment base{{"SOFTIB_MEMORY_PATH", "bounce"}};
  ProgramSettings wanted = settings();
  EXPECT_EQ(value(compose_environment(base, installation(), wanted), "SOFTIB_MEMORY_PATH"),
            "bounce");
  wanted.memory_path = "auto";
  EXPECT_EQ(value(compose_environment(base, installation(), wanted), "SOFTIB_MEMORY_PATH"),
            "(unset)");
  wanted.memory_path = "process_vm";
  EXPECT_EQ(value(compose_environment(base, installation(), wanted), "SOFTIB_MEMORY_PATH"),
            "process_vm");
}

TEST(Environment, ExportLinesAreQuotedForTheShell) {
  EXPECT_EQ(export_lines({{"A", "1"}}, {{"A", "1"}, {"B", "it's $HOME"}}),
            "export B='it'\\''s $HOME'\n");
}

TEST(Environment, BecomesWordsAndPointersForExec) {
  std::vector<std::string> words = as_words({{"A", "1"}, {"EMPTY", ""}, {"B", "x=y"}});
  EXPECT_EQ(words, (std::vector<std::string>{"A=1", "EMPTY=", "B=x=y"}));
  const std::vector<char*> list = pointers(words);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_STREQ(list[2], "B=x=y");
  EXPECT_EQ(list[3], nullptr);
  std::vector<std::string> none;
  EXPECT_EQ(pointers(none), std::vector<char*>{nullptr});
}

}  // namespace
}  // namespace ib::softib
