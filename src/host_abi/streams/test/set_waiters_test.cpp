// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/set_waiters.h"

#include "host_abi/streams/table.h"

#include <gtest/gtest.h>

#include <thread>

namespace ib::host_abi::stream_switch {

extern std::uint32_t forks_of_test;  // table_test.cpp

namespace {

constexpr int kSet = 100;

// By another thread, whose own variables may be where those of an ended one were.
template <class Function>
bool in_thread(Function function) {
  bool result = false;
  std::thread([&] { result = function(); }).join();
  return result;
}

class SetWaiters : public testing::Test {
 protected:
  void TearDown() override { forget_waiter(kSet); }
};

TEST_F(SetWaiters, OneThatNobodyHasSeenMadeHasNoOnlyWaiter) {
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_FALSE(is_only_waiter(kSet));
}

TEST_F(SetWaiters, TheFirstThreadIsTheOnlyOne) {
  note_made(kSet, true);
  EXPECT_FALSE(is_only_waiter(kSet));
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_TRUE(is_only_waiter(kSet));
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_FALSE(in_thread([] { return is_only_waiter(kSet); }));
}

TEST_F(SetWaiters, TheSecondIsNotifiedOnceAndThenNobodyIsTheOnlyOne) {
  note_made(kSet, true);
  EXPECT_TRUE(in_thread([] { return note_waiter(kSet) && is_only_waiter(kSet); }));
  EXPECT_FALSE(in_thread([] { return note_waiter(kSet) || is_only_waiter(kSet); }));
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_FALSE(is_only_waiter(kSet));
}

TEST_F(SetWaiters, AForkEndsThat) {
  note_made(kSet, true);
  EXPECT_TRUE(note_waiter(kSet));
  ++forks_of_test;
  EXPECT_FALSE(is_only_waiter(kSet));
  EXPECT_FALSE(note_waiter(kSet));
  EXPECT_FALSE(is_only_waiter(kSet));
  // So does one before the first wait.
  note_made(kSet, true);
  ++forks_of_test;
  EXPECT_FALSE(note_waiter(kSet));
  EXPECT_FALSE(is_only_waiter(kSet));
  note_made(kSet, true);
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_TRUE(is_only_waiter(kSet));
}

TEST_F(SetWaiters, ASharedSetStaysShared) {
  note_made(kSet, true);
  EXPECT_FALSE(is_shared_set(kSet));
  share_set(kSet);
  EXPECT_TRUE(is_shared_set(kSet));
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_FALSE(is_only_waiter(kSet));
}

TEST_F(SetWaiters, OneThatExecutedProgramsHaveHasNoOnlyWaiter) {
  note_made(kSet, false);
  EXPECT_TRUE(is_set(kSet));
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_FALSE(is_only_waiter(kSet));
  EXPECT_TRUE(note_closes_at_exec(kSet, true));
  EXPECT_TRUE(note_waiter(kSet));
  EXPECT_TRUE(is_only_waiter(kSet));
  EXPECT_TRUE(note_closes_at_exec(kSet, true));
  EXPECT_TRUE(is_only_waiter(kSet));
  EXPECT_FALSE(note_closes_at_exec(kSet, false));
  EXPECT_FALSE(is_only_waiter(kSet));
  EXPECT_TRUE(note_closes_at_exec(kSet, false));
  forget_waiter(kSet);
  EXPECT_TRUE(note_closes_at_exec(kSet, true));
  EXPECT_FALSE(is_set(kSet));
}

TEST_F(SetWaiters, NumbersWithoutAPlaceAreNobodys) {
  for (const int set : {-1, kMostDescriptors}) {
    note_made(set, true);
    share_set(set);
    forget_waiter(set);
    EXPECT_TRUE(note_waiter(set));
    EXPECT_FALSE(is_only_waiter(set));
  }
}

}  // namespace
}  // namespace ib::host_abi::stream_switch
