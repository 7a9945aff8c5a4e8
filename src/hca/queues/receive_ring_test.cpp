// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The owner's side of receive queues. Ids come back through shared memory: they may be anything.
#include "hca/queues/receive_ring.h"

#include "hca/memory/op_scope.h"
#include "hca/queues/receive_source.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace ib::hca {
namespace {

constexpr std::uint32_t kMaxWr = 5;  // fewer than there are slots
constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kElements = 3;

class ReceiveRingTest : public testing::Test {
 protected:
  ReceiveRing::Geometry geometry() {
    return {memory.allocate(kSlots * receive_stride(kElements)), kSlots, receive_stride(kElements),
            kMaxWr, kElements};
  }
  std::unique_ptr<OwnReceives> own() {
    last = geometry();
    return OwnReceives::create(memory.arena(), last, tail);
  }
  std::unique_ptr<SharedReceives> shared() {
    last = geometry();
    return SharedReceives::create(memory.arena(), last, tail);
  }
  // Returns what a poster reads at a position.
  TakenReceive seen(std::uint64_t position) {
    ReceiveSource source;
    EXPECT_TRUE(source.set(memory.arena(), last.ring, last.slots, last.stride));
    TakenReceive taken;
    EXPECT_TRUE(source.copy(position, taken));
    return taken;
  }
  BenchArena memory;
  Shared64 tail;
  ReceiveRing::Geometry last;
  std::uint64_t wr_id = 0;
  const Sge one{1, 2, 3};
};

template <class Ring>
void refuses_impossible_geometry(const Arena& arena, const ReceiveRing::Geometry& good,
                                 Shared64& tail) {
  EXPECT_NE(Ring::create(arena, good, tail), nullptr);
  for (const std::uint32_t slots : {0u, 3u, 4u, 1u << 31}) {  // 4: fewer than max_wr
    ReceiveRing::Geometry bad = good;
    bad.slots = slots;
    EXPECT_EQ(Ring::create(arena, bad, tail), nullptr) << slots;
  }
  ReceiveRing::Geometry bad = good;
  bad.max_sge = kElements + 1;  // more than the stride has room for
  EXPECT_EQ(Ring::create(arena, bad, tail), nullptr);
  bad.max_sge = kMaxSge + 1;
  EXPECT_EQ(Ring::create(arena, bad, tail), nullptr);
  bad = good;
  bad.ring = kArenaSpace;
  EXPECT_EQ(Ring::create(arena, bad, tail), nullptr);
}

TEST_F(ReceiveRingTest, RefusesImpossibleGeometry) {
  refuses_impossible_geometry<OwnReceives>(memory.arena(), geometry(), tail);
  refuses_impossible_geometry<SharedReceives>(memory.arena(), geometry(), tail);
}

template <class Ring>
void refuses_too_much(Ring& ring) {
  const std::vector<Sge> many(kElements + 1);
  EXPECT_EQ(ring.post(1, many), Status::InvalidParameter);
  for (std::uint64_t i = 0; i < kMaxWr; ++i) EXPECT_EQ(ring.post(i, {}), Status::Ok);
  EXPECT_EQ(ring.post(9, {}), Status::LimitExceeded);
  EXPECT_EQ(ring.post(9, many), Status::InvalidParameter);
  EXPECT_EQ(ring.tail(), kMaxWr);
}

TEST_F(ReceiveRingTest, RefusesTooManyElementsAndTooManyReceives) {
  refuses_too_much(*own());
  refuses_too_much(*shared());
}

TEST_F(ReceiveRingTest, PostersSeeWhatWasPosted) {
  const auto ring = own();
  const std::vector<Sge> list{{10, 11, 12}, {20, 21, 22}, {30, 31, 32}};
  ASSERT_EQ(ring->post(1, {&one, 1}), Status::Ok);
  ASSERT_EQ(ring->post(2, list), Status::Ok);
  ASSERT_EQ(ring->post(3, {}), Status::Ok);
  EXPECT_EQ(tail.load(), 3u);
  EXPECT_EQ(seen(0).num_sge, 1u);
  EXPECT_EQ(seen(0).sge[0].length, one.length);
  EXPECT_EQ(seen(1).num_sge, 3u);
  EXPECT_EQ(seen(1).capacity(), 11u + 21u + 31u);
  EXPECT_EQ(seen(1).sge[2].lkey, 32u);
  EXPECT_EQ(seen(2).num_sge, 0u);
  EXPECT_EQ(seen(2).id, 2u);
}

TEST_F(ReceiveRingTest, OwnReceivesEndInOrderRoundAndRound) {
  const auto ring = own();
  for (std::uint64_t i = 0; i < 3 * kSlots; ++i) {
    ASSERT_EQ(ring->post(100 + i, {&one, 1}), Status::Ok);
    ASSERT_EQ(ring->post(200 + i, {&one, 1}), Status::Ok);
    ASSERT_TRUE(ring->finish(seen(2 * i).id, wr_id));
    EXPECT_EQ(wr_id, 100 + i);
    ASSERT_TRUE(ring->finish(seen(2 * i + 1).id, wr_id));
    EXPECT_EQ(wr_id, 200 + i);
  }
  ring->reset();
  tail.store(0);
  ASSERT_EQ(ring->post(7, {&one, 1}), Status::Ok);
  ASSERT_TRUE(ring->finish(seen(0).id, wr_id));
  EXPECT_EQ(wr_id, 7u);
}

TEST_F(ReceiveRingTest, OneElementIsPostedLikeAListOfOne) {
  const auto ring = own();
  for (std::uint64_t i = 0; i < kMaxWr; ++i) EXPECT_TRUE(ring->post_one(i, one));
  EXPECT_FALSE(ring->post_one(9, one));  // full
  EXPECT_EQ(tail, kMaxWr);
  const TakenReceive second = seen(1);
  EXPECT_EQ(second.id, 1u);
  ASSERT_EQ(second.num_sge, 1u);
  EXPECT_EQ(second.sge[0].address, one.address);
  EXPECT_EQ(second.sge[0].length, one.length);
  EXPECT_EQ(second.sge[0].lkey, one.lkey);
  EXPECT_TRUE(ring->finish(0, wr_id));
  EXPECT_TRUE(ring->post_one(9, one));
  ReceiveRing::Geometry without = geometry();
  without.max_sge = 0;
  EXPECT_FALSE(OwnReceives::create(memory.arena(), without, tail)->post_one(1, one));
}

TEST_F(ReceiveRingTest, AReceiveThatEndedIsUnansweredUntilSomebodyAnswers) {
  const auto ring = own();
  EXPECT_TRUE(ring->post_one(1, one));
  EXPECT_FALSE(ring->is_unanswered());
  EXPECT_TRUE(ring->finish(0, wr_id));
  EXPECT_TRUE(ring->is_unanswered());
  EXPECT_TRUE(ring->post_one(2, one));
  EXPECT_TRUE(ring->is_unanswered());
  ring->answered();
  EXPECT_FALSE(ring->is_unanswered());
}

TEST_F(ReceiveRingTest, ForgedIdsOfOwnReceivesAreRefused) {
  const auto ring = own();
  EXPECT_FALSE(ring->finish(0, wr_id));  // none is there
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(ring->post(i, {&one, 1}), Status::Ok);
  ASSERT_TRUE(ring->finish(1, wr_id));
  EXPECT_EQ(wr_id, 1u);
  for (const std::uint32_t forged : {0u, 1u, 4u, kSlots + 2, 1u << 31, ~0u}) {
    EXPECT_FALSE(ring->finish(forged, wr_id)) << forged;
  }
  ASSERT_TRUE(ring->finish(2, wr_id));
  ASSERT_TRUE(ring->finish(3, wr_id));
  EXPECT_EQ(wr_id, 3u);
}

TEST_F(ReceiveRingTest, SharedReceivesEndInAnyOrderAndOnce) {
  const auto ring = shared();
  for (std::uint64_t i = 0; i < kMaxWr; ++i) ASSERT_EQ(ring->post(i, {&one, 1}), Status::Ok);
  for (const std::uint64_t position : {3u, 0u, 4u}) {
    ASSERT_TRUE(ring->finish(seen(position).id, wr_id));
    EXPECT_EQ(wr_id, position);
    EXPECT_FALSE(ring->finish(seen(position).id, wr_id));
  }
  for (const std::uint32_t forged : {kMaxWr, kSlots, ~0u}) {
    EXPECT_FALSE(ring->finish(forged, wr_id)) << forged;
  }
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(ring->post(50 + i, {&one, 1}), Status::Ok);
  EXPECT_EQ(ring->post(9, {&one, 1}), Status::LimitExceeded);
  ASSERT_TRUE(ring->finish(seen(1).id, wr_id));
  EXPECT_EQ(wr_id, 1u);
  ASSERT_TRUE(ring->finish(seen(6).id, wr_id));
  EXPECT_EQ(wr_id, 51u);
}

template <class Ring>
void scatters(BenchArena& memory, Ring& ring, std::uint32_t id) {
  BenchHost host;
  MemoryPlane plane(memory.arena(), host, 0, Path::Auto);
  std::vector<std::byte> room(64);
  BenchArena::cache_key(plane, kLkey, room.data(), room.size());
  const auto at = [&](std::size_t i) { return std::bit_cast<std::uint64_t>(room.data() + i); };
  const std::vector<Sge> list{{at(40), 3, kLkey}, {at(0), 2, kLkey}, {at(20), 9, kLkey}};
  ASSERT_EQ(ring.post(1, list), Status::Ok);
  const std::vector<std::byte> payload{std::byte{1}, std::byte{2}, std::byte{3},
                                       std::byte{4}, std::byte{5}, std::byte{6}};
  const OpScope scope(plane);
  ring.scatter(plane, 1, id + 1, payload);  // no such receive
  ring.scatter(plane, 2, id, payload);      // another protection domain
  EXPECT_EQ(std::ranges::count(room, std::byte{0}), 64);
  ring.scatter(plane, 1, id, payload);
  EXPECT_EQ(room[40], std::byte{1});
  EXPECT_EQ(room[42], std::byte{3});
  EXPECT_EQ(room[0], std::byte{4});
  EXPECT_EQ(room[1], std::byte{5});
  EXPECT_EQ(room[20], std::byte{6});
  EXPECT_EQ(std::ranges::count(room, std::byte{0}), 58);
}

TEST_F(ReceiveRingTest, ScattersOverTheElementsThatTheOwnerPosted) {
  scatters(memory, *own(), 0);
  scatters(memory, *shared(), 0);
}

// One thread posts, another finishes, without a lock: ThreadSanitizer watches.
TEST_F(ReceiveRingTest, OwnReceivesAreFinishedByAnotherThread) {
  constexpr std::uint64_t kMessages = 1'000;
  const auto ring = own();
  std::thread poller([&] {
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      std::uint64_t found = 0;
      while (!ring->finish(static_cast<std::uint32_t>(i), found)) std::this_thread::yield();
      ASSERT_EQ(found, ~i);
    }
  });
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    while (ring->post(~i, {&one, 1}) == Status::LimitExceeded) std::this_thread::yield();
  }
  poller.join();
  EXPECT_EQ(ring->tail(), kMessages);
}

}  // namespace
}  // namespace ib::hca
