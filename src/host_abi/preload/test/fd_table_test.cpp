// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/fd_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace ib::host_abi::preload::fds {
namespace {

std::vector<int> closed;

ssize_t twice(int, void*, std::size_t, ssize_t result) {
  return 2 * result;
}

// No descriptor need be open: the table works on numbers.
class PreloadFds : public testing::Test {
 protected:
  void SetUp() override {
    softib_preload_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.closed = [](int fd) { closed.push_back(fd); };
    hooks.read_comp_channel = twice;
    ASSERT_EQ(set_hooks(&hooks), 0);
    closed.clear();
  }
  void TearDown() override {
    forget_range(0, ~0u);
    set_hooks(nullptr);
  }
  static constexpr Entry kChannel{Kind::Device, 0, &kCompletionChannel};
};

TEST_F(PreloadFds, RemembersKindNumberAndDevice) {
  ASSERT_TRUE(mark(1000, {Kind::File, 0x0fffffff, nullptr}));
  ASSERT_TRUE(mark(1001, {Kind::Directory, 1, nullptr}));
  for (std::size_t i = 0; devices::at(i) != nullptr; ++i) {
    const int fd = 1002 + static_cast<int>(i);
    ASSERT_TRUE(mark(fd, {Kind::Device, 17, devices::at(i)}));
    EXPECT_EQ(find(fd).kind, Kind::Device);
    EXPECT_EQ(find(fd).device, devices::at(i));
    EXPECT_EQ(find(fd).number, 17u);
  }
  EXPECT_EQ(find(1000).kind, Kind::File);
  EXPECT_EQ(find(1000).number, 0x0fffffffu);
  EXPECT_EQ(find(1000).device, nullptr);
  EXPECT_EQ(find(1001).kind, Kind::Directory);
  EXPECT_EQ(device(1001), nullptr);
}

TEST_F(PreloadFds, KnowsNothingOfOthers) {
  for (const int fd : {-1, 0, 999, kLimit - 1, kLimit}) EXPECT_EQ(find(fd).kind, Kind::None) << fd;
  EXPECT_FALSE(mark(kLimit, kChannel));
  EXPECT_FALSE(mark(-1, kChannel));
}

TEST_F(PreloadFds, ADuplicateIsTheSameAndIsClosedByItself) {
  mark(1000, kChannel);
  copy(1000, 1005);
  EXPECT_EQ(find(1005).device, &kCompletionChannel);
  forget(1000);
  EXPECT_EQ(closed, std::vector{1000});
  EXPECT_EQ(device(1000), nullptr);
  EXPECT_EQ(device(1005), &kCompletionChannel);
  forget_range(1001, 1010);
  EXPECT_EQ(closed, (std::vector{1000, 1005}));
}

TEST_F(PreloadFds, OnlyKindsThatAskAreToldOfAClose) {
  mark(1000, {Kind::File, 1, nullptr});
  mark(1001, {Kind::Device, 0, &kUverbs});
  forget_range(0, ~0u);
  EXPECT_TRUE(closed.empty());
  EXPECT_EQ(find(1001).kind, Kind::None);
}

TEST_F(PreloadFds, AForkedChildHasItsOwnAndAVforkedOneHasNot) {
  mark(1000, kChannel);
  int status = -1;
  pid_t child = ::fork();
  if (child == 0) {
    forget(1000);
    ::_exit(closed.size() == 1 && find(1000).kind == Kind::None ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(device(1000), &kCompletionChannel);
  child = ::vfork();
  if (child == 0) {
    forget(1000);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(closed.empty());
  EXPECT_EQ(device(1000), &kCompletionChannel);
}

TEST_F(PreloadFds, AChannelIsReadThroughTheProvider) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "8 bytes.", 8), 8);
  char data[8];
  EXPECT_EQ(kCompletionChannel.read(ends[0], data, sizeof data), 16);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace ib::host_abi::preload::fds
