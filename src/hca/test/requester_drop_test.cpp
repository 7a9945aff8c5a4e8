// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reports to the trace of messages that are dropped: the sender's completion is a success.
#include "hca/test/poster_bench_test.h"
#include "verbs/report_count.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

using verbs::QpType;
using verbs::WcStatus;
using verbs::control::Cause;

constexpr std::uint16_t kLid = 7;
constexpr std::uint32_t kQkey = 0x11;

struct DropBench : PairBench {
  explicit DropBench(QpType from = QpType::Ud) : PairBench(Path::ProcessVm, 4096, from) {
    PortEntry& port = *memory.arena().port(0);
    memory.arena().lid(kLid)->store(1);
    port.pkeys[0].store(0xffff);
    peer->id.type = QpType::Ud;
    peer->id.qkey = kQkey;
    wqe.av.dlid = kLid;
    wqe.remote_qpn = kPeer;
    wqe.remote_qkey = kQkey;
  }
  void send(std::uint32_t bytes = 64) {
    const Sge sge{std::bit_cast<std::uint64_t>(mine.data()), bytes, kLkey};
    wqe.wr_id = ++posted;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    const OpScope scope(plane);
    EXPECT_EQ(requester->post(wqe), Status::Ok);
    EXPECT_EQ(next(), WcStatus::Success);
  }
  // The only report so far.
  verbs::control::TraceErrorIn told() const {
    EXPECT_EQ(host.traced.size(), 1u);
    const auto report = host.traced.empty() ? verbs::control::TraceErrorIn{} : host.traced.front();
    EXPECT_EQ(report.status, WcStatus::Success);
    return report;
  }

  SendWqe wqe;
};

TEST(Drop, AMessageThatArrivesIsNotMentioned) {
  DropBench b;
  b.receive(5, 104);
  b.send();
  EXPECT_TRUE(b.host.traced.empty());
}

TEST(Drop, AWrongKeyIsToldWithBothSidesValues) {
  DropBench qkey;
  qkey.receive(5, 104);
  qkey.wqe.remote_qkey = 0x22;
  qkey.send();
  EXPECT_EQ(qkey.told().cause, Cause::QkeyMismatch);
  EXPECT_EQ(qkey.told().detail, 0x22'0000'0011u);
  EXPECT_EQ(qkey.told().peer_qpn, kPeer);
  EXPECT_EQ(qkey.told().length, 64u);

  DropBench pkey;
  pkey.receive(5, 104);
  pkey.own->id.pkey = 0x8001;
  pkey.peer->id.pkey = 0x8002;
  pkey.send();
  EXPECT_EQ(pkey.told().cause, Cause::PkeyMismatch);
  EXPECT_EQ(pkey.told().detail, 0x8001'0000'8002u);
}

TEST(Drop, ReceivesThatAreNotThereOrTooSmallAreTold) {
  DropBench none;
  none.send();
  EXPECT_EQ(none.told().cause, Cause::NoReceive);
  DropBench small;
  small.receive(5, 64);
  small.send();
  EXPECT_EQ(small.told().cause, Cause::RemoteLength);
  EXPECT_EQ(small.told().detail, 64u);
}

TEST(Drop, QueuePairsThatAreNotThereOrNotReadyAreTold) {
  DropBench unknown;
  unknown.wqe.remote_qpn = kPeer + 1;
  unknown.send();
  EXPECT_EQ(unknown.told().cause, Cause::PeerUnknown);
  EXPECT_EQ(unknown.told().detail, kLid);
  DropBench early;
  early.peer->id.state.store(verbs::QpState::Init);
  early.send();
  EXPECT_EQ(early.told().cause, Cause::PeerNotReady);
}

// Its receiver's port has a cable to somewhere else.
TEST(Drop, APortToWhichNoWayLeadsIsLikeOneThatIsNotThere) {
  DropBench b;
  PortEntry& far = *b.memory.arena().port(1);
  far.state.store(verbs::PortState::Active);
  far.pkeys[0].store(0xffff);
  b.memory.arena().lid(kLid)->store(2);
  b.peer->id.port = 1;
  far.segment.store(2);
  b.receive(5, 104);
  b.send();
  EXPECT_EQ(b.told().cause, Cause::PeerUnknown);
  EXPECT_EQ(b.told().detail, kLid);
  b.memory.arena().port(0)->segment.store(2);
  b.send();
  EXPECT_EQ(b.host.traced.size(), 1u) << "the other end of a cable is reached";
}

TEST(Drop, ManyAreToldInFewReports) {
  DropBench b;
  b.receive(5, 104);
  b.wqe.remote_qkey = 0x22;
  for (int i = 0; i < 40; ++i) b.send();
  std::uint32_t counted = 0;
  for (const auto& report : b.host.traced) counted += verbs::times_of(report);
  EXPECT_EQ(counted, 32u);
  EXPECT_EQ(b.host.traced.size(), 8u + 2);
}

TEST(Drop, ManagementQueuePairsAskPortsThatMayBeSilent) {
  DropBench b(QpType::Gsi);
  b.own->id.qkey = verbs::kGsiQkey;
  b.wqe.remote_qkey = 0x22;
  b.send();
  EXPECT_TRUE(b.host.traced.empty());
}

}  // namespace
}  // namespace ib::hca
