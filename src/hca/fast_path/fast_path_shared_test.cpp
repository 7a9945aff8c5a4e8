// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fast path into a shared receive queue: refuses without a trace what the slow path would do
// otherwise, and what it does looks like the slow path's work.
#include "hca/layout/shm_lock.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <ostream>

namespace ib::hca {
namespace {

using verbs::WcStatus;
using verbs::WrOpcode;
namespace access = verbs::access;

constexpr std::uint32_t kSrq = 1;
constexpr std::uint32_t kSlots = 16;

// The peer takes its receives from a shared queue; its memory is mapped here, and it was found.
struct Shared : PairBench {
  Shared() : PairBench(Path::Adopted), srq(*new (memory.arena().srq(kSrq)) SrqEntry) {
    KeyEntry& key = *memory.arena().key(key_index(kRkey));
    key.adopted.address = key.id.address;
    key.adopted.length = key.id.length;
    key.adopted.backing = 3;
    key.adopted.backing_generation = 1;
    host.backing = theirs.data();
    host.backing_size = theirs.size();
    srq.id.owner_slot = 1;
    srq.id.pd = 1;
    srq.id.slots = kSlots;
    srq.id.stride = receive_stride(4);
    srq.id.ring = memory.allocate(std::uint64_t{kSlots} * srq.id.stride);
    srq.id.generation.store(1);
    peer->id.srq = kSrq;
    peer->geometry.rq_ring = 0;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(post(WrOpcode::RdmaWrite, 16), Status::Ok);
      EXPECT_EQ(next(), WcStatus::Success);
    }
  }
  // As softibd does after it has changed an entry that posters read.
  void tell() { advance_epoch(memory.arena(), peer->id.owner_slot); }
  void supply(std::uint32_t id, std::uint32_t length, std::uint32_t pieces = 1,
              std::uint32_t key = kRkey) {
    const std::uint64_t tail = srq.producer.tail.load();
    std::byte* at = memory.arena().heap(srq.id.ring, std::uint64_t{kSlots} * srq.id.stride) +
                    std::uint64_t{RingOrder(kSlots).slot(tail)} * srq.id.stride;
    const ReceiveWqe wqe{id, pieces, 0};
    const Sge room{std::bit_cast<std::uint64_t>(theirs.data()), length, key};
    std::memcpy(at, &wqe, sizeof wqe);
    for (std::uint32_t i = 0; i < pieces; ++i) {
      std::memcpy(at + sizeof wqe + i * sizeof room, &room, sizeof room);
    }
    srq.producer.tail.store(tail + 1);
  }
  SendWqe request(WrOpcode opcode = WrOpcode::Send) {
    SendWqe wqe;
    wqe.wr_id = ++posted;
    wqe.opcode = opcode;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.imm = 0x01020304;
    return wqe;
  }
  bool goes_fast(const SendWqe& wqe) {
    const OpScope scope(plane);
    return requester->fast_path().try_post(wqe);
  }
  Status post_slowly(const SendWqe& wqe) {
    const OpScope scope(plane);
    return requester->post(wqe, Way::Slow);
  }

  SrqEntry& srq;
  Sge sge{std::bit_cast<std::uint64_t>(mine.data()), 8, kLkey};
};

struct Traces {
  std::uint64_t head, taken, intent, messages, bytes, sent;
  std::uint32_t lock, cq_lock, queued;
  bool operator==(const Traces&) const = default;
};
Traces traces(const Shared& s) {
  const auto& r = s.peer->responder;
  return {s.srq.consumer.head,
          r.srq_taken,
          r.cq_intent,
          s.own->requester.sends,
          s.own->requester.bytes,
          s.own->requester.messages,
          s.srq.consumer.lock,
          s.memory.arena().cq(1)->producer.lock,
          s.requester->queued()};
}

TEST(FastSharedPath, DeliversASendLikeTheSlowPath) {
  for (const WrOpcode opcode : {WrOpcode::Send, WrOpcode::SendWithImm}) {
    for (const std::uint32_t flags : {0u, verbs::send_flag::kSolicited}) {
      for (const std::uint32_t shared_cq : {0u, 1u}) {
        Shared s;
        s.memory.arena().cq(1)->id.shared_producers = shared_cq;
        s.supply(7, 8);
        s.supply(9, 100);
        SendWqe wqe = s.request(opcode);
        wqe.flags = flags;
        EXPECT_TRUE(s.goes_fast(wqe));
        EXPECT_TRUE(s.same(8));
        const Traces once = traces(s);
        EXPECT_EQ(s.post_slowly(wqe), Status::Ok);
        const Cqe* first = s.memory.completion(1, 0);
        const Cqe* second = s.memory.completion(1, 1);
        ASSERT_TRUE(first != nullptr && second != nullptr);
        EXPECT_EQ(first->wqe, 7u);
        EXPECT_EQ(second->wqe, 9u);
        EXPECT_EQ(first->srq, kSrq);
        constexpr std::size_t kAfter = offsetof(Cqe, srq);
        EXPECT_EQ(std::memcmp(reinterpret_cast<const std::byte*>(first) + kAfter,
                              reinterpret_cast<const std::byte*>(second) + kAfter,
                              offsetof(Cqe, seq) - kAfter),
                  0);
        const Traces twice = traces(s);
        EXPECT_EQ(once.head, 1u);
        EXPECT_EQ(twice.head, 2u);
        EXPECT_EQ(twice.messages, 2 * once.messages);
        EXPECT_EQ(twice.bytes, once.bytes + 8);
        EXPECT_EQ(once.taken | once.intent | once.lock | once.cq_lock, 0u);
        EXPECT_EQ(s.next(), WcStatus::Success);
        EXPECT_EQ(s.next(), WcStatus::Success);
      }
    }
  }
}

struct Obstacle {
  const char* name;
  void (*place)(Shared&);
  bool told = true;  // false: it must be detected without a raised epoch
};
void PrintTo(const Obstacle& o, std::ostream* out) {
  *out << o.name;
}

class FastSharedPathRefuses : public ::testing::TestWithParam<Obstacle> {};

TEST_P(FastSharedPathRefuses, AndLeavesNoTrace) {
  Shared s;
  s.supply(6, 100);
  EXPECT_TRUE(s.goes_fast(s.request()));
  EXPECT_EQ(s.next(), WcStatus::Success);
  GetParam().place(s);
  if (GetParam().told) s.tell();
  std::fill(s.theirs.begin(), s.theirs.end(), std::byte{0xee});
  const std::vector<std::byte> theirs = s.theirs;
  const Traces before = traces(s);
  EXPECT_FALSE(s.goes_fast(s.request()));
  EXPECT_EQ(traces(s), before);
  EXPECT_EQ(s.theirs, theirs);
  EXPECT_EQ(s.memory.completion(1, 1), nullptr);
  EXPECT_EQ(s.next(), std::nullopt);
  EXPECT_TRUE(s.host.raised.empty());
}

const Obstacle kObstacles[] = {
    {"none posted", [](Shared&) {}, false},
    {"garbage head",
     [](Shared& s) {
       s.supply(5, 100);
       s.srq.consumer.head = 1000;
     },
     false},
    {"garbage tail", [](Shared& s) { s.srq.producer.tail = 1000; }, false},
    {"too small", [](Shared& s) { s.supply(5, 7); }, false},
    {"two pieces", [](Shared& s) { s.supply(5, 8, 2); }, false},
    {"no piece", [](Shared& s) { s.supply(5, 8, 0); }, false},
    {"more pieces than there is room",
     [](Shared& s) {
       s.supply(5, 8, 1);
       s.tell();
       const ReceiveWqe wqe{5, 77, 0};
       const std::uint64_t second = std::uint64_t{RingOrder(kSlots).slot(1)} * s.srq.id.stride;
       std::memcpy(s.memory.arena().heap(s.srq.id.ring + second, sizeof wqe), &wqe, sizeof wqe);
     }},
    {"unknown key", [](Shared& s) { s.supply(5, 100, 1, kRkey + 1); }, false},
    {"not to be written",
     [](Shared& s) {
       s.supply(5, 100);
       s.memory.arena().key(key_index(kRkey))->id.access = access::kRemoteWrite;
     }},
    {"another poster is there",
     [](Shared& s) {
       s.supply(5, 100);
       s.srq.consumer.lock = lock_owner(5);
     },
     false},
    {"another PD",
     [](Shared& s) {
       s.supply(5, 100);
       s.srq.id.pd = 2;
     }},
    {"of another process",
     [](Shared& s) {
       s.supply(5, 100);
       s.srq.id.owner_slot = 0;
     }},
    {"gone",
     [](Shared& s) {
       s.supply(5, 100);
       s.srq.id.generation = 0;
     }},
    {"another, with an impossible ring",
     [](Shared& s) {
       s.supply(5, 100);
       s.srq.id.generation = 2;
       s.srq.id.slots = 3;
     }},
    {"CQ with timestamps",
     [](Shared& s) {
       s.supply(5, 100);
       s.memory.arena().cq(1)->id.flags = verbs::control::cq_flag::kTimestamp;
     }},
};
INSTANTIATE_TEST_SUITE_P(All, FastSharedPathRefuses, ::testing::ValuesIn(kObstacles));

TEST(FastSharedPath, TakesFromAQueueThatIsNew) {
  Shared s;
  s.supply(6, 100);
  EXPECT_TRUE(s.goes_fast(s.request()));
  s.srq.id.generation = 2;
  s.srq.id.ring = s.memory.allocate(std::uint64_t{kSlots} * s.srq.id.stride);
  s.tell();
  s.supply(7, 100);
  EXPECT_TRUE(s.goes_fast(s.request()));
  ASSERT_NE(s.memory.completion(1, 1), nullptr);
  EXPECT_EQ(s.memory.completion(1, 1)->wqe, 7u);
}

// Others take between two messages of this one.
TEST(FastSharedPath, TakesWhatOthersHaveLeft) {
  Shared s;
  for (std::uint32_t id = 0; id < 8; ++id) s.supply(id, 100);
  EXPECT_TRUE(s.goes_fast(s.request()));
  s.srq.consumer.head = 5;
  EXPECT_TRUE(s.goes_fast(s.request()));
  EXPECT_EQ(s.memory.completion(1, 1)->wqe, 5u);
  s.srq.consumer.head = 4;  // one was given back
  EXPECT_TRUE(s.goes_fast(s.request()));
  EXPECT_EQ(s.memory.completion(1, 2)->wqe, 4u);
}

TEST(FastSharedPath, RaisesTheEventOfTheLimitOnce) {
  Shared s;
  for (std::uint32_t id = 0; id < 6; ++id) s.supply(id, 100);
  s.srq.event.limit = 4;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(s.goes_fast(s.request()));
  EXPECT_TRUE(s.host.raised.empty());  // 4 are left
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(s.goes_fast(s.request()));
  ASSERT_EQ(s.host.raised.size(), 1u);
  EXPECT_EQ(s.host.raised[0].type, verbs::EventType::SrqLimitReached);
  EXPECT_EQ(s.host.raised[0].index, kSrq);
  EXPECT_EQ(s.host.raised[0].generation, 1u);
}

TEST(FastSharedPath, FiresTheEventOfTheCompletionQueue) {
  Shared s;
  CqEntry& cq = *s.memory.arena().cq(1);
  cq.id.channel = 1;
  cq.arm.armed = 1;
  s.tell();
  s.supply(5, 100);
  EXPECT_TRUE(s.goes_fast(s.request()));
  EXPECT_EQ(s.host.notified, std::vector<std::uint32_t>{1});
}

// It need not look for a request of an event in a queue that was never armed, if the barriers of
// CqConsumer::arm() reach it.
TEST(FastSharedPath, FiresNoEventOfAQueueThatWasNeverArmed) {
  for (const bool fenced : {false, true}) {
    for (const bool used : {false, true}) {
      Shared s;
      s.memory.arena().header().fenced_entries = fenced ? 1 : 0;
      CqEntry& cq = *s.memory.arena().cq(1);
      cq.id.channel = 1;
      cq.arm.armed = 1;
      cq.arm.used = used ? 1 : 0;
      s.tell();
      s.supply(5, 100);
      EXPECT_TRUE(s.goes_fast(s.request()));
      EXPECT_EQ(s.host.notified.size(), fenced || used ? 1u : 0u);
    }
  }
}

// Once it is taken it cannot go back, since others may have taken later ones: the slow path goes on
// with it.
TEST(FastSharedPath, HoldsAReceiveThatItCannotComplete) {
  Shared s;
  s.supply(5, 100);
  s.supply(6, 100);
  CqEntry& cq = *s.memory.arena().cq(1);
  cq.id.shared_producers = 1;
  cq.producer.lock = lock_owner(5);  // for longer than anybody waits
  const SendWqe wqe = s.request();
  EXPECT_FALSE(s.goes_fast(wqe));
  EXPECT_EQ(s.srq.consumer.head, 1u);
  EXPECT_EQ(s.peer->responder.srq_taken, 6u);
  EXPECT_EQ(s.peer->responder.cq_intent, 0u);
  EXPECT_EQ(s.requester->queued(), 0u);
  EXPECT_FALSE(s.goes_fast(wqe)) << "and does not take another";
  EXPECT_EQ(s.srq.consumer.head, 1u);
  unlock(cq.producer.lock);
  EXPECT_EQ(s.post_slowly(wqe), Status::Ok);
  EXPECT_EQ(s.next(), WcStatus::Success);
  EXPECT_EQ(s.srq.consumer.head, 1u);
  EXPECT_EQ(s.peer->responder.srq_taken, 0u);
  EXPECT_EQ(s.memory.completion(1, 0)->wqe, 5u);
  EXPECT_TRUE(s.goes_fast(s.request()));
  EXPECT_EQ(s.memory.completion(1, 1)->wqe, 6u);
}

TEST(FastSharedPath, AFullCompletionQueueIsAnErrorAsOnTheSlowPath) {
  Shared s;
  s.supply(5, 100);
  s.memory.arena().cq(1)->producer.producer = 63;
  EXPECT_EQ(s.post(WrOpcode::Send, 8), Status::Ok);
  EXPECT_EQ(s.next(), WcStatus::RemOpErr);
  EXPECT_EQ(s.last.vendor_err, static_cast<std::uint32_t>(Cause::CqOverflow));
  EXPECT_EQ(s.host.raised.size(), 2u);  // the CQ, the queue pair
  EXPECT_EQ(s.srq.consumer.head, 1u);
}

// Many queue pairs complete there; it is held for a few stores.
TEST(FastSharedPath, WaitsForTheCompletionQueue) {
  Shared s;
  s.supply(5, 100);
  CqEntry& cq = *s.memory.arena().cq(1);
  cq.id.shared_producers = 1;
  cq.producer.lock = lock_owner(5);
  s.host.on_relax = [&] { unlock(cq.producer.lock); };
  EXPECT_TRUE(s.goes_fast(s.request()));
  EXPECT_EQ(cq.producer.lock, 0u);
  EXPECT_NE(s.memory.completion(1, 0), nullptr);
}

// A send of inline pieces, as UCX's of short messages: a header, the program's bytes.
struct Pieces : Shared {
  explicit Pieces(const std::vector<std::uint32_t>& lengths) {
    std::uint64_t at = std::bit_cast<std::uint64_t>(mine.data());
    for (const std::uint32_t length : lengths) {
      list.push_back({at, length, 0});
      at += length;
    }
    std::fill(theirs.begin(), theirs.end(), std::byte{0xee});
  }
  SendWqe request() {
    SendWqe wqe = Shared::request();
    wqe.flags = verbs::send_flag::kInline;
    wqe.inline_data = true;
    wqe.sge = list.data();
    wqe.num_sge = static_cast<std::uint32_t>(list.size());
    return wqe;
  }

  std::vector<Sge> list;
};

TEST(FastGatheredPath, DeliversInlinePiecesAsOneMessage) {
  for (const bool shared : {true, false}) {
    for (const auto& lengths : std::vector<std::vector<std::uint32_t>>{
             {9, 8}, {9, 0}, {0, 8}, {1, 2, 3, 4, 5}, {64, 64}, {128, 0}}) {
      Pieces p(lengths);
      if (!shared) {
        p.peer->id.srq = kNone;
        p.peer->geometry.rq_ring = p.srq.id.ring;
        ++p.peer->id.generation;
        p.tell();
        EXPECT_EQ(p.post(WrOpcode::RdmaWrite, 16), Status::Ok);
        EXPECT_EQ(p.next(), WcStatus::Success);
        p.receive(7, 200);
      }
      std::fill(p.theirs.begin(), p.theirs.end(), std::byte{0xee});
      if (shared) p.supply(7, 200);
      std::uint32_t bytes = 0;
      for (const Sge& piece : p.list) bytes += piece.length;
      EXPECT_TRUE(p.goes_fast(p.request()));
      EXPECT_TRUE(p.same(bytes));
      EXPECT_EQ(p.theirs[bytes], std::byte{0xee});
      ASSERT_NE(p.memory.completion(1, 0), nullptr);
      EXPECT_EQ(p.memory.completion(1, 0)->wqe, 7u);
      EXPECT_EQ(p.memory.completion(1, 0)->byte_len, bytes);
      EXPECT_EQ(p.memory.completion(1, 0)->srq, shared ? kSrq : kNone);
      EXPECT_EQ(p.next(), WcStatus::Success);
      EXPECT_EQ(p.last.byte_len, bytes);
    }
  }
}

TEST(FastGatheredPath, LeavesWhatIsNoShortInlineSendToTheSlowPath) {
  const auto refused = [](const std::vector<std::uint32_t>& lengths,
                          void (*change)(Pieces&, SendWqe&)) {
    Pieces p(lengths);
    p.supply(5, 100);
    SendWqe wqe = p.request();
    change(p, wqe);
    const std::vector<std::byte> theirs = p.theirs;
    const Traces before = traces(p);
    EXPECT_FALSE(p.goes_fast(wqe));
    EXPECT_EQ(traces(p), before);
    EXPECT_EQ(p.theirs, theirs);
  };
  const auto none = [](Pieces&, SendWqe&) {};
  refused({0, 0}, none);
  refused({}, none);
  refused({64, 65}, none);  // max_inline: 128
  refused({9, 92}, none);   // the receive: 100
  refused({9, ~0u, 8}, none);
  refused({9, 8}, [](Pieces& p, SendWqe&) { p.list[1].length = verbs::limits::kMaxInline - 8; });
  refused({9, 8}, [](Pieces& p, SendWqe& wqe) {
    p.list.resize(kMaxSge + 1);
    wqe.sge = p.list.data();
    wqe.num_sge = kMaxSge + 1;
  });
  refused({9, 8}, [](Pieces& p, SendWqe& wqe) {
    wqe.inline_data = false;
    wqe.flags = 0;
    for (Sge& piece : p.list) piece.lkey = kLkey;
  });
  refused({9, 8}, [](Pieces&, SendWqe& wqe) { wqe.opcode = WrOpcode::SendWithInv; });
  refused({9, 8}, [](Pieces& p, SendWqe& wqe) {
    wqe.opcode = WrOpcode::RdmaWrite;
    wqe.rkey = kRkey;
    wqe.remote_address = std::bit_cast<std::uint64_t>(p.theirs.data());
  });
}

// [IBA1 11.4.1.1]: the program may change its bytes as soon as the call has returned, and messages
// are delivered in the order of their posting.
TEST(FastGatheredPath, WaitsBehindAnEarlierRequestWithItsBytes) {
  Pieces p({9, 8});
  EXPECT_EQ(p.post(WrOpcode::Send, 8), Status::Ok);  // no receive yet
  const std::vector<std::byte> sent(p.mine.begin(), p.mine.begin() + 17);
  p.supply(5, 100);
  EXPECT_FALSE(p.goes_fast(p.request()));
  const SendWqe wqe = p.request();
  {
    const OpScope scope(p.plane);
    EXPECT_EQ(p.requester->post(wqe), Status::Ok);
  }
  std::fill(p.mine.begin() + 8, p.mine.end(), std::byte{0x11});
  p.supply(6, 100);
  p.host.time += std::chrono::seconds(1);
  EXPECT_FALSE(p.progress());
  EXPECT_EQ(p.next(), WcStatus::Success);
  EXPECT_EQ(p.last.byte_len, 8u);
  EXPECT_EQ(p.next(), WcStatus::Success);
  EXPECT_EQ(p.last.byte_len, 17u);
  EXPECT_EQ(p.memory.completion(1, 0)->wqe, 5u);
  EXPECT_EQ(p.memory.completion(1, 1)->wqe, 6u);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), p.theirs.begin()));
}

TEST(FastGatheredPath, AMessageThatDoesNotFitBreaksTheConnection) {
  Pieces p({9, 92});
  p.supply(5, 100);
  const SendWqe wqe = p.request();
  {
    const OpScope scope(p.plane);
    EXPECT_EQ(p.requester->post(wqe), Status::Ok);
  }
  EXPECT_EQ(p.next(), WcStatus::RemInvReqErr);
  ASSERT_NE(p.memory.completion(1, 0), nullptr);
  EXPECT_EQ(p.memory.completion(1, 0)->status, static_cast<std::uint32_t>(WcStatus::LocLenErr));
}

TEST(FastGatheredPath, HoldsAReceiveThatItCannotComplete) {
  Pieces p({9, 8});
  p.supply(5, 100);
  CqEntry& cq = *p.memory.arena().cq(1);
  cq.id.shared_producers = 1;
  cq.producer.lock = lock_owner(5);  // for longer than anybody waits
  const SendWqe wqe = p.request();
  EXPECT_FALSE(p.goes_fast(wqe));
  EXPECT_EQ(p.theirs[0], std::byte{0xee});
  EXPECT_EQ(p.peer->responder.srq_taken, 6u);
  unlock(cq.producer.lock);
  EXPECT_EQ(p.post_slowly(wqe), Status::Ok);
  EXPECT_EQ(p.next(), WcStatus::Success);
  EXPECT_TRUE(p.same(17));
  EXPECT_EQ(p.memory.completion(1, 0)->wqe, 5u);
}

}  // namespace
}  // namespace ib::hca
