// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/queues/cq_producer.h"

#include "hca/queues/cq_consumer.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace ib::hca {
namespace {

constexpr std::uint32_t kCq = 5;

struct CqBench : ::testing::Test {
  BenchArena memory;
  BenchHost host;
  CqEntry& cq = memory.make_cq(kCq, 1, 8, 5);
  CqProducer producer{memory.arena(), kCq};

  Push push(std::uint32_t wqe, Shared64* intent = nullptr, const std::byte* payload = nullptr,
            std::uint8_t inline_length = 0) {
    Cqe cqe;
    cqe.wqe = wqe;
    cqe.inline_length = inline_length;
    return producer.push(memory.arena(), host, 0, cqe, intent, payload);
  }
};

TEST_F(CqBench, CompletionsAppearInOrderAndTheProducerCounts) {
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(push(i), Push::Done);
  for (std::uint32_t i = 0; i < 5; ++i) {
    ASSERT_NE(memory.completion(kCq, i), nullptr);
    EXPECT_EQ(memory.completion(kCq, i)->wqe, i);
  }
  EXPECT_EQ(memory.completion(kCq, 5), nullptr);
  EXPECT_EQ(cq.producer.producer.load(), 5u);
}

TEST_F(CqBench, HasRoomAgainWhenSomethingIsPolled) {
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(push(i), Push::Done);
  cq.consumer.consumer.store(2);
  EXPECT_EQ(push(5), Push::Done);
  EXPECT_EQ(push(6), Push::Done);
  EXPECT_FALSE(producer.is_in_error());
}

TEST_F(CqBench, IsInErrorForGoodOnceACompletionDidNotFit) {
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(push(i), Push::Done);
  const auto push_fast = [](CqProducer& by) { return by.push_fast(0, nullptr, [](Cqe&) {}); };
  EXPECT_FALSE(push_fast(producer)) << "left to the slow path";
  EXPECT_FALSE(producer.is_in_error());
  EXPECT_EQ(push(5), Push::Overflow);
  EXPECT_TRUE(producer.is_in_error());
  cq.consumer.consumer.store(5);
  EXPECT_EQ(push(5), Push::Overflow) << "after a poll";
  EXPECT_FALSE(push_fast(producer));
  CqProducer other(memory.arena(), kCq);
  EXPECT_TRUE(other.look_again(memory.arena()));
  EXPECT_FALSE(push_fast(other)) << "of another queue pair";
  cq.id.ring = memory.allocate(64 * sizeof(Cqe));
  cq.id.slots = 64;
  cq.id.cqe = 63;
  cq.id.ring_epoch.fetch_add(1);
  EXPECT_EQ(push(5), Push::Overflow) << "in a larger ring";
  EXPECT_FALSE(push_fast(producer));
  EXPECT_EQ(cq.producer.producer.load(), 5u);
}

TEST_F(CqBench, ItsErrorIsReportedOnce) {
  producer.report_error(host);
  EXPECT_TRUE(host.raised.empty()) << "it is in no error";
  for (std::uint32_t i = 0; i < 6; ++i) (void)push(i);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(push(i), Push::Overflow);
    producer.report_error(host);
  }
  ASSERT_EQ(host.raised.size(), 1u);
  EXPECT_EQ(host.raised[0].type, verbs::EventType::CqErr);
  EXPECT_EQ(host.raised[0].index, kCq);
  CqProducer().report_error(host);  // a queue pair without a completion queue
}

TEST_F(CqBench, GoesRoundTheRingManyTimes) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(push(i), Push::Done);
    ASSERT_NE(memory.completion(kCq, i), nullptr);
    cq.consumer.consumer.store(i + 1);
  }
}

// Before that no producer looks for `armed`, which needs a fence.
TEST_F(CqBench, TheFirstRequestOfAnEventHasAllProcessesPassABarrier) {
  CqConsumer consumer;
  verbs::control::CqOut made;
  made.ring = cq.id.ring;
  made.slots = cq.id.slots;
  ASSERT_TRUE(consumer.open(memory.arena(), kCq, made));
  cq.id.channel = 1;
  EXPECT_FALSE(producer.may_fire());
  EXPECT_EQ(host.barriers_passed(), 0u);
  for (int i = 0; i < 2; ++i) {
    consumer.arm(host, false);
    EXPECT_EQ(host.barriers_passed(), 1u);
    EXPECT_TRUE(producer.may_fire());
    EXPECT_EQ(cq.arm.armed.load(), 1u);
  }
}

TEST_F(CqBench, IgnoresOverrunIfToldTo) {
  cq.id.flags = verbs::control::cq_flag::kIgnoreOverrun;
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(push(i), Push::Done);
}

TEST_F(CqBench, TheIntentNamesThePositionBeforeTheCompletionIsThere) {
  Shared64 intent{0};
  EXPECT_EQ(push(1, &intent), Push::Done);
  EXPECT_EQ(intent.load(), 1u);
  EXPECT_EQ(push(2, &intent), Push::Done);
  EXPECT_EQ(intent.load(), 2u);
}

TEST_F(CqBench, CarriesASmallPayload) {
  std::byte payload[kInlineScatter];
  for (std::size_t i = 0; i < sizeof payload; ++i) payload[i] = std::byte(i);
  EXPECT_EQ(push(1, nullptr, payload, 13), Push::Done);
  const Cqe* cqe = memory.completion(kCq, 0);
  ASSERT_NE(cqe, nullptr);
  EXPECT_EQ(std::memcmp(cqe->payload.data(), payload, 13), 0);
  EXPECT_EQ(cqe->payload[13], std::byte{0});
}

TEST_F(CqBench, FollowsAResizeByItsEpoch) {
  EXPECT_EQ(push(0), Push::Done);
  cq.consumer.consumer.store(1);
  cq.id.ring = memory.allocate(64 * sizeof(Cqe));
  cq.id.slots = 64;
  cq.id.cqe = 63;
  cq.id.ring_epoch.fetch_add(1);
  EXPECT_EQ(push(1), Push::Done);
  ASSERT_NE(memory.completion(kCq, 1), nullptr);
  EXPECT_EQ(memory.completion(kCq, 1)->wqe, 1u);
}

TEST_F(CqBench, NonsenseGeometryIsBroken) {
  for (const std::uint32_t slots : {0u, 1u, 3u, 12u, 0xffffffffu, 1u << 31}) {
    cq.id.slots = slots;
    cq.id.ring_epoch.fetch_add(1);
    EXPECT_EQ(push(1), Push::Broken) << slots;
  }
  cq.id.slots = 8;
  for (const std::uint64_t ring :
       {std::uint64_t{0}, place::kHeap - 1, kArenaSpace - 8, ~std::uint64_t{0},
        place::kHeap + BenchArena::kHeapBytes - 100}) {
    cq.id.ring = ring;
    cq.id.ring_epoch.fetch_add(1);
    EXPECT_EQ(push(1), Push::Broken) << ring;
  }
}

TEST_F(CqBench, ALimitAboveTheRingIsCut) {
  cq.id.cqe = 1'000'000;
  std::uint32_t accepted = 0;
  while (push(accepted) == Push::Done && accepted < 100) ++accepted;
  EXPECT_EQ(accepted, 7u);
}

TEST_F(CqBench, ALockThatIsNeverReleasedEndsInBrokenNotInAHang) {
  cq.id.shared_producers.store(1);
  cq.producer.lock.store(77);
  EXPECT_EQ(push(1), Push::Broken);
}

TEST_F(CqBench, FiresOnceForWhatItIsArmedFor) {
  cq.id.channel = 3;
  producer.fire(host, true);
  EXPECT_TRUE(host.notified.empty());
  cq.arm.armed.store(2);
  producer.fire(host, false);
  EXPECT_TRUE(host.notified.empty());
  producer.fire(host, true);
  producer.fire(host, true);
  EXPECT_EQ(host.notified, (std::vector<std::uint32_t>{kCq}));
  cq.arm.armed.store(1);
  producer.fire(host, false);
  EXPECT_EQ(host.notified.size(), 2u);
}

// A producer that dies inside notify() leaves the mark for softibd (death_repair.cpp).
TEST_F(CqBench, AnEventIsMarkedUntilItHasBeenSent) {
  std::uint32_t seen = 0;
  host.on_notify = [&] { seen = cq.arm.armed.load(); };
  cq.id.channel = 3;
  cq.arm.armed.store(1);
  producer.fire(host, false);
  EXPECT_EQ(seen, CqEntry::kFiring);
  EXPECT_EQ(cq.arm.armed.load(), 0u);
  cq.arm.armed.store(1);
  host.on_notify = [&] { cq.arm.armed.store(1); };
  producer.fire(host, false);
  EXPECT_EQ(cq.arm.armed.load(), 1u) << "the owner's new request stands";
}

TEST_F(CqBench, ProducersThatShareItLoseNothing) {
  CqEntry& shared = memory.make_cq(9, 1, 4096, 4095);
  shared.id.shared_producers.store(1);
  constexpr std::uint32_t kEach = 1000;
  const auto produce = [&](std::uint32_t who) {
    BenchHost own;
    // The other thread may be off its core while it holds the lock: give it one, as a real host
    // does.
    // tidy: allow(sleep) nothing is waited for by time
    own.on_relax = [] { std::this_thread::sleep_for(std::chrono::microseconds(1)); };
    CqProducer mine(memory.arena(), 9);
    for (std::uint32_t i = 0; i < kEach; ++i) {
      Cqe cqe;
      cqe.qpn = who;
      cqe.wqe = i;
      ASSERT_EQ(mine.push(memory.arena(), own, who, cqe, nullptr), Push::Done);
    }
  };
  std::thread other(produce, 1);
  produce(0);
  other.join();
  std::uint32_t next[2] = {0, 0};
  for (std::uint32_t i = 0; i < 2 * kEach; ++i) {
    const Cqe* cqe = memory.completion(9, i);
    ASSERT_NE(cqe, nullptr);
    EXPECT_EQ(cqe->wqe, next[cqe->qpn]++);
  }
}

}  // namespace
}  // namespace ib::hca
