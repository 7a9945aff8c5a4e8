// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/printed_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace ib::os {
namespace {

// stdout and stderr of the test are what they were when it is over.
class PrintedOutputTest : public ::testing::Test {
 protected:
  PrintedOutputTest() { std::fflush(stdout); }
  ~PrintedOutputTest() override {
    std::fflush(stdout);
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    ::close(out_);
    ::close(err_);
  }
  PrintedOutputTest(const PrintedOutputTest&) = delete;
  PrintedOutputTest& operator=(const PrintedOutputTest&) = delete;

 private:
  int out_ = ::dup(STDOUT_FILENO);
  int err_ = ::dup(STDERR_FILENO);
};

TEST_F(PrintedOutputTest, ComesLineByLineAndTheRestAtTheEnd) {
  EventLoop loop;
  std::vector<std::string> lines;
  {
    const auto printed = PrintedOutput::take(loop, [&](std::string_view line) {
      lines.emplace_back(line);
      if (lines.size() == 2) loop.stop();
    });
    ASSERT_NE(printed, nullptr);
    EXPECT_GE(printed_output_pipe(), 0);
    std::fputs("from stderr\n\n", stderr);
    std::puts("from stdout");
    std::fflush(stdout);  // it had a buffer of its own before
    loop.run();
    std::fputs("begun", stderr);
  }
  EXPECT_EQ(printed_output_pipe(), -1);
  EXPECT_EQ(lines, (std::vector<std::string>{"from stderr", "from stdout", "begun"}));
}

TEST_F(PrintedOutputTest, NobodyWaitsForAPipeThatIsFullAndALineHasAnEnd) {
  EventLoop loop;
  std::size_t bytes = 0;
  {
    const auto printed = PrintedOutput::take(loop, [&](std::string_view line) {
      EXPECT_LE(line.size(), 1024u);
      bytes += line.size();
    });
    const std::string much(std::size_t{1} << 20, 'x');
    EXPECT_LT(::write(STDERR_FILENO, much.data(), much.size()), std::ssize(much));
  }
  EXPECT_GT(bytes, 0u);
}

}  // namespace
}  // namespace ib::os
