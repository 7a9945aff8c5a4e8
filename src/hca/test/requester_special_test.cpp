// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Datagrams of queue pairs 0 and 1 of a port [IBA1 3.9.2, 9.6.2, 10.9]: who reaches whom.
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

using verbs::PortState;
using verbs::QpType;
using verbs::WcStatus;

constexpr std::uint16_t kLid = 7;
constexpr std::uint32_t kMad = 256;

// Both queue pairs are on the same port; each test chooses their types.
struct SpecialBench : PairBench {
  SpecialBench(QpType from, QpType to) : PairBench(Path::ProcessVm, 4096, from) {
    PortEntry& port = port_entry();
    memory.arena().lid(kLid)->store(1);
    port.pkeys[0].store(0xffff);
    own->id.qkey = verbs::kGsiQkey;
    peer->id.qkey = 0x1234;
    peer->id.type = to;
    if (verbs::is_special(to)) port.special[static_cast<std::size_t>(to)].store(kPeer);
    receive(5, kMad + 40);
  }
  PortEntry& port_entry() const { return *memory.arena().port(0); }
  // Returns the receiver's completion, or nullptr if there is none.
  const Cqe* send(std::uint32_t number, std::uint32_t qkey, std::uint16_t pkey_index = 0,
                  std::uint32_t bytes = kMad) {
    const Sge sge{std::bit_cast<std::uint64_t>(mine.data()), bytes, kLkey};
    SendWqe wqe;
    wqe.wr_id = ++posted;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.av.dlid = kLid;
    wqe.remote_qpn = number;
    wqe.remote_qkey = qkey;
    wqe.pkey_index = pkey_index;
    const OpScope scope(plane);
    EXPECT_EQ(requester->post(wqe), Status::Ok);
    return memory.completion(1, 0);
  }
  bool arrived() const {
    return std::equal(mine.begin(), mine.begin() + kMad, theirs.begin() + 40);
  }
};

TEST(SpecialQueuePair, AGeneralMessageReachesWhoHasQueuePairOne) {
  SpecialBench b(QpType::Gsi, QpType::Gsi);
  const Cqe* got = b.send(1, verbs::kGsiQkey);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(got->src_qp, 1u) << "the number on the wire, not the name of the entry";
  EXPECT_EQ(got->slid, kLid);
  EXPECT_EQ(got->qpn, kPeer);
  EXPECT_EQ(got->byte_len, kMad + 40);
  EXPECT_TRUE(b.arrived());
}

TEST(SpecialQueuePair, ADatagramQueuePairReachesItWithTheWellKnownKeyOnly) {
  SpecialBench good(QpType::Ud, QpType::Gsi);
  const Cqe* got = good.send(1, verbs::kGsiQkey);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->src_qp, kMine);
  SpecialBench without(QpType::Ud, QpType::Gsi);
  without.own->id.qkey = 0x1234;  // a request that names a controlled key sends this one
  EXPECT_EQ(without.send(1, verbs::kGsiQkey), nullptr);
  EXPECT_EQ(without.next(), WcStatus::Success) << "the sender never hears of it";
  SpecialBench wrong(QpType::Ud, QpType::Gsi);
  EXPECT_EQ(wrong.send(1, 0x1234), nullptr);
}

TEST(SpecialQueuePair, QueuePairOneReachesDatagramQueuePairs) {
  SpecialBench b(QpType::Gsi, QpType::Ud);
  const Cqe* got = b.send(kPeer, 0x1234);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->src_qp, 1u);
}

TEST(SpecialQueuePair, OnlyQueuePairZeroReachesQueuePairZero) {
  SpecialBench smi(QpType::Smi, QpType::Smi);
  const Cqe* got = smi.send(0, 0);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->src_qp, 0u);
  for (const QpType from : {QpType::Gsi, QpType::Ud}) {
    SpecialBench b(from, QpType::Smi);
    EXPECT_EQ(b.send(0, verbs::kGsiQkey), nullptr);
    EXPECT_EQ(b.next(), WcStatus::Success);
  }
  for (const QpType to : {QpType::Gsi, QpType::Ud}) {
    SpecialBench b(QpType::Smi, to);
    EXPECT_EQ(b.send(to == QpType::Ud ? kPeer : 1, 0x1234), nullptr);
  }
}

TEST(SpecialQueuePair, NobodyReachesItByTheNameOfItsEntry) {
  SpecialBench b(QpType::Gsi, QpType::Gsi);
  EXPECT_EQ(b.send(kPeer, verbs::kGsiQkey), nullptr);
}

// Another queue pair may have got the number; its queues are others.
TEST(Datagram, AReceiverThatIsAnotherOneIsLookedAtAnew) {
  SpecialBench b(QpType::Ud, QpType::Ud);
  ASSERT_NE(b.send(kPeer, 0x1234), nullptr);
  b.memory.make_cq(2, 1, 64, 63);
  QpEntry& again = b.memory.make_qp(kPeer, 1, kMine, 2, QpType::Ud);
  again.id.qkey = 0x1234;
  again.id.generation = 2;
  b.receive(9, kMad + 40);
  (void)b.send(kPeer, 0x1234);
  EXPECT_EQ(b.memory.completion(1, 1), nullptr) << "the completion queue of the one before";
  const Cqe* cqe = b.memory.completion(2, 0);
  ASSERT_NE(cqe, nullptr);
  EXPECT_EQ(cqe->wqe, 9u);
}

TEST(SpecialQueuePair, WhatIsNoMadIsDropped) {
  for (const std::uint32_t bytes : {0u, 24u, 255u, 257u}) {
    SpecialBench b(QpType::Gsi, QpType::Gsi);
    EXPECT_EQ(b.send(1, verbs::kGsiQkey, 0, bytes), nullptr) << bytes;
    EXPECT_EQ(b.next(), WcStatus::Success);
    EXPECT_EQ(b.peer->id.state.load(), verbs::QpState::Rts);
  }
}

TEST(SpecialQueuePair, WhatNobodyHasGetsNothing) {
  SpecialBench b(QpType::Gsi, QpType::Gsi);
  b.port_entry().special[1].store(0);
  EXPECT_EQ(b.send(1, verbs::kGsiQkey), nullptr);
  EXPECT_EQ(b.next(), WcStatus::Success);
  b.port_entry().special[1].store(0xffffffff);  // nonsense in shared memory
  EXPECT_EQ(b.send(1, verbs::kGsiQkey), nullptr);
  b.port_entry().special[1].store(kPeer);
  b.memory.arena().lid(kLid)->store(0);  // no port has the LID
  EXPECT_EQ(b.send(1, verbs::kGsiQkey), nullptr);
  b.memory.arena().lid(kLid)->store(0xffffffff);
  EXPECT_EQ(b.send(1, verbs::kGsiQkey), nullptr);
}

TEST(SpecialQueuePair, QueuePairOneIsInAllPartitionsOfItsPort) {
  SpecialBench b(QpType::Gsi, QpType::Gsi);
  b.port_entry().pkeys[0].store(0x7fff);  // a limited member of the default partition
  b.port_entry().pkeys[3].store(0x8005);
  const Cqe* got = b.send(1, verbs::kGsiQkey, 3);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->pkey_index, 3u);
  SpecialBench limited(QpType::Gsi, QpType::Gsi);
  limited.port_entry().pkeys[0].store(0x7fff);
  EXPECT_EQ(limited.send(1, verbs::kGsiQkey, 0), nullptr) << "two limited members";
}

TEST(SpecialQueuePair, APartitionThatThePortDoesNotHaveIsTheSendersError) {
  for (const std::uint16_t index : {std::uint16_t{1}, std::uint16_t{0xffff}}) {
    SpecialBench b(QpType::Gsi, QpType::Gsi);
    EXPECT_EQ(b.send(1, verbs::kGsiQkey, index), nullptr);
    EXPECT_EQ(b.next(), WcStatus::LocQpOpErr);
  }
}

TEST(SpecialQueuePair, SubnetManagementPassesAPortThatIsNotActiveYet) {
  SpecialBench smi(QpType::Smi, QpType::Smi);
  smi.port_entry().state.store(PortState::Init);
  EXPECT_NE(smi.send(0, 0), nullptr);
  SpecialBench gsi(QpType::Gsi, QpType::Gsi);
  gsi.port_entry().state.store(PortState::Init);
  EXPECT_EQ(gsi.send(1, verbs::kGsiQkey), nullptr);
  EXPECT_EQ(gsi.next(), std::nullopt) << "it waits for the port";
  SpecialBench down(QpType::Smi, QpType::Smi);
  down.port_entry().state.store(PortState::Down);
  EXPECT_EQ(down.send(0, 0), nullptr);
}

TEST(SpecialQueuePair, SendsAndNothingElse) {
  for (const QpType type : {QpType::Smi, QpType::Gsi}) {
    SpecialBench b(type, type);
    EXPECT_EQ(b.post(verbs::WrOpcode::RdmaWrite, 8), Status::InvalidParameter);
    EXPECT_EQ(b.post(verbs::WrOpcode::BindMw, 0), Status::InvalidParameter);
  }
}

}  // namespace
}  // namespace ib::hca
