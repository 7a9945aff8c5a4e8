// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Regions that are lists of ranges [IBA1 10.6.2.2], as posters see them: of a peer's memory, of
// device memory, and of this process.
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ib::hca {
namespace {

using verbs::WcStatus;
using verbs::WrOpcode;

constexpr std::uint32_t kRanges = 0x400;
constexpr std::uint64_t kIova = 0x10000;

struct Place {
  std::uint64_t address;
  std::uint64_t length;
};

RangeList list_of(const std::vector<Place>& places, KeyKind kind) {
  RangeList list;
  list.kind = kind;
  for (const Place& place : places) list.append(place.address, place.length);
  return list;
}

// The lkey kRanges covers them.
void cache_ranges(MemoryPlane& plane, const RangeList& list, std::uint64_t length) {
  BenchArena::cache_key(plane, kRanges, nullptr, length);
  LocalKey& local = plane.local_keys().at(key_index(kRanges));
  local.iova = kIova;
  local.kind = KeyKind::Ranges;
  local.ranges = &list;
}

// The peer's key kRanges covers the pieces that are given; so does mine, for SGEs.
struct RangesBench : PairBench {
  explicit RangesBench(KeyKind kind = KeyKind::Region) : kind_(kind) {}

  std::uint64_t their_address(std::uint64_t offset) const {
    return std::bit_cast<std::uint64_t>(theirs.data()) + offset;
  }
  RangeList& cover(const std::vector<Place>& places) {
    memory.make_key(kRanges, 1, nullptr, 0);
    const std::uint64_t at = memory.allocate(sizeof(RangeList));
    auto* list = new (memory.arena().heap(at, sizeof(RangeList))) RangeList(list_of(places, kind_));
    KeyEntry& entry = *memory.arena().key(key_index(kRanges));
    entry.id.kind = KeyKind::Ranges;
    entry.id.ranges = at;
    entry.id.iova = kIova;
    entry.id.length = std::accumulate(places.begin(), places.end(), std::uint64_t{0},
                                      [](auto sum, const Place& p) { return sum + p.length; });
    return *list;
  }
  WcStatus run(WrOpcode opcode, std::uint64_t offset, std::uint32_t n, std::uint64_t operand = 0) {
    const Sge sge{std::bit_cast<std::uint64_t>(mine.data()), n, kLkey};
    SendWqe wqe;
    wqe.opcode = opcode;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.rkey = kRanges;
    wqe.remote_address = kIova + offset;
    wqe.compare_add = operand;
    const OpScope scope(plane);
    EXPECT_EQ(requester->post(wqe), Status::Ok);
    return next().value_or(WcStatus::GeneralErr);
  }

 private:
  KeyKind kind_;
};

TEST(PhysicalRegion, AWriteIsSpreadOverTheRangesOfAPeer) {
  RangesBench b;
  b.cover({{b.their_address(1000), 16}, {b.their_address(0), 104}, {b.their_address(2000), 80}});
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite, 0, 200), WcStatus::Success);
  const auto same = [&](std::size_t from, std::size_t to, std::size_t n) {
    return std::memcmp(b.mine.data() + from, b.theirs.data() + to, n) == 0;
  };
  EXPECT_TRUE(same(0, 1000, 16));
  EXPECT_TRUE(same(16, 0, 104));
  EXPECT_TRUE(same(120, 2000, 80));
  EXPECT_EQ(b.theirs[1016], std::byte{0});
  EXPECT_EQ(b.theirs[104], std::byte{0});
  EXPECT_EQ(b.theirs[2080], std::byte{0});
}

TEST(PhysicalRegion, AReadGathersWhatLiesInTheMiddle) {
  RangesBench b;
  b.cover({{b.their_address(1000), 16}, {b.their_address(0), 104}, {b.their_address(2000), 80}});
  for (std::size_t i = 0; i < b.theirs.size(); ++i) b.theirs[i] = std::byte(i * 7);
  EXPECT_EQ(b.run(WrOpcode::RdmaRead, 10, 120), WcStatus::Success);
  EXPECT_EQ(std::memcmp(b.mine.data(), b.theirs.data() + 1010, 6), 0);
  EXPECT_EQ(std::memcmp(b.mine.data() + 6, b.theirs.data(), 104), 0);
  EXPECT_EQ(std::memcmp(b.mine.data() + 110, b.theirs.data() + 2000, 10), 0);
}

TEST(PhysicalRegion, EndsWhereItsLastRangeEnds) {
  RangesBench b;
  b.cover({{b.their_address(1000), 16}, {b.their_address(0), 104}});
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite, 100, 20), WcStatus::Success);
  RangesBench over;
  over.cover({{over.their_address(1000), 16}, {over.their_address(0), 104}});
  EXPECT_EQ(over.run(WrOpcode::RdmaWrite, 100, 21), WcStatus::RemAccessErr);
}

TEST(PhysicalRegion, AnAtomicFindsItsWordInAnyRange) {
  RangesBench b;
  b.cover({{b.their_address(1000), 16}, {b.their_address(8), 104}});
  const std::uint64_t seven = 7;
  std::memcpy(b.theirs.data() + 8, &seven, sizeof seven);
  EXPECT_EQ(b.run(WrOpcode::AtomicFetchAdd, 16, 8, 5), WcStatus::Success);
  std::uint64_t word = 0;
  std::memcpy(&word, b.theirs.data() + 8, sizeof word);
  EXPECT_EQ(word, 12u);
  std::memcpy(&word, b.mine.data(), sizeof word);
  EXPECT_EQ(word, 7u);
}

TEST(PhysicalRegion, RangesOfDeviceMemoryAreTouchedDirectly) {
  RangesBench b(KeyKind::DeviceMemory);
  b.host.reach.vm = Status::AccessDenied;
  const std::uint64_t first = b.memory.allocate(64);
  const std::uint64_t second = b.memory.allocate(64);
  b.cover({{second, 64}, {first, 64}});
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite, 0, 128), WcStatus::Success);
  const Arena& arena = b.memory.arena();
  EXPECT_EQ(std::memcmp(b.mine.data(), arena.heap(second, 64), 64), 0);
  EXPECT_EQ(std::memcmp(b.mine.data() + 64, arena.heap(first, 64), 64), 0);
  EXPECT_EQ(b.run(WrOpcode::AtomicFetchAdd, 64, 8, 1), WcStatus::Success);
}

TEST(PhysicalRegion, AnSgeMayLieInManyRanges) {
  PairBench b;
  b.receive(1, 4096);
  RangeList list = list_of({{std::bit_cast<std::uint64_t>(b.mine.data() + 512), 256},
                            {std::bit_cast<std::uint64_t>(b.mine.data()), 256}},
                           KeyKind::Region);
  cache_ranges(b.plane, list, 512);
  const Sge sge{kIova + 8, 504, kRanges};
  SendWqe wqe;
  wqe.sge = &sge;
  wqe.num_sge = 1;
  const OpScope scope(b.plane);
  EXPECT_EQ(b.requester->post(wqe), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(std::memcmp(b.theirs.data(), b.mine.data() + 520, 248), 0);
  EXPECT_EQ(std::memcmp(b.theirs.data() + 248, b.mine.data(), 256), 0);
}

TEST(PhysicalRegion, MorePiecesThanARequestMayHaveAreRefused) {
  PairBench b;
  b.receive(1, 4096);
  std::vector<Place> places(verbs::limits::kMaxRanges,
                            {std::bit_cast<std::uint64_t>(b.mine.data()), 8});
  RangeList list = list_of(places, KeyKind::Region);
  const auto whole = static_cast<std::uint32_t>(places.size() * 8);
  cache_ranges(b.plane, list, whole);
  const std::array<Sge, 2> sge{{{kIova, whole, kRanges}, {kIova, whole, kRanges}}};
  SendWqe wqe;
  wqe.sge = sge.data();
  const OpScope scope(b.plane);
  wqe.num_sge = 1;
  EXPECT_EQ(b.requester->post(wqe), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::Success);
  wqe.num_sge = 2;
  EXPECT_EQ(b.requester->post(wqe), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::LocProtErr);
  EXPECT_EQ(b.host.traced.back().cause, Cause::LocalPieces);
}

TEST(PhysicalRegion, NonsenseInSharedMemoryIsAnErrorNotACrash) {
  const auto broken = [](auto&& damage) {
    RangesBench b(KeyKind::DeviceMemory);
    const std::uint64_t at = b.memory.allocate(64);
    damage(b.cover({{at, 64}, {at, 64}}), *b.memory.arena().key(key_index(kRanges)));
    return b.run(WrOpcode::RdmaWrite, 0, 128);
  };
  EXPECT_EQ(broken([](RangeList& list, KeyEntry&) { list.count = 0; }), WcStatus::RemOpErr);
  EXPECT_EQ(broken([](RangeList& list, KeyEntry&) { list.range[0].start = ~0ull; }),
            WcStatus::RemOpErr);
  EXPECT_EQ(broken([](RangeList& list, KeyEntry&) { list.range[1].length = 0; }),
            WcStatus::RemOpErr);
  EXPECT_EQ(broken([](RangeList& list, KeyEntry&) { list.range[1].address = ~0ull - 8; }),
            WcStatus::RemOpErr);
  EXPECT_EQ(broken([](RangeList&, KeyEntry& key) { key.id.ranges = ~0ull; }),
            WcStatus::RemAccessErr);
  // A search in a list that is in no order finds anything or nothing, but it ends.
  EXPECT_NE(broken([](RangeList& list, KeyEntry&) { list.count = 0xffffffff; }),
            WcStatus::GeneralErr);
}

}  // namespace
}  // namespace ib::hca
