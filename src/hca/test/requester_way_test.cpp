// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Datagrams through switches: the entry of their way, by which the ports on it count, has each
// message once, however often it was tried.
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

using verbs::QpType;
using verbs::WcStatus;

constexpr std::uint16_t kLid = 7;
constexpr std::uint32_t kQkey = 0x11;
constexpr std::uint64_t kOnWire = 8 + 12 + 8 + 64 + 4;  // LRH, BTH, DETH, payload, ICRC

// kPeer is behind a switch; the entry of the way there is filled.
struct WayBench : PairBench {
  WayBench() : PairBench(Path::ProcessVm, 4096, QpType::Ud) {
    const Arena& arena = memory.arena();
    PortEntry& port = *arena.port(0);
    port.pkeys[0].store(0xffff);
    port.has_switches.store(1);
    arena.lid(kLid)->store(1);
    peer->id.qkey = kQkey;
    WayKey key;
    key.lid = kLid;
    key.pkey = 0xffff;
    way = arena.way(way_place(key.word()));
    way->key.store(key.word());
    way->word.store(WayWord{}.word());
    receive(1, 104);
    send();  // a receiver that had a receive once is waited for
    EXPECT_EQ(next(), WcStatus::Success);
    EXPECT_EQ(way->packets.load(), 1u);
  }
  void send() {
    const Sge sge{std::bit_cast<std::uint64_t>(mine.data()), 64, kLkey};
    SendWqe wqe;
    wqe.av.dlid = kLid;
    wqe.remote_qpn = kPeer;
    wqe.remote_qkey = kQkey;
    wqe.wr_id = ++posted;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    const OpScope scope(plane);
    EXPECT_EQ(requester->post(wqe), Status::Ok);
  }
  // Of the messages after the first.
  void expect_counted(std::uint64_t messages) const {
    EXPECT_EQ(way->packets.load(), 1 + messages);
    EXPECT_EQ(way->bytes.load(), (1 + messages) * kOnWire);
  }

  WayEntry* way = nullptr;
};

TEST(Way, AMessageThatWaitsForAReceiveIsCountedOnce) {
  WayBench b;
  b.send();
  EXPECT_EQ(b.next(), std::nullopt);
  for (int i = 0; i < 5; ++i) {
    b.host.time += std::chrono::milliseconds(2);
    EXPECT_TRUE(b.progress()) << "tried again";
  }
  b.receive(2, 104);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_NE(b.memory.completion(1, 1), nullptr);
  b.expect_counted(1);
}

// It has come to the receiver's port.
TEST(Way, AMessageThatWaitsInVainIsCountedOnce) {
  WayBench b;
  b.send();
  b.host.time += std::chrono::milliseconds(2);
  EXPECT_TRUE(b.progress());
  b.host.time += std::chrono::seconds(2);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
  ASSERT_EQ(b.host.traced.size(), 1u);
  EXPECT_EQ(b.host.traced[0].cause, Cause::NoReceive);
  EXPECT_EQ(b.memory.arena().port(0)->arrivals.unicast_packets.load(), 1u);
  b.expect_counted(1);
  b.send();  // is not waited for
  EXPECT_EQ(b.next(), WcStatus::Success);
  b.expect_counted(2);
}

TEST(Way, OneThatAPortInTheMiddleDropsIsNotCounted) {
  WayBench b;
  WayWord word;
  word.levels = 0;
  b.way->word.store(word.word());
  b.send();
  EXPECT_EQ(b.next(), WcStatus::Success);
  ASSERT_EQ(b.host.traced.size(), 1u);
  EXPECT_EQ(b.host.traced[0].cause, Cause::WayLane);
  b.expect_counted(0);
}

}  // namespace
}  // namespace ib::hca
