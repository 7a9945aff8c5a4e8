// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every primitive that may block aborts when it is called at dispatch level (platform/level.h),
// whether it would have blocked this time or not. IrpWait has the same test beside it.
#include "platform/level.h"

#include "linux/client/client_channel.h"
#include "linux/process/client_wait.h"
#include "linux/server/server_directory.h"
#include "softibd/in_process_daemon.h"
#include "verbs/control.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace ib::softib {
namespace {

using verbs::control::Code;

class LevelDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";  // daemons have threads
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    ::setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("TMPDIR", parent_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

 private:
  // A child that dies removes nothing; its folder, which it makes by the same words, is inside of
  // this one.
  std::string parent_ = std::filesystem::temp_directory_path();
  std::string folder_ = parent_ + "/softib-test-XXXXXX";
};

TEST_F(LevelDeathTest, StartingADaemon) {
  EXPECT_DEATH(
      {
        const LevelGuard dispatch(Level::Dispatch);
        std::string reason;
        (void)InProcessDaemon::start(reason);
      },
      "Daemon::create may block, but was called at dispatch level");
}

TEST_F(LevelDeathTest, ClaimingARuntimeDirectory) {
  EXPECT_DEATH(
      {
        const LevelGuard dispatch(Level::Dispatch);
        std::string reason;
        (void)os::ServerDirectory::claim(::testing::TempDir() + "softib_level", "fabric", reason);
      },
      "ServerDirectory::claim may block");
}

TEST_F(LevelDeathTest, SleepingOnAWordOfMemory) {
  std::atomic<std::uint32_t> word{0};
  EXPECT_DEATH(
      {
        const LevelGuard dispatch(Level::Dispatch);
        os::futex_wait(word, 0, Duration::zero());
      },
      "ClientHost::wait may block");
}

TEST_F(LevelDeathTest, CallingADaemonAndWaitingForIt) {
  std::string reason;
  const auto daemon = InProcessDaemon::start(reason);
  ASSERT_TRUE(daemon) << reason;
  const auto channel = os::connect_channel((*daemon)->socket_path(), reason);
  ASSERT_TRUE(channel) << reason;
  EXPECT_DEATH(
      {
        const LevelGuard dispatch(Level::Dispatch);
        (void)(*channel)->call(static_cast<std::uint32_t>(Code::Ping), 0, {}, {});
      },
      "a call to softibd may block");
  EXPECT_DEATH(
      {
        const LevelGuard dispatch(Level::Dispatch);
        (*daemon)->on_loop([] {});
      },
      "InProcessDaemon::on_loop may block");
  EXPECT_DEATH(
      {
        const LevelGuard dispatch(Level::Dispatch);
        (void)(*daemon)->stop();
      },
      "InProcessDaemon::stop may block");
}

}  // namespace
}  // namespace ib::softib
