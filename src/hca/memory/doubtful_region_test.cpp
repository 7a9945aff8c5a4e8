// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Regions whose mappings the program has changed (LocalKeys::doubt): their bytes are moved by the
// system, which returns errors, and never by loads and stores, which would be a signal here.
#include "hca/queues/receive_ring.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

using verbs::QpState;
using verbs::WcStatus;
using verbs::WrOpcode;

constexpr std::size_t kBytes = 4096;

// `mine` is a page of its own; `theirs` is mapped here.
struct DoubtfulBench : PairBench {
  DoubtfulBench() : PairBench(Path::Auto, kBytes) {
    void* mapped =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    IB_ASSERT(mapped != MAP_FAILED);
    page = static_cast<std::byte*>(mapped);
    plane.local_keys().at(key_index(kLkey)).address = page;
    auto& id = memory.arena().key(key_index(kRkey))->id;
    id.kind = KeyKind::DeviceMemory;
    id.address = memory.allocate(kBytes);
    there = memory.arena().heap(id.address, kBytes);
    page[0] = std::byte{1};
  }
  ~DoubtfulBench() { (void)::munmap(page, kBytes); }
  DoubtfulBench(const DoubtfulBench&) = delete;
  DoubtfulBench& operator=(const DoubtfulBench&) = delete;

  void take_away() {
    (void)::mprotect(page, kBytes, PROT_NONE);
    host.reach.gone = {std::bit_cast<std::uint64_t>(page), kBytes};
    plane.local_keys().doubt(kLkey);
  }
  WcStatus run(WrOpcode opcode, std::uint64_t n, std::uint32_t flags = 0) {
    EXPECT_EQ(post(opcode, n, flags), Status::Ok);
    return next().value_or(WcStatus::GeneralErr);
  }
  std::byte* page = nullptr;
  std::byte* there = nullptr;
};

TEST(DoubtfulRegion, WorksAsBefore) {
  DoubtfulBench b;
  b.plane.local_keys().doubt(kLkey);
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite, 8), WcStatus::Success);
  EXPECT_EQ(b.there[0], std::byte{1});
  b.there[0] = std::byte{2};
  EXPECT_EQ(b.run(WrOpcode::RdmaRead, 3000), WcStatus::Success);
  EXPECT_EQ(b.page[0], std::byte{2});
}

TEST(DoubtfulRegion, ThatIsGoneIsALocalErrorOfEveryRequest) {
  for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
    for (const std::uint64_t bytes : {8u, 3000u}) {
      DoubtfulBench b;
      EXPECT_EQ(b.run(opcode, bytes), WcStatus::Success);  // known to the fast path from now on
      b.take_away();
      EXPECT_EQ(b.run(opcode, bytes), WcStatus::LocProtErr);
      EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::LocalMemoryGone));
      EXPECT_EQ(b.peer->id.state.load(), QpState::Rts);
    }
  }
}

TEST(DoubtfulRegion, EndsWithItsKey) {
  DoubtfulBench b;
  LocalKey& key = b.plane.local_keys().at(key_index(kLkey));
  b.plane.local_keys().doubt(kLkey);
  EXPECT_TRUE(key.is_doubtful());
  b.plane.local_keys().hide(key_index(kLkey));
  key.key.store(kLkey + 1);  // another region at the same index
  EXPECT_FALSE(key.is_doubtful());
}

// A small message that came inside its completion.
TEST(DoubtfulRegion, ThatIsGoneFailsTheReceiveWhenItIsPolled) {
  DoubtfulBench b;
  const ReceiveRing::Geometry geometry{b.own->geometry.rq_ring, b.own->geometry.rq_slots,
                                       b.own->geometry.rq_stride, 16, 4};
  const auto ring = OwnReceives::create(b.memory.arena(), geometry, b.own->owner.rq_tail);
  ASSERT_NE(ring, nullptr);
  const Sge room{std::bit_cast<std::uint64_t>(b.mine.data()), 64, kLkey};
  ASSERT_EQ(ring->post(5, {&room, 1}), Status::Ok);
  b.take_away();
  Cqe cqe{};
  cqe.wqe = 0;
  cqe.qpn = kMine;
  cqe.inline_length = 8;
  WcStatus status = WcStatus::Success;
  std::uint64_t wr_id = 0;
  EXPECT_TRUE(finish(b.plane, *ring, 1, cqe, status, wr_id));
  EXPECT_EQ(wr_id, 5u);
  EXPECT_EQ(status, WcStatus::LocProtErr);
  EXPECT_EQ(b.own->id.state.load(), QpState::Error);
}

}  // namespace
}  // namespace ib::hca
