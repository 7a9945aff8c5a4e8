// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/queues/late_events.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

namespace ib::hca {
namespace {

constexpr std::uint32_t kRoom = 4;

// A pipe with room for a few events.
struct TestPipe {
  Written write() {
    const std::lock_guard guard(lock);
    ++calls;
    if (on_write) on_write();
    if (answer != Written::Yes) return answer;
    if (held == kRoom) return Written::Full;
    ++held;
    return Written::Yes;
  }
  bool holds_some() {
    const std::lock_guard guard(lock);
    ++calls;
    return held != 0;
  }
  bool read() {
    const std::lock_guard guard(lock);
    if (held == 0) return false;
    --held;
    return true;
  }

  std::mutex lock;
  std::uint32_t held = 0;
  std::uint32_t calls = 0;
  Written answer = Written::Yes;
  std::function<void()> on_write;
};

struct LateEvents : ::testing::Test {
  bool send() { return send_event(cq, owner, pipe); }
  // As the owner reads: an event, then a look for late ones.
  bool read() {
    if (!pipe.read()) return false;
    if (owner.late_events.exchange(0) != 0) {
      EXPECT_TRUE(move_late_events(cq, owner, pipe));
    }
    return true;
  }
  std::uint32_t late() const { return cq.arm.late.load(); }

  CqEntry cq;
  ProcessSlot owner;
  TestPipe pipe;
};

TEST_F(LateEvents, ThoseThatFitAreNotCounted) {
  for (std::uint32_t i = 0; i < kRoom; ++i) EXPECT_TRUE(send());
  EXPECT_EQ(pipe.held, kRoom);
  EXPECT_EQ(late(), 0u);
  EXPECT_EQ(owner.late_events.load(), 0u);
}

TEST_F(LateEvents, TheOthersFollowWhenThereIsRoom) {
  constexpr std::uint32_t kMany = 100;
  for (std::uint32_t i = 0; i < kMany; ++i) EXPECT_TRUE(send());
  EXPECT_EQ(late(), kMany - kRoom);
  std::uint32_t got = 0;
  while (read()) ++got;
  EXPECT_EQ(got, kMany);
  EXPECT_EQ(late(), 0u);
  EXPECT_TRUE(send());
  EXPECT_TRUE(read());
}

TEST_F(LateEvents, EachCostsTheSame) {
  constexpr std::uint32_t kMany = 10'000;
  for (std::uint32_t i = 0; i < kMany; ++i) EXPECT_TRUE(send());
  EXPECT_LE(pipe.calls, kMany + 1);  // one look each, and one more at the first that did not fit
  pipe.calls = 0;
  while (read()) {}
  EXPECT_LE(pipe.calls, 3 * kMany);
}

// No read follows by which the owner would come to look.
TEST_F(LateEvents, ItGoesIntoAPipeThatWasEmptiedBeforeItWasCounted) {
  pipe.held = kRoom;
  pipe.on_write = [this, first = true]() mutable {
    pipe.answer = first ? Written::Full : Written::Yes;
    if (first) pipe.held = 0;
    first = false;
  };
  EXPECT_TRUE(send());
  EXPECT_EQ(pipe.held, 1u);
  EXPECT_EQ(late(), 0u);
}

TEST_F(LateEvents, ThatIsSoForOneThatWasPutBackToo) {
  cq.arm.late = 1;
  pipe.on_write = [this, first = true]() mutable {
    pipe.answer = first ? Written::Full : Written::Yes;
    first = false;
  };
  EXPECT_TRUE(move_late_events(cq, owner, pipe));
  EXPECT_EQ(pipe.held, 1u);
  EXPECT_EQ(late(), 0u);
}

TEST_F(LateEvents, TheOwnerIsKickedIfThePipeCannotBeReached) {
  pipe.answer = Written::NotNow;
  EXPECT_FALSE(send());
  EXPECT_EQ(late(), 1u);
  EXPECT_EQ(owner.late_events.load(), 1u);
  EXPECT_FALSE(move_late_events(cq, owner, pipe));
  EXPECT_EQ(late(), 1u);
  pipe.answer = Written::Yes;
  EXPECT_TRUE(move_late_events(cq, owner, pipe));
  EXPECT_EQ(pipe.held, 1u);
}

TEST_F(LateEvents, ThoseOfAChannelThatIsGoneAreForgotten) {
  cq.arm.late = ~0u;  // hostile
  pipe.answer = Written::Gone;
  EXPECT_TRUE(move_late_events(cq, owner, pipe));
  EXPECT_EQ(late(), 0u);
  EXPECT_TRUE(send());
  EXPECT_EQ(late(), 0u);
}

TEST_F(LateEvents, SeveralPostersAndReadersLoseNone) {
  constexpr std::uint32_t kEach = 3'000;
  std::atomic<std::uint32_t> got{0};
  const auto post = [this] {
    for (std::uint32_t i = 0; i < kEach; ++i) (void)send();
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto drain = [this, &got, deadline] {
    while (got.load() < 2 * kEach && std::chrono::steady_clock::now() < deadline) {
      if (read()) {
        got.fetch_add(1);
      } else {
        std::this_thread::yield();
      }
    }
  };
  std::thread first(post);
  std::thread second(post);
  std::thread reader(drain);
  drain();
  first.join();
  second.join();
  reader.join();
  EXPECT_EQ(got.load(), 2 * kEach);
  EXPECT_FALSE(pipe.read());
  EXPECT_EQ(late(), 0u);
}

}  // namespace
}  // namespace ib::hca
