// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/last_death.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace ib::softib {
namespace {

class LastDeathTest : public ::testing::Test {
 protected:
  LastDeathTest() : path_("/tmp/softib-log-XXXXXX") { ::close(::mkstemp(path_.data())); }
  ~LastDeathTest() override { ::unlink(path_.c_str()); }
  LastDeathTest(const LastDeathTest&) = delete;
  LastDeathTest& operator=(const LastDeathTest&) = delete;

  // Returns where the lines begin.
  std::size_t log(const std::string& lines) {
    std::ofstream file(path_, std::ios::app);
    file.seekp(0, std::ios::end);
    const auto at = static_cast<std::size_t>(file.tellp());
    file << lines;
    return at;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* kUp = "2026-01-31 12:00:00.000 I fabric t is up: 1 node, 1 port; socket s\n";
constexpr const char* kDown = "2026-01-31 12:00:00.000 I fabric t is down\n";
constexpr const char* kCrash = "2026-01-31 12:00:01.000 C crashed: SIGSEGV at address 0x0\n";
constexpr const char* kCaller = "2026-01-31 12:00:01.000 C crashed: called by driver ping (p)\n";

TEST_F(LastDeathTest, IsOfTheLastSoftibd) {
  EXPECT_EQ(last_death(path()), "");
  log(kUp);
  EXPECT_EQ(last_death(path()), "");
  log(kCrash);
  log(kCaller);
  EXPECT_EQ(last_death(path()), "SIGSEGV at address 0x0, called by driver ping (p)");
  const std::size_t second = log(kUp);
  EXPECT_EQ(last_death(path()), "") << "a later one is up, or was killed";
  log(kDown);
  EXPECT_EQ(last_death(path()), "");
  log(kCrash);
  EXPECT_EQ(last_death(path()), "SIGSEGV at address 0x0") << "before it was up";
  EXPECT_EQ(last_death(path(), second), "SIGSEGV at address 0x0");
  const std::size_t third = log("2026-01-31 12:00:02.000 E did not start: crashed: C crashed: x\n");
  EXPECT_EQ(last_death(path(), third), "");
}

TEST_F(LastDeathTest, HasTheLastLineThatWasPrintedBefore) {
  log(kUp);
  log("2026-01-31 12:00:01.000 I printed: hello\n");
  log("2026-01-31 12:00:01.000 C printed: one\n");
  log("2026-01-31 12:00:01.000 C printed: io/irp.h:147: assertion failed: irp_ == nullptr\n");
  log(kCrash);
  log(kCaller);
  EXPECT_EQ(last_death(path()),
            "SIGSEGV at address 0x0, called by driver ping (p), after it had printed: "
            "io/irp.h:147: assertion failed: irp_ == nullptr");
  log(kDown);
  log(kCrash);
  EXPECT_EQ(last_death(path()), "SIGSEGV at address 0x0") << "of an earlier softibd";
}

TEST_F(LastDeathTest, ALogThatIsShorterNowIsReadFromItsStart) {
  log(kCrash);
  EXPECT_EQ(last_death(path(), 10000), "SIGSEGV at address 0x0");
  EXPECT_EQ(last_death("/nonexistent"), "");
}

}  // namespace
}  // namespace ib::softib
