// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/table.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace ib::host_abi {
namespace stream_switch {

std::uint32_t forks_of_test = 0;
std::uint32_t forks() {
  return forks_of_test;
}

namespace {

void close_unseen(int fd) {
  ASSERT_EQ(::syscall(SYS_close, static_cast<long>(fd)), 0);
}

// A number that is in the table with the file that it means.
int make_entry(std::uint64_t stream) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  close_unseen(ends[1]);
  Ref socket = make();
  socket->stream = stream;
  socket->file = os::file_word(ends[0]);
  EXPECT_TRUE(put(ends[0], std::move(socket)));
  return ends[0];
}

TEST(StreamTable, ANumberMeansItsStreamUntilItIsForgotten) {
  const int fd = make_entry(7);
  EXPECT_TRUE(has_any_stream());
  ASSERT_TRUE(find_stream(fd));
  EXPECT_EQ(find_stream(fd)->stream, 7u);
  const Ref gone = forget(fd);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->numbers.load(), 0u);
  EXPECT_FALSE(find(fd));
  EXPECT_FALSE(has_any_stream());
  close_unseen(fd);
}

TEST(StreamTable, ADuplicateMeansTheSameStream) {
  const int fd = make_entry(8);
  const int other = ::dup(fd);
  copy(fd, other);
  EXPECT_EQ(find(other)->numbers.load(), 2u);
  EXPECT_EQ(forget(fd)->numbers.load(), 1u);
  EXPECT_EQ(find(other)->stream, 8u);
  EXPECT_EQ(next_in_table(0), other);
  forget(other);
  EXPECT_EQ(next_in_table(0), -1);
  close_unseen(fd);
  close_unseen(other);
}

TEST(StreamTable, AnotherFileWithTheNumberIsNoStream) {
  const int fd = make_entry(9);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::syscall(SYS_dup3, static_cast<long>(ends[0]), static_cast<long>(fd), 0L), fd);
  EXPECT_FALSE(find_stream(fd));
  EXPECT_FALSE(is_in_table(fd));
  EXPECT_FALSE(has_any_stream());
  for (const int one : {fd, ends[0], ends[1]}) close_unseen(one);
}

TEST(StreamTable, NumbersOutOfRangeAreNoEntries) {
  EXPECT_FALSE(find(-1));
  EXPECT_FALSE(find(kMostDescriptors));
  EXPECT_FALSE(put(kMostDescriptors, make()));
}

TEST(StreamTable, AStreamIsNotUsedAgainWhileACallHasIt) {
  const int fd = make_entry(10);
  const Ref held = find(fd);
  forget(fd);
  close_unseen(fd);
  const int next = make_entry(11);
  EXPECT_EQ(held->stream, 10u);
  EXPECT_NE(&*held, &*find(next));
  forget(next);
  close_unseen(next);
}

TEST(StreamTable, ThreadsFindAStreamThatOthersForget) {
  std::atomic<bool> done{false};
  std::atomic<int> number{make_entry(12)};
  std::thread reader([&] {
    while (!done.load()) {
      const int fd = number.load();
      if (const Ref one = find_unchecked(fd)) {
        ASSERT_GE(one->stream, 12u);
        ASSERT_GE(one->references.load(), 1u);
      }
    }
  });
  for (std::uint64_t i = 13; i < 2000; ++i) {
    const int fd = number.load();
    forget(fd);
    close_unseen(fd);
    number.store(make_entry(i));
  }
  done.store(true);
  reader.join();
  forget(number.load());
  close_unseen(number.load());
}

TEST(StreamTable, OneThreadLeavesAStreamUntilSomebodyStopsThat) {
  const char one = 0;
  const char other = 0;
  constexpr int kSet = 7;
  constexpr int kOtherSet = 8;
  Ref stream = make();
  ASSERT_TRUE(stream);
  EXPECT_FALSE(left_by(*stream).is_anybody());
  EXPECT_FALSE(stop_leaving(*stream));

  begin_leaving(*stream, LeftBy(&one, kSet));
  begin_leaving(*stream, LeftBy(&one, kSet));
  begin_leaving(*stream, LeftBy(&other, kOtherSet));
  EXPECT_TRUE(left_by(*stream).is(&one));
  EXPECT_FALSE(left_by(*stream).is(&other));
  EXPECT_EQ(left_count(), 1);
  EXPECT_EQ(left_count(kSet), 1);
  EXPECT_EQ(left_count(kOtherSet), 0);

  EXPECT_TRUE(stop_leaving(*stream));
  EXPECT_EQ(left_count(), 0);
  EXPECT_EQ(left_count(kSet), 0);

  begin_leaving(*stream, LeftBy(&one, LeftBy::kNoSet));
  EXPECT_TRUE(left_by(*stream).is(&one));
  EXPECT_EQ(left_count(), 1);
  EXPECT_EQ(left_count(LeftBy::kNoSet), 0);
  EXPECT_TRUE(stop_leaving(*stream));
  EXPECT_EQ(left_count(), 0);

  // Of another process: for each set.
  begin_leaving(*stream, LeftBy::others());
  EXPECT_EQ(left_count(kSet), 1);
  EXPECT_EQ(left_count(kOtherSet), 1);
  stream = {};  // a place that is not used is left by nobody
  EXPECT_EQ(left_count(), 0);
}

}  // namespace
}  // namespace stream_switch

namespace sockets {
void begin_as_child() {}
}  // namespace sockets

}  // namespace ib::host_abi
