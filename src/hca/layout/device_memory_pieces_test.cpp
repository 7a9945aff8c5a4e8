// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The small pieces that read and write device memory: receive rings, locks, thread words,
// quiescence, local keys, timers. Shared memory may hold anything.
#include "hca/layout/quiescence.h"
#include "hca/layout/shm_lock.h"
#include "hca/layout/thread_words.h"
#include "hca/memory/local_keys.h"
#include "hca/queues/receive_source.h"
#include "hca/requester/rnr_timer.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <latch>
#include <set>
#include <thread>

namespace ib::hca {
namespace {

// --- ReceiveSource ---

TEST(ReceiveSource, RefusesHostileGeometry) {
  BenchArena memory;
  ReceiveSource source;
  const std::uint64_t ring = memory.allocate(4096);
  const std::uint32_t stride = receive_stride(2);
  EXPECT_TRUE(source.set(memory.arena(), ring, 16, stride));
  for (const std::uint32_t slots : {0u, 3u, 15u, 0x80000001u, 1u << 31}) {
    EXPECT_FALSE(source.set(memory.arena(), ring, slots, stride)) << slots;
    EXPECT_FALSE(source.valid());
  }
  for (const std::uint32_t bad : {0u, 1u, 31u, stride + 1, receive_stride(kMaxSge) + 16, ~0u}) {
    EXPECT_FALSE(source.set(memory.arena(), ring, 16, bad)) << bad;
  }
  for (const std::uint64_t bad :
       {std::uint64_t{0}, place::kKeys, kArenaSpace, ~std::uint64_t{0},
        place::kHeap + BenchArena::kHeapBytes - 16 * stride + std::uint64_t{1}}) {
    EXPECT_FALSE(source.set(memory.arena(), bad, 16, stride)) << bad;
  }
}

TEST(ReceiveSource, TakesWhatIsPostedAndNothingBeforeOrBeyond) {
  BenchArena memory;
  QpEntry& qp = memory.make_qp(3, 1, 2, 0);
  ReceiveSource source;
  ASSERT_TRUE(source.set(memory.arena(), qp.geometry.rq_ring, 16, qp.geometry.rq_stride));
  EXPECT_FALSE(source.available(0, qp.owner.rq_tail));
  memory.post_receive(qp, 77, {{1, 2, 3}, {4, 5, 6}});
  EXPECT_TRUE(source.available(0, qp.owner.rq_tail));
  EXPECT_FALSE(source.available(1, qp.owner.rq_tail));
  TakenReceive taken;
  ASSERT_TRUE(source.copy(0, taken));
  EXPECT_EQ(taken.id, 77u);
  EXPECT_EQ(taken.num_sge, 2u);
  EXPECT_EQ(taken.capacity(), 7u);
  EXPECT_EQ(taken.sge[1].lkey, 6u);
}

TEST(ReceiveSource, ATailThatIsGarbageMeansNothingIsThere) {
  BenchArena memory;
  QpEntry& qp = memory.make_qp(3, 1, 2, 0);
  ReceiveSource source;
  ASSERT_TRUE(source.set(memory.arena(), qp.geometry.rq_ring, 16, qp.geometry.rq_stride));
  for (const std::uint64_t tail : {std::uint64_t{17}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    qp.owner.rq_tail.store(tail);
    EXPECT_FALSE(source.available(0, qp.owner.rq_tail)) << tail;
  }
  qp.owner.rq_tail.store(4);
  EXPECT_FALSE(source.available(5, qp.owner.rq_tail)) << "behind the head";
}

TEST(ReceiveSource, TooManyElementsAreMalformed) {
  BenchArena memory;
  QpEntry& qp = memory.make_qp(3, 1, 2, 0);
  ReceiveSource source;
  ASSERT_TRUE(source.set(memory.arena(), qp.geometry.rq_ring, 16, qp.geometry.rq_stride));
  for (const std::uint32_t count : {5u, 33u, ~0u}) {
    const ReceiveWqe wqe{1, count, 0};
    std::memcpy(memory.arena().heap(qp.geometry.rq_ring, sizeof wqe), &wqe, sizeof wqe);
    TakenReceive taken;
    EXPECT_FALSE(source.copy(0, taken)) << count;
  }
}

// --- ShmLock ---

TEST(ShmLock, ExcludesAndNamesItsOwner) {
  Shared32 word{0};
  EXPECT_TRUE(try_lock(word, lock_owner(4)));
  EXPECT_EQ(word.load(), 5u);
  EXPECT_FALSE(try_lock(word, lock_owner(5)));
  unlock(word);
  EXPECT_TRUE(try_lock(word, lock_owner(5)));
}

TEST(ShmLock, GivesUpOnGarbage) {
  Shared32 word{0xdeadbeef};
  std::uint32_t rounds = 0;
  EXPECT_FALSE(lock(word, 1, [&rounds](std::uint32_t) { ++rounds; }));
  EXPECT_GT(rounds, 1000u);
  EXPECT_EQ(word.load(), 0xdeadbeefu);
}

TEST(ShmLock, TwoThreadsNeverHoldItTogether) {
  Shared32 word{0};
  std::uint64_t counter = 0;
  const auto work = [&](std::uint32_t owner) {
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(lock(word, owner, [](std::uint32_t) { std::this_thread::yield(); }));
      ++counter;
      unlock(word);
    }
  };
  std::thread other(work, 2);
  work(1);
  other.join();
  EXPECT_EQ(counter, 40'000u);
}

// --- ThreadWords ---

TEST(ThreadWords, EachThreadHasItsOwnUntilItEnds) {
  BenchArena memory;
  Shared32& used = memory.arena().slot(0)->words_used;
  used.store(0);
  ThreadWords words(*memory.arena().slot(0));
  ThreadWord* mine = &words.mine();
  EXPECT_EQ(used.load(), 1u);
  EXPECT_EQ(mine, &words.mine());
  ThreadWord* others = nullptr;
  std::thread([&] { others = &words.mine(); }).join();
  EXPECT_NE(others, mine);
  ThreadWord* next = nullptr;
  std::thread([&] { next = &words.mine(); }).join();
  EXPECT_EQ(next, others) << "given back when its thread ended";
  EXPECT_EQ(used.load(), 2u);
}

TEST(ThreadWords, MoreThreadsThanWordsShareTheLastOne) {
  BenchArena memory;
  memory.arena().slot(0)->words_used.store(0);
  ThreadWords words(*memory.arena().slot(0));
  constexpr std::uint32_t kThreads = 100;
  std::latch all_have(kThreads);
  std::vector<ThreadWord*> got(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      got[i] = &words.mine();
      all_have.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint32_t sharing = 0;
  std::set<ThreadWord*> own;
  for (ThreadWord* word : got) {
    if (words.is_shared(*word)) {
      ++sharing;
    } else {
      EXPECT_TRUE(own.insert(word).second) << "two threads have the same word";
    }
  }
  EXPECT_EQ(own.size(), kThreadsPerSlot - 1);
  EXPECT_EQ(sharing, kThreads - (kThreadsPerSlot - 1));
  EXPECT_EQ(memory.arena().slot(0)->words_used.load(), kThreadsPerSlot);
}

TEST(ThreadWords, ManyThreadsInOneScopeTakeTurns) {
  BenchArena memory;
  BenchHost host;
  host.relaxing_takes = Duration::zero();
  host.on_relax = [] { std::this_thread::yield(); };
  MemoryPlane plane(memory.arena(), host, 0, Path::ProcessVm);
  constexpr std::uint32_t kThreads = 80;
  std::latch begin(kThreads);
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> inside_shared{0};
  std::atomic<std::uint32_t> collisions{0};
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ThreadWord& word = plane.thread_words().mine();
      begin.arrive_and_wait();
      for (int n = 0; n < 50; ++n) {
        const OpScope scope(plane);
        if ((word.sequence.load() & 1) == 0) ++collisions;
        if (!plane.thread_words().is_shared(word)) continue;
        if (inside_shared.fetch_add(1) != 0) ++collisions;
        inside_shared.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(collisions.load(), 0u);
  for (const ThreadWord& word : memory.arena().slot(0)->threads) {
    EXPECT_EQ(word.sequence.load() % 2, 0u);
  }
}

TEST(ThreadWords, OutlivesItsProcessObject) {
  BenchArena memory;
  std::latch taken(1);
  std::latch gone(1);
  auto words = std::make_unique<ThreadWords>(*memory.arena().slot(0));
  std::thread thread([&] {
    (void)words->mine();
    taken.count_down();
    gone.wait();
  });
  taken.wait();
  words.reset();
  gone.count_down();
  thread.join();
}

// --- Quiescence ---

platform::FullBarriers barriers;

TEST(Quiescence, WaitsForThoseInsideOnly) {
  BenchArena memory;
  ThreadWord& word = memory.arena().slot(1)->threads[3];
  EXPECT_TRUE(Quiescence(memory.arena(), barriers, kAnyOwner).done());
  word.sequence.store(7);
  Quiescence quiet(memory.arena(), barriers, kAnyOwner);
  EXPECT_FALSE(quiet.done());
  word.sequence.store(8);
  EXPECT_TRUE(quiet.done());
  word.sequence.store(9);
  EXPECT_TRUE(quiet.done()) << "who came later saw the change";
}

TEST(Quiescence, TheNextScopeOfTheSameThreadIsAsGoodAsTheEnd) {
  BenchArena memory;
  ThreadWord& word = memory.arena().slot(1)->threads[3];
  word.sequence.store(7);
  Quiescence quiet(memory.arena(), barriers, kAnyOwner);
  word.sequence.store(9);
  EXPECT_TRUE(quiet.done());
}

TEST(Quiescence, TheDeadAreNotWaitedFor) {
  BenchArena memory;
  memory.arena().slot(1)->threads[3].sequence.store(7);
  Quiescence quiet(memory.arena(), barriers, kAnyOwner);
  EXPECT_FALSE(quiet.done());
  memory.arena().slot(1)->generation.fetch_add(1);
  EXPECT_TRUE(quiet.done());
  memory.arena().slot(1)->live.store(0);
  EXPECT_TRUE(Quiescence(memory.arena(), barriers, kAnyOwner).done());
}

TEST(Quiescence, ItsOwnWordDoesNotCount) {
  BenchArena memory;
  ThreadWord& word = memory.arena().slot(0)->threads[0];
  word.sequence.store(1);
  EXPECT_TRUE(Quiescence(memory.arena(), barriers, kAnyOwner, &word).done());
  EXPECT_FALSE(Quiescence(memory.arena(), barriers, kAnyOwner).done());
}

TEST(Quiescence, NumbersOfSlotsAndWordsThatAreGarbageAreCut) {
  BenchArena memory;
  memory.arena().header().slots_used.store(~0u);
  memory.arena().slot(1)->words_used.store(~0u);
  EXPECT_TRUE(Quiescence(memory.arena(), barriers, kAnyOwner).done());
}

TEST(Quiescence, LooksAtTheWordsThatThreadsHaveHad) {
  BenchArena memory;
  memory.arena().slot(1)->words_used.store(3);
  memory.arena().slot(1)->threads[3].sequence.store(7);
  EXPECT_TRUE(Quiescence(memory.arena(), barriers, kAnyOwner).done());
  memory.arena().slot(1)->words_used.store(4);
  EXPECT_FALSE(Quiescence(memory.arena(), barriers, kAnyOwner).done());
}

TEST(Epoch, RisesForTheOwnerOfWhatChangesOnly) {
  BenchArena memory;
  const Arena& arena = memory.arena();
  const auto epochs = [&arena] {
    return std::pair(arena.slot(0)->epoch.load(), arena.slot(1)->epoch.load());
  };
  EXPECT_TRUE(Quiescence(arena, barriers, 1).done());
  EXPECT_EQ(epochs(), std::pair(0ul, 1ul));
  advance_epoch(arena, 0);
  EXPECT_EQ(epochs(), std::pair(1ul, 1ul));
  EXPECT_TRUE(Quiescence(arena, barriers, kAnyOwner).done());
  EXPECT_EQ(epochs(), std::pair(2ul, 2ul));
  advance_epoch(arena, kMaxSlots);  // of no slot
  arena.header().slots_used.store(~0u);
  advance_epoch(arena, kAnyOwner);
  EXPECT_EQ(arena.slot(kMaxSlots - 1)->epoch.load(), 1u);
}

TEST(Epoch, OfAConnectionIsThatOfItsTwoProcesses) {
  BenchArena memory;
  const Arena& arena = memory.arena();
  EXPECT_NE(EpochPair().now(), kNoEpoch);
  const EpochPair pair(*arena.slot(0), *arena.slot(1));
  std::uint64_t before = pair.now();
  for (const std::uint32_t owner : {0u, 1u, kAnyOwner}) {
    advance_epoch(arena, owner);
    EXPECT_GT(pair.now(), before) << owner;
    before = pair.now();
  }
  advance_epoch(arena, 2);
  EXPECT_EQ(pair.now(), before);
}

// A connected pair of queue pairs, 7 of process 1 and 9 of process 2; process 3 looks on.
void connect_pair(const Arena& arena, verbs::QpType type) {
  const auto set = [&](std::uint32_t index, std::uint32_t owner, std::uint32_t peer) {
    QpEntry& qp = *arena.qp(index);
    qp.id.type = type;
    qp.id.owner_slot = owner;
    qp.connection.dest_qpn = peer | 0x40000;  // a generation
  };
  set(7, 1, 9);
  set(9, 2, 7);
}

bool waits(const Arena& arena, std::uint32_t owner) {
  return !Quiescence(arena, barriers, owner).done();
}

TEST(Quiescence, ARequestOfAConnectedQueuePairHoldsUpItsPeerAndItsOwnProcessOnly) {
  for (const verbs::QpType type : {verbs::QpType::Rc, verbs::QpType::Uc}) {
    BenchArena memory;
    const Arena& arena = memory.arena();
    connect_pair(arena, type);
    arena.slot(1)->threads[3].sequence.store(7 | executing::queue_pair(7));
    EXPECT_TRUE(waits(arena, 1));
    EXPECT_TRUE(waits(arena, 2));
    EXPECT_FALSE(waits(arena, 3));
    EXPECT_TRUE(waits(arena, kAnyOwner));
  }
}

// A stream: queue pairs of softibd's client, with which any process works.
TEST(Quiescence, ARequestOfAnothersConnectedQueuePairHoldsUpItsTwoProcessesAndThePoster) {
  BenchArena memory;
  const Arena& arena = memory.arena();
  connect_pair(arena, verbs::QpType::Rc);
  arena.qp(7)->id.owner_slot = 2;
  arena.qp(9)->id.owner_slot = 3;
  for (const std::uint32_t qp : {7u, 9u}) {
    arena.slot(1)->threads[3].sequence.store(7 | executing::queue_pair(qp));
    for (const std::uint32_t owner : {1u, 2u, 3u, kAnyOwner}) EXPECT_TRUE(waits(arena, owner));
    for (const std::uint32_t owner : {0u, 4u}) EXPECT_FALSE(waits(arena, owner)) << owner;
  }
}

TEST(Quiescence, OtherRequestsHoldUpAllAndOwnWorkItsOwnProcess) {
  BenchArena memory;
  const Arena& arena = memory.arena();
  connect_pair(arena, verbs::QpType::Ud);
  Shared64& word = arena.slot(1)->threads[3].sequence;
  for (const std::uint64_t what : {executing::kAnything, executing::queue_pair(7),
                                   executing::queue_pair(kMaxQps + 1), executing::queue_pair(9)}) {
    word.store(7 | what);  // a datagram, none, an index out of range, another process's
    EXPECT_TRUE(waits(arena, 3)) << what;
  }
  word.store(7 | executing::kOwn);
  EXPECT_FALSE(waits(arena, 3));
  EXPECT_TRUE(waits(arena, 1));
}

TEST(Quiescence, WhatAScopeMayTouchIsNoProgress) {
  BenchArena memory;
  const Arena& arena = memory.arena();
  connect_pair(arena, verbs::QpType::Rc);
  Shared64& word = arena.slot(1)->threads[3].sequence;
  word.store(7 | executing::queue_pair(7));
  Quiescence quiet(arena, barriers, 2);
  word.store(7);
  EXPECT_FALSE(quiet.done());
  word.store(8);
  EXPECT_TRUE(quiet.done());
}

// The store of a poster that entered before is in its core's store buffer until the barrier.
TEST(Quiescence, LooksAtTheWordsAfterEveryProcessHasPassedABarrier) {
  class LateStore final : public platform::Barriers {
   public:
    explicit LateStore(const Arena& arena) : arena_(arena) {}
    bool join() override { return true; }
    bool joined() const override { return true; }
    void threads() override { ADD_FAILURE() << "the poster may be of another process"; }
    void processes() override {
      epoch = arena_.slot(1)->epoch.load();
      arena_.slot(1)->threads[3].sequence.store(7);
    }
    std::uint64_t epoch = 0;

   private:
    Arena arena_;
  };
  BenchArena memory;
  LateStore late(memory.arena());
  const std::uint64_t before = memory.arena().slot(1)->epoch.load();
  EXPECT_FALSE(Quiescence(memory.arena(), late, kAnyOwner).done());
  EXPECT_EQ(late.epoch, before + 1) << "what posters remember is void before the barrier";
}

TEST(OpScope, SaysWhatItMayTouchAndWidensInside) {
  BenchArena memory;
  BenchHost host;
  MemoryPlane plane(memory.arena(), host, 0, Path::ProcessVm);
  Shared64& sequence = plane.thread_words().mine().sequence;
  for (const std::uint64_t inner : {executing::kOwn, executing::queue_pair(7)}) {
    const OpScope outer(plane, executing::queue_pair(7));
    const OpScope nested(plane, inner);
    EXPECT_EQ(executing::queue_pair_of(sequence.load()), 7u);
  }
  {
    const OpScope outer(plane, executing::queue_pair(7));
    const std::uint64_t count = sequence.load() & executing::kCount;
    {
      const OpScope nested(plane, executing::queue_pair(8));
      EXPECT_EQ(sequence.load(), count) << "anything";
    }
    EXPECT_EQ(sequence.load(), count);
  }
  EXPECT_EQ(sequence.load(), 6u) << "nothing stays of what it said";
}

TEST(OpScope, OfASharedWordNestsToo) {
  BenchArena memory;
  BenchHost host;
  MemoryPlane plane(memory.arena(), host, 0, Path::ProcessVm);
  std::vector<std::thread> owners;
  std::latch taken(kThreadsPerSlot - 1);
  std::latch gone(1);
  for (std::uint32_t i = 0; i + 1 < kThreadsPerSlot; ++i) {
    owners.emplace_back([&] {
      (void)plane.thread_words().mine();
      taken.count_down();
      gone.wait();
    });
  }
  taken.wait();
  ASSERT_TRUE(plane.thread_words().is_shared(plane.thread_words().mine()));
  host.on_relax = [] { FAIL() << "waits for itself"; };
  {
    const OpScope outer(plane);
    ASSERT_EQ(plane.thread_words().shared_lock().load(), 1u);
    {
      const OpScope inner(plane);
      EXPECT_EQ(plane.thread_words().shared_lock().load(), 1u);
    }
    EXPECT_EQ(plane.thread_words().mine().sequence.load() & 1, 1u);
  }
  EXPECT_EQ(plane.thread_words().shared_lock().load(), 0u);
  gone.count_down();
  for (std::thread& thread : owners) thread.join();
}

TEST(OpScope, MarksTheThreadAndNests) {
  BenchArena memory;
  BenchHost host;
  MemoryPlane plane(memory.arena(), host, 0, Path::ProcessVm);
  Shared64& sequence = plane.thread_words().mine().sequence;
  const std::uint64_t before = sequence.load();
  {
    const OpScope outer(plane);
    EXPECT_EQ(sequence.load(), before + 1);
    {
      const OpScope inner(plane);
      EXPECT_EQ(sequence.load(), before + 1);
    }
    EXPECT_EQ(sequence.load(), before + 1);
  }
  EXPECT_EQ(sequence.load(), before + 2);
}

// --- Keys, ranges, timers, the arena ---

TEST(LocalKeys, FindsOnlyTheWholeKey) {
  const LocalKeys keys;
  keys.at(5).key.store(0x5aa);
  EXPECT_NE(keys.find(0x5aa), nullptr);
  EXPECT_EQ(keys.find(0x5ab), nullptr);
  EXPECT_EQ(keys.find(0), nullptr);
  EXPECT_EQ(keys.find(~0u), nullptr);
  keys.at(5).key.store(0);
  EXPECT_EQ(keys.find(0x5aa), nullptr);
}

TEST(InRange, HoldsForAnyValues) {
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  EXPECT_TRUE(in_range(10, 5, 10, 5));
  EXPECT_TRUE(in_range(15, 0, 10, 5));
  EXPECT_FALSE(in_range(9, 1, 10, 5));
  EXPECT_FALSE(in_range(10, 6, 10, 5));
  EXPECT_FALSE(in_range(kMax, 2, 0, kMax));
  EXPECT_FALSE(in_range(5, kMax, 0, 100));
  EXPECT_TRUE(in_range(0, kMax, 0, kMax));
  EXPECT_FALSE(in_range(kMax - 1, 5, kMax - 1, 3));
}

TEST(RnrTimer, FollowsTheTable) {  // [IBA1 table 45]
  EXPECT_EQ(rnr_delay(0), std::chrono::microseconds(655'360));
  EXPECT_EQ(rnr_delay(1), std::chrono::microseconds(10));
  EXPECT_EQ(rnr_delay(5), std::chrono::microseconds(60));
  EXPECT_EQ(rnr_delay(20), std::chrono::microseconds(10'240));
  EXPECT_EQ(rnr_delay(32 + 1), rnr_delay(1)) << "five bits";
  for (std::uint8_t field = 2; field < 32; ++field) {
    EXPECT_GT(rnr_delay(field), rnr_delay(static_cast<std::uint8_t>(field - 1)));
  }
}

TEST(Arena, AnswersNothingOutside) {
  BenchArena memory;
  const Arena& arena = memory.arena();
  EXPECT_EQ(arena.qp(kMaxQps), nullptr);
  EXPECT_EQ(arena.cq(kMaxCqs), nullptr);
  EXPECT_EQ(arena.srq(~0u), nullptr);
  EXPECT_EQ(arena.key(kMaxKeys), nullptr);
  EXPECT_EQ(arena.slot(kMaxSlots), nullptr);
  EXPECT_EQ(arena.port(kMaxPorts), nullptr);
  EXPECT_EQ(arena.mcast(kMaxMcast), nullptr);
  EXPECT_EQ(arena.bounce(kMaxSlots, 0), nullptr);
  EXPECT_EQ(arena.bounce(0, kBouncesPerSlot), nullptr);
  const std::uint64_t end = place::kHeap + BenchArena::kHeapBytes;
  EXPECT_NE(arena.heap(place::kHeap, BenchArena::kHeapBytes), nullptr);
  EXPECT_EQ(arena.heap(place::kHeap - 1, 10), nullptr);
  EXPECT_EQ(arena.heap(place::kHeap, BenchArena::kHeapBytes + 1), nullptr);
  EXPECT_EQ(arena.heap(end, 1), nullptr);
  EXPECT_EQ(arena.heap(place::kHeap + 8, ~std::uint64_t{0} - 4), nullptr);
  EXPECT_EQ(arena.heap(~std::uint64_t{0}, 1), nullptr);
}

}  // namespace
}  // namespace ib::hca
