// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/epoll_records.h"

#include "host_abi/streams/set_waiters.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace ib::host_abi::stream_switch {
namespace {

constexpr std::uint64_t kData = 0x1122334455667788;

// A socket in a set, and another file that is to get its number; `held` keeps the first one open.
class EpollMoveTest : public testing::Test {
 protected:
  void SetUp() override {
    set_ = ::epoll_create1(EPOLL_CLOEXEC);
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    held_ = ::dup(fd_);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair_.data()), 0);
  }
  void TearDown() override {
    forget_epoll_records(fd_);
    for (const int fd : {set_, fd_, held_, pair_[0], pair_[1]}) ::close(fd);
  }
  void control(int operation, std::uint32_t events) {
    epoll_event event{events, {.u64 = kData}};
    ASSERT_EQ(::epoll_ctl(set_, operation, fd_, &event), 0);
    record_epoll(set_, operation, fd_, &event);
  }
  bool move() {
    EpollMove moving(fd_);
    EXPECT_EQ(::syscall(SYS_dup3, static_cast<long>(pair_[0]), static_cast<long>(fd_), 0L), fd_);
    return moving.done();
  }
  // Returns the events of the one that is ready, or 0.
  std::uint32_t ready() {
    std::array<epoll_event, 4> events{};
    const int found = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()), 0);
    EXPECT_LE(found, 1);
    if (found <= 0) return 0;
    const std::uint64_t data = events[0].data.u64;  // not aligned: the structure is packed
    EXPECT_EQ(data, kData);
    return events[0].events;
  }

  int set_ = -1;
  int fd_ = -1;
  int held_ = -1;
  std::array<int, 2> pair_{-1, -1};
};

TEST_F(EpollMoveTest, TheSetGetsTheOtherFile) {
  control(EPOLL_CTL_ADD, EPOLLIN);
  EXPECT_FALSE(move());
  EXPECT_EQ(ready(), 0u);  // the unconnected socket would be hung up
  ASSERT_EQ(::send(pair_[1], "", 0, 0), 0);
  EXPECT_EQ(ready(), std::uint32_t{EPOLLIN});
  EXPECT_TRUE(has_epoll_records(fd_));  // of the other file now
}

TEST_F(EpollMoveTest, TheLastChangeCounts) {
  control(EPOLL_CTL_ADD, EPOLLIN);
  control(EPOLL_CTL_MOD, EPOLLOUT | EPOLLET);
  EXPECT_TRUE(move());
  EXPECT_EQ(ready(), std::uint32_t{EPOLLOUT});
}

TEST_F(EpollMoveTest, WhatWasRemovedStaysAway) {
  control(EPOLL_CTL_ADD, EPOLLIN);
  control(EPOLL_CTL_DEL, 0);
  EXPECT_FALSE(has_epoll_records(fd_));
  move();
  ASSERT_EQ(::send(pair_[1], "", 0, 0), 0);
  EXPECT_EQ(ready(), 0u);
}

TEST_F(EpollMoveTest, ASetThatIsGoneIsLeftAlone) {
  control(EPOLL_CTL_ADD, EPOLLIN);
  const int other = ::epoll_create1(EPOLL_CLOEXEC);
  ASSERT_EQ(::syscall(SYS_dup3, static_cast<long>(other), static_cast<long>(set_), 0L), set_);
  ::close(other);
  move();
  ASSERT_EQ(::send(pair_[1], "", 0, 0), 0);
  EXPECT_EQ(ready(), 0u);
}

TEST_F(EpollMoveTest, AnOnlyRecordIsOneWithDataOfItsOwn) {
  EXPECT_FALSE(only_record(fd_).has_value());
  control(EPOLL_CTL_ADD, EPOLLIN);
  ASSERT_TRUE(only_record(fd_).has_value());
  EXPECT_EQ(only_record(fd_)->set, set_);
  EXPECT_EQ(only_record(fd_)->event.events, EPOLLIN);
  EXPECT_FALSE(only_record(held_).has_value());

  // Another descriptor with the same data.
  epoll_event event{EPOLLIN, {.u64 = kData}};
  record_epoll(set_, EPOLL_CTL_ADD, pair_[1], &event);
  EXPECT_FALSE(only_record(fd_).has_value());
  event.data.u64 = kData + 1;
  record_epoll(set_, EPOLL_CTL_MOD, pair_[1], &event);
  EXPECT_TRUE(only_record(fd_).has_value());
  forget_epoll_records(pair_[1]);

  // Another set.
  const int other = ::epoll_create1(EPOLL_CLOEXEC);
  record_epoll(other, EPOLL_CTL_ADD, fd_, &event);
  EXPECT_FALSE(only_record(fd_).has_value());
  EXPECT_TRUE(is_set(other));
  forget_records_of_set(other);
  EXPECT_FALSE(is_set(other));
  EXPECT_TRUE(only_record(fd_).has_value());
  ::close(other);
}

TEST_F(EpollMoveTest, AFileThatOthersStillHaveLeavesItsSets) {
  const int copy = ::dup(pair_[0]);
  ASSERT_EQ(::send(pair_[1], "", 0, 0), 0);
  epoll_event event{EPOLLIN, {.u64 = kData}};
  ASSERT_EQ(::epoll_ctl(set_, EPOLL_CTL_ADD, pair_[0], &event), 0);
  record_epoll(set_, EPOLL_CTL_ADD, pair_[0], &event);
  leave_epoll_sets(pair_[0]);
  EXPECT_FALSE(has_epoll_records(pair_[0]));
  EXPECT_EQ(ready(), 0u);
  ::close(copy);
}

// Changes of an entry of which the kernel is told later: the test is the thread that has left the
// stream.
class LateChanges : public EpollMoveTest {
 protected:
  void SetUp() override {
    EpollMoveTest::SetUp();
    stream_ = make();
    control(EPOLL_CTL_ADD, EPOLLIN);
    ASSERT_TRUE(is_in_kernel(fd_, set_));
    begin_leaving(*stream_, by());
  }
  void TearDown() override {
    stop_leaving(*stream_);
    EpollMoveTest::TearDown();
    EXPECT_FALSE(is_any_late());
  }
  LeftBy by() const { return LeftBy(this, set_); }
  bool change(int operation, std::uint32_t events, std::uint64_t data = kData) {
    epoll_event event{events, {.u64 = data}};
    const auto late = change_late(set_, operation, fd_, &event, *stream_, by());
    if (late) EXPECT_EQ(*late, is_late(fd_));
    return late.has_value();
  }
  // The socket is not connected: it is hung up and writable in each set that has it.
  std::uint32_t in_kernel(std::uint64_t data = kData) {
    epoll_event event{};
    if (::epoll_wait(set_, &event, 1, 0) != 1) return 0;
    const std::uint64_t found = event.data.u64;
    EXPECT_EQ(found, data);
    return event.events;
  }

  static constexpr std::uint32_t kHangup = EPOLLHUP;
  Ref stream_;
};

TEST_F(LateChanges, TheKernelIsToldOfTheLastOne) {
  ASSERT_EQ(in_kernel(), kHangup);
  ASSERT_TRUE(change(EPOLL_CTL_DEL, 0));
  EXPECT_TRUE(is_late(fd_));
  EXPECT_FALSE(only_record(fd_).has_value());
  EXPECT_EQ(in_kernel(), kHangup);
  ASSERT_TRUE(change(EPOLL_CTL_ADD, EPOLLOUT));
  ASSERT_TRUE(change(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT, kData + 1));
  EXPECT_EQ(only_record(fd_)->event.events, std::uint32_t{EPOLLIN | EPOLLOUT});
  EXPECT_EQ(in_kernel(), kHangup);
  EXPECT_TRUE(tell_and_stop_leaving(fd_, *stream_));
  EXPECT_FALSE(is_late(fd_));
  EXPECT_EQ(in_kernel(kData + 1), kHangup | EPOLLOUT);
  EXPECT_FALSE(tell_and_stop_leaving(fd_, *stream_));
}

TEST_F(LateChanges, ADeletionIsTold) {
  ASSERT_TRUE(change(EPOLL_CTL_DEL, 0));
  EXPECT_TRUE(tell_and_stop_leaving(fd_, *stream_));
  EXPECT_EQ(in_kernel(), 0u);
  EXPECT_FALSE(has_epoll_records(fd_));
}

TEST_F(LateChanges, OneThatIsTakenBackNeedsNoTelling) {
  ASSERT_TRUE(change(EPOLL_CTL_DEL, 0));
  ASSERT_TRUE(change(EPOLL_CTL_ADD, EPOLLIN));
  EXPECT_FALSE(is_late(fd_));
  EXPECT_EQ(in_kernel(), kHangup);
}

TEST_F(LateChanges, TheKernelIsAskedForErrors) {
  EXPECT_FALSE(change(EPOLL_CTL_ADD, EPOLLIN));
  EXPECT_FALSE(change(99, EPOLLIN));
  ASSERT_TRUE(change(EPOLL_CTL_DEL, 0));
  EXPECT_FALSE(change(EPOLL_CTL_DEL, 0));
  EXPECT_FALSE(change(EPOLL_CTL_MOD, EPOLLIN));
  EXPECT_FALSE(change_late(set_, EPOLL_CTL_ADD, fd_, nullptr, *stream_, by()));
}

TEST_F(LateChanges, TheKernelIsToldOfWhatMemoryCannotTell) {
  for (const std::uint32_t events : {std::uint32_t{EPOLLIN} | EPOLLET, std::uint32_t{EPOLLPRI},
                                     std::uint32_t{EPOLLIN} | EPOLLONESHOT,
                                     std::uint32_t{EPOLLIN} | EPOLLRDHUP, std::uint32_t{0}}) {
    EXPECT_FALSE(change(EPOLL_CTL_MOD, events)) << events;
  }
  // Without interest in reading the kernel would not find a link ready that is left rung.
  control(EPOLL_CTL_MOD, EPOLLOUT);
  EXPECT_FALSE(change(EPOLL_CTL_MOD, EPOLLIN));
}

TEST_F(LateChanges, OnlyWhoHasLeftTheStreamChangesIt) {
  const int other = 0;
  epoll_event event{EPOLLOUT, {.u64 = kData}};
  EXPECT_FALSE(change_late(set_, EPOLL_CTL_MOD, fd_, &event, *stream_, LeftBy(&other, set_)));
  EXPECT_FALSE(change_late(set_ + 1, EPOLL_CTL_MOD, fd_, &event, *stream_, by()));
  stop_leaving(*stream_);
  EXPECT_FALSE(change(EPOLL_CTL_MOD, EPOLLOUT));
}

TEST_F(LateChanges, NothingElseIsTakenForTheEntry) {
  EXPECT_TRUE(may_be_mistaken(set_, pair_[0], kData));
  EXPECT_FALSE(may_be_mistaken(set_, pair_[0], kData + 1));
  EXPECT_FALSE(may_be_mistaken(set_, fd_, kData));
  ASSERT_TRUE(change(EPOLL_CTL_MOD, EPOLLIN, kData + 1));
  EXPECT_TRUE(may_be_mistaken(set_, pair_[0], kData));
  EXPECT_FALSE(may_be_mistaken(set_, fd_, kData));
  EXPECT_TRUE(may_be_mistaken(set_, pair_[0], kData + 1));
  EXPECT_FALSE(may_be_mistaken(set_, pair_[0], kData + 2));
  // Nor is the entry for another.
  epoll_event event{EPOLLIN, {.u64 = kData + 3}};
  record_epoll(set_, EPOLL_CTL_ADD, pair_[0], &event);
  EXPECT_FALSE(change(EPOLL_CTL_MOD, EPOLLIN, kData + 3));
  EXPECT_TRUE(change(EPOLL_CTL_MOD, EPOLLIN, kData + 4));
  forget_epoll_records(pair_[0]);
}

// The set was closed by system call, and its number is another set's.
TEST_F(LateChanges, AnotherSetIsFoundOut) {
  control(EPOLL_CTL_MOD, EPOLLIN);
  const int other = ::epoll_create1(EPOLL_CLOEXEC);
  ASSERT_EQ(::syscall(SYS_dup3, static_cast<long>(other), static_cast<long>(set_), 0L), set_);
  ::close(other);
  EXPECT_FALSE(is_in_kernel(fd_, set_));
  EXPECT_FALSE(change(EPOLL_CTL_MOD, EPOLLOUT));
}

}  // namespace
}  // namespace ib::host_abi::stream_switch
