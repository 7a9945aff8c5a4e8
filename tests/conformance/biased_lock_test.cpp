// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// BiasedLock with the barriers of this system, between real threads.
#include "user/biased_lock.h"

#include "linux/barriers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ib::user {
namespace {

platform::FullBarriers full;

std::vector<platform::Barriers*> every_kind() {
  (void)os::barriers().join();  // where membarrier() is refused, both are the same
  return {&os::barriers(), &full};
}

void visit(BiasedLock& lock, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) {
    lock.lock();
    lock.unlock();
  }
}

void become_owner(BiasedLock& lock) {
  visit(lock, BiasedLock::kLocksToOwn);
}

class CountingBarriers final : public platform::Barriers {
 public:
  bool join() override { return true; }
  bool joined() const override { return true; }
  void threads() override {
    ++count;
    os::barriers().threads();
  }
  void processes() override { os::barriers().processes(); }
  std::uint32_t count = 0;
};

// One thread sets a queue up, another one uses it.
TEST(BiasedLock, AFewLocksOfAnotherThreadBeforeCostNothing) {
  if (!os::barriers().join()) GTEST_SKIP() << "the kernel refuses membarrier()";
  CountingBarriers barriers;
  BiasedLock lock(barriers);
  std::thread([&] { visit(lock, BiasedLock::kLocksToOwn - 1); }).join();
  visit(lock, 1000);
  EXPECT_EQ(barriers.count, 0u);
  EXPECT_TRUE(lock.enter()) << "this thread owns it";
  lock.leave();
}

TEST(BiasedLock, ManyLocksOfAnotherThreadEndTheBias) {
  if (!os::barriers().join()) GTEST_SKIP() << "the kernel refuses membarrier()";
  CountingBarriers barriers;
  BiasedLock lock(barriers);
  become_owner(lock);
  std::thread([&] {
    visit(lock, 1);
    EXPECT_EQ(barriers.count, 1u);
    EXPECT_FALSE(lock.enter());
    visit(lock, 1000);
  }).join();
  EXPECT_LE(barriers.count, BiasedLock::kMostForeignLocks + 1);
  EXPECT_FALSE(lock.enter());
}

// Counts without atomics: a lost count means that two threads were inside at once.
TEST(BiasedLock, ExcludesOthers) {
  for (platform::Barriers* barriers : every_kind()) {
    for (const std::uint32_t visits : {3u, 4000u}) {  // the bias stays; it is revoked
      BiasedLock lock(*barriers);
      std::uint64_t sum = 0;
      become_owner(lock);
      std::atomic<std::uint32_t> left = 2;
      const auto count = [&] {
        for (std::uint32_t i = 0; i < visits; ++i) {
          lock.lock();
          sum += 1;
          lock.unlock();
        }
        --left;
      };
      std::thread first(count);
      std::thread second(count);
      std::uint64_t mine = 0;
      while (left.load() != 0) {
        lock.lock();
        sum += 1;
        lock.unlock();
        ++mine;
      }
      first.join();
      second.join();
      EXPECT_EQ(sum, mine + 2 * visits);
    }
  }
}

TEST(BiasedLock, TryLockNeverEntersWhileItIsHeld) {
  for (platform::Barriers* barriers : every_kind()) {
    BiasedLock lock(*barriers);
    std::atomic<std::uint32_t> inside = 0;
    std::atomic<std::uint32_t> collisions = 0;
    std::atomic<bool> stop = false;
    become_owner(lock);
    lock.lock();
    std::thread visitor([&] {
      EXPECT_FALSE(lock.try_lock());
      ++inside;
      while (!stop.load()) {
        if (!lock.try_lock()) {
          std::this_thread::yield();
          continue;
        }
        if (inside.fetch_add(1) != 1) ++collisions;
        inside.fetch_sub(1);
        lock.unlock();
      }
    });
    while (inside.load() == 0) std::this_thread::yield();
    EXPECT_FALSE(lock.try_lock()) << "by the holder itself";
    lock.unlock();
    for (int i = 0; i < 20'000; ++i) {
      lock.lock();
      if (inside.fetch_add(1) != 1) ++collisions;
      inside.fetch_sub(1);
      lock.unlock();
    }
    stop = true;
    visitor.join();
    EXPECT_EQ(collisions.load(), 0u);
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
  }
}

}  // namespace
}  // namespace ib::user
