// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SEND over reliable connections: data, completions, order, and a receive that is missing or late
// [IBA1 9.7, 10.7].
#include "verbs_fixture.h"

#include <gtest/gtest.h>

namespace ib::conformance {
namespace {

class RcSend : public VerbsTest {};
IB_EVERY_SETTING(RcSend);

TEST_P(RcSend, PingPong) {
  make_pair(QpType::Rc);
  const Region ma = a->region(8192);
  const Region mb = b->region(8192);
  for (std::uint64_t round = 0; round < 50; ++round) {
    ma.fill(round, 0, 4096);
    qb.receive(round, {mb.sge(0, 4096)});
    qa.receive(100 + round, {ma.sge(4096, 4096)});
    qa.send(send_work(round, {ma.sge(0, 4096)}));
    const Completion received = b->cq().one(WcStatus::Success);
    EXPECT_EQ(received.wr_id, round);
    EXPECT_EQ(received.byte_len, 4096u);
    ASSERT_EQ(mb.mismatches(round, 0, 4096), 0u) << "round " << round;
    qb.send(send_work(round, {mb.sge(0, 4096)}));
    EXPECT_EQ(b->cq().one(WcStatus::Success).opcode, WcOpcode::Send);
    ASSERT_EQ(a->cq().wait(2).size(), 2u);  // its own send and the reply
    ASSERT_EQ(ma.mismatches(round, 4096, 4096), 0u) << "round " << round;
  }
}

TEST_P(RcSend, EverySizeAndAlignmentArrivesByteForByteAndNoByteMore) {
  make_pair(QpType::Rc);
  const Region ma = a->region(256 * 1024);
  const Region mb = b->region(256 * 1024);
  ma.fill(1);
  std::uint64_t id = 0;
  for (const std::uint32_t size : {1u, 2u, 3u, 4u, 7u, 8u, 9u, 15u, 16u, 31u, 63u, 64u, 65u, 255u,
                                   4095u, 4096u, 4097u, 65536u, 100003u}) {
    for (const std::uint64_t shift : {0u, 1u, 5u, 8u}) {
      mb.fill(2, 0, size + 64);
      qb.receive(++id, {mb.sge(16 + shift, size)});
      qa.send(send_work(id, {ma.sge(shift, size)}));
      const Completion received = b->cq().one(WcStatus::Success);
      EXPECT_EQ(received.byte_len, size);
      (void)a->cq().one(WcStatus::Success);
      EXPECT_EQ(mb.mismatches(1, 16 + shift, size, shift), 0u) << size << " at " << shift;
      EXPECT_EQ(mb.mismatches(2, 0, 16 + shift), 0u) << "before " << size << " at " << shift;
      EXPECT_EQ(mb.mismatches(2, 16 + shift + size, 16, 16 + shift + size), 0u)
          << "after " << size << " at " << shift;
    }
  }
}

TEST_P(RcSend, GathersAndScattersOddPieces) {
  QpSpec spec;
  spec.caps.max_send_sge = 5;
  spec.caps.max_recv_sge = 6;
  make_pair(QpType::Rc, {}, spec);
  const Region ma = a->region(16384);
  const Region mb = b->region(16384);
  ma.fill(7);
  mb.fill(8);
  qb.receive(1, {mb.sge(3, 1), mb.sge(100, 1000), mb.sge(2000, 0), mb.sge(5001, 77),
                 mb.sge(6001, 5000), mb.sge(12000, 100)});
  qa.send(send_work(
      2, {ma.sge(1, 333), ma.sge(1000, 1), ma.sge(0, 0), ma.sge(2001, 1500), ma.sge(9, 9)}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).byte_len, 333u + 1 + 1500 + 9);
  std::vector<std::uint8_t> sent;
  const auto take = [&sent](std::uint64_t from, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) sent.push_back(pattern(7, from + i));
  };
  take(1, 333);
  take(1000, 1);
  take(2001, 1500);
  take(9, 9);
  std::vector<std::uint8_t> got = mb.bytes(3, 1);
  for (const auto& [offset, n] : {std::pair{100u, 1000u}, {5001u, 77u}, {6001u, 765u}}) {
    const auto part = mb.bytes(offset, n);
    got.insert(got.end(), part.begin(), part.end());
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(mb.mismatches(8, 6001 + 765, 100, 6001 + 765), 0u) << "beyond the message";
}

TEST_P(RcSend, CompletionsSayWhatAndFromWhom) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qb.receive(21, {mb.sge(0, 100)});
  Work work = send_work(22, {ma.sge(0, 60)}, WrOpcode::SendWithImm);
  work.imm = 0x01020304;
  qa.send(work);
  const Completion sent = a->cq().one(WcStatus::Success);
  EXPECT_EQ(sent.wr_id, 22u);
  EXPECT_EQ(sent.opcode, WcOpcode::Send);
  EXPECT_EQ(sent.qpn, qa.qpn);
  EXPECT_EQ(sent.vendor_err, 0u);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.wr_id, 21u);
  EXPECT_EQ(received.opcode, WcOpcode::Recv);
  EXPECT_EQ(received.byte_len, 60u);
  EXPECT_EQ(received.qpn, qb.qpn);
  EXPECT_EQ(received.src_qp, qa.qpn);
  EXPECT_EQ(received.flags, wc_flag::kWithImm);
  EXPECT_EQ(received.imm, 0x01020304u);
  EXPECT_EQ(received.slid, a->info().port.lid);
}

TEST_P(RcSend, WithoutImmediateThereIsNoFlag) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qb.receive(1, {mb.sge(0, 100)});
  qa.send(send_work(1, {ma.sge(0, 60)}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).flags, 0u);
}

TEST_P(RcSend, AMessageMayBeEmpty) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  mb.fill(3);
  qb.receive(1, {});
  qb.receive(2, {mb.all()});
  qa.send(send_work(1, {}));
  Work with_imm = send_work(2, {}, WrOpcode::SendWithImm);
  with_imm.imm = 5;
  qa.send(with_imm);
  const auto received = b->cq().wait(2);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].byte_len, 0u);
  EXPECT_EQ(received[1].byte_len, 0u);
  EXPECT_EQ(received[1].imm, 5u);
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
  EXPECT_EQ(mb.mismatches(3, 0, 4096), 0u);
}

TEST_P(RcSend, InlineDataIsTakenWhenPostedAndNeedsNoKey) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  const std::uint64_t plain = a->new_memory(4096);  // not registered
  const Region view{a.get(), kNoHandle, 0, 0, plain, plain, 4096};
  for (const std::uint32_t size : {1u, 13u, 64u, 128u}) {
    view.fill(size, 0, 4096);
    Work work = send_work(size, {view.sge(0, size / 2), view.sge(size / 2, size - size / 2)});
    work.flags |= send_flag::kInline;
    qa.send(work);  // no receive yet: it has to wait
    view.fill(99, 0, 4096);
    qb.receive(size, {mb.sge(1, 200)});
    EXPECT_EQ(b->cq().one(WcStatus::Success).byte_len, size);
    EXPECT_EQ(mb.mismatches(size, 1, size), 0u) << size;
    (void)a->cq().one(WcStatus::Success);
  }
}

TEST_P(RcSend, AnInlineRequestThatWaitedMayFail) {
  Connection with;
  with.rnr_retry = 1;
  make_pair(QpType::Rc, with);
  const std::uint64_t plain = a->new_memory(4096);
  Work work = send_work(1, {{plain, 32, 0}});
  work.flags |= send_flag::kInline;
  qa.send(work);
  EXPECT_EQ(a->cq().one(WcStatus::RnrRetryExcErr).wr_id, 1u);
}

TEST_P(RcSend, AMessageLargerThanTheBudgetOfACallArrivesWhole) {
  make_pair(QpType::Rc);
  constexpr std::uint32_t kSize = (20u << 20) + 5;
  const Region ma = a->region(kSize + 4096);
  const Region mb = b->region(kSize + 4096);
  ma.fill(4);
  mb.fill(5, kSize + 3, 100, kSize + 3);
  qb.receive(1, {mb.sge(3, kSize)});
  qb.receive(2, {mb.sge(kSize + 3, 10)});
  qa.send(send_work(1, {ma.sge(1, kSize)}));
  qa.send(send_work(2, {ma.sge(0, 4)}));  // waits behind it
  const auto sent = a->cq().wait(2);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].wr_id, 1u);
  EXPECT_EQ(sent[1].wr_id, 2u);
  const auto received = b->cq().wait(2);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].byte_len, kSize);
  EXPECT_EQ(mb.mismatches(4, 3, kSize, 1), 0u);
  EXPECT_EQ(mb.mismatches(4, kSize + 3, 4, 0), 0u);
  EXPECT_EQ(mb.mismatches(5, kSize + 7, 96, kSize + 7), 0u);
}

TEST_P(RcSend, OnlySignalledRequestsCompleteAndTheyFreeThoseBefore) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 64; ++i) {
      qb.receive(i, {mb.sge(0, 64)});
      Work work = send_work(i, {ma.sge(0, 8)});
      work.flags = i == 63 ? send_flag::kSignaled : 0;
      qa.send(work);
    }
    EXPECT_EQ(b->cq().wait(64).size(), 64u);
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 63u);
    EXPECT_TRUE(a->cq().drain().empty());
  }
}

TEST_P(RcSend, AQueuePairMaySignalEveryRequest) {
  QpSpec spec;
  spec.signal_all = 1;
  make_pair(QpType::Rc, {}, spec);
  const Region mb = b->region(4096);
  qb.receive(1, {mb.all()});
  Work work = send_work(5, {});
  work.flags = 0;
  qa.send(work);
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 5u);
}

TEST_P(RcSend, AFullSendQueueRefusesAndKeepsWhatItHas) {
  QpSpec spec;
  spec.caps.max_send_wr = 3;
  make_pair(QpType::Rc, {}, spec);
  const std::uint32_t room = qa.caps.max_send_wr;
  ASSERT_GE(room, 3u);
  std::vector<Work> list;
  for (std::uint64_t i = 0; i < room + 2; ++i) list.push_back(send_work(i, {}));
  std::uint32_t accepted = 0;
  EXPECT_EQ(qa.try_send(list, accepted), Status::LimitExceeded);
  EXPECT_EQ(accepted, room);
  for (std::uint64_t i = 0; i < room; ++i) qb.receive(i, {});
  const auto sent = a->cq().wait(room);
  ASSERT_EQ(sent.size(), room);
  for (std::uint64_t i = 0; i < room; ++i) EXPECT_EQ(sent[i].wr_id, i);
  qb.receive(9, {});
  qa.send(send_work(9, {}));
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 9u);
}

TEST_P(RcSend, ASlotIsFreeOnlyWhenItsCompletionWasPolled) {
  QpSpec spec;
  spec.caps.max_send_wr = 2;
  make_pair(QpType::Rc, {}, spec);
  for (std::uint64_t i = 0; i < 8; ++i) qb.receive(i, {});
  const std::uint32_t room = qa.caps.max_send_wr;
  for (std::uint64_t i = 0; i < room; ++i) qa.send(send_work(i, {}));
  EXPECT_EQ(b->cq().wait(room).size(), room);  // they have been executed
  EXPECT_EQ(qa.try_send(send_work(7, {})), Status::LimitExceeded);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(qa.try_send(send_work(7, {})), Status::Ok);
}

TEST_P(RcSend, AFullReceiveQueueRefuses) {
  QpSpec spec;
  spec.caps.max_recv_wr = 3;
  make_pair(QpType::Rc, {}, spec);
  for (std::uint32_t i = 0; i < qb.caps.max_recv_wr; ++i) qb.receive(i, {});
  EXPECT_EQ(qb.try_receive(9, {}), Status::LimitExceeded);
  qa.send(send_work(1, {}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(qb.try_receive(9, {}), Status::LimitExceeded);  // not polled yet
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 0u);
  EXPECT_EQ(qb.try_receive(9, {}), Status::Ok);
}

TEST_P(RcSend, TooManyElementsAreRefused) {
  QpSpec spec;
  spec.caps.max_send_sge = 2;
  spec.caps.max_recv_sge = 2;
  make_pair(QpType::Rc, {}, spec);
  const Region ma = a->region(4096);
  const std::vector<Sge> three(3, ma.sge(0, 4));
  EXPECT_EQ(qa.try_send(send_work(1, three)), Status::InvalidParameter);
  EXPECT_EQ(qa.try_receive(1, three), Status::InvalidParameter);
  EXPECT_TRUE(a->cq().stays_empty());
}

TEST_P(RcSend, TooMuchInlineDataIsRefused) {
  QpSpec spec;
  spec.caps.max_inline = 64;
  make_pair(QpType::Rc, {}, spec);
  const Region ma = a->region(4096);
  Work work = send_work(1, {ma.sge(0, qa.caps.max_inline + 1)});
  work.flags |= send_flag::kInline;
  EXPECT_EQ(qa.try_send(work), Status::InvalidParameter);
}

TEST_P(RcSend, AListStopsAtTheFirstBadRequestAndThoseBeforeStand) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  for (std::uint64_t i = 0; i < 3; ++i) qb.receive(i, {});
  std::uint32_t accepted = 9;
  EXPECT_EQ(qa.try_send({send_work(1, {}), send_work(2, std::vector<Sge>(9, ma.sge(0, 1))),
                         send_work(3, {})},
                        accepted),
            Status::InvalidParameter);
  EXPECT_EQ(accepted, 1u);
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 1u);
  EXPECT_TRUE(a->cq().stays_empty());
}

// --- Receiver not ready ---

TEST_P(RcSend, WaitsForAReceiveWithoutEndIfToldSo) {
  make_pair(QpType::Rc);  // rnr_retry 7
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  ma.fill(6);
  qa.send(send_work(1, {ma.sge(0, 1000)}));
  EXPECT_TRUE(a->cq().stays_empty());
  qb.receive(1, {mb.sge(0, 1000)});
  (void)a->cq().one(WcStatus::Success);
  (void)b->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(6, 0, 1000), 0u);
}

TEST_P(RcSend, TheWaitingRequestHoldsAllLaterOnes) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  ma.set_word(0, 1);
  mb.set_word(0, 0);
  qa.send(send_work(1, {ma.sge(0, 8)}));
  qa.send(rdma(WrOpcode::RdmaWrite, 2, {ma.sge(0, 8)}, mb, 0));
  EXPECT_TRUE(a->cq().stays_empty());
  EXPECT_EQ(mb.word(0), 0u);
  qb.receive(1, {mb.sge(8, 8)});
  const auto sent = a->cq().wait(2);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].wr_id, 1u);
  EXPECT_EQ(sent[1].wr_id, 2u);
  EXPECT_EQ(mb.word(0), 1u);
}

TEST_P(RcSend, GivesUpWhenTheRnrRetriesAreUsedUp) {
  Connection with;
  with.rnr_retry = 2;
  with.min_rnr_timer = 12;  // 0.64 ms
  make_pair(QpType::Rc, with);
  qa.send(send_work(1, {}));
  qa.send(send_work(2, {}));
  const auto failed = a->cq().wait(2);
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].wr_id, 1u);
  EXPECT_EQ(failed[0].status, WcStatus::RnrRetryExcErr);
  EXPECT_EQ(failed[0].vendor_err, static_cast<std::uint32_t>(Cause::NoReceive));
  EXPECT_EQ(failed[1].wr_id, 2u);
  EXPECT_EQ(failed[1].status, WcStatus::WrFlushErr);
  EXPECT_TRUE(qa.reaches(QpState::Error));
  EXPECT_EQ(qb.state(), QpState::Rts);  // the receiver did nothing wrong
}

TEST_P(RcSend, WithoutRnrRetriesItFailsAtOnce) {
  Connection with;
  with.rnr_retry = 0;
  make_pair(QpType::Rc, with);
  qa.send(send_work(1, {}));
  EXPECT_EQ(a->cq().one(WcStatus::RnrRetryExcErr).wr_id, 1u);
}

// --- Peers that do not answer ---

TEST_P(RcSend, APeerThatIsNotReadyExhaustsTheRetries) {
  Connection with;
  with.timeout = 8;  // 1 ms
  with.retry_cnt = 1;
  qa = a->new_qp();
  qb = b->new_qp();
  to_init(qb, QpType::Rc);
  to_init(qa, QpType::Rc, with);
  to_rtr(qa, QpType::Rc, qb, with);
  to_rts(qa, QpType::Rc, with);
  qa.send(send_work(1, {}));
  const Completion failed = a->cq().one(WcStatus::RetryExcErr);
  EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(Cause::PeerNotReady));
  EXPECT_TRUE(qa.reaches(QpState::Error));
}

TEST_P(RcSend, APeerThatGetsReadyInTimeIsServed) {
  Connection with;
  with.timeout = 0;  // no timeout
  qa = a->new_qp();
  qb = b->new_qp();
  to_init(qb, QpType::Rc);
  to_init(qa, QpType::Rc, with);
  to_rtr(qa, QpType::Rc, qb, with);
  to_rts(qa, QpType::Rc, with);
  qb.receive(1, {});
  qa.send(send_work(1, {}));
  EXPECT_TRUE(a->cq().stays_empty());
  to_rtr(qb, QpType::Rc, qa);
  (void)a->cq().one(WcStatus::Success);
  (void)b->cq().one(WcStatus::Success);
}

TEST_P(RcSend, APeerThatIsDestroyedExhaustsTheRetries) {
  Connection with;
  with.timeout = 8;
  with.retry_cnt = 2;
  make_pair(QpType::Rc, with);
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
  qa.send(send_work(1, {}));
  const Completion failed = a->cq().one(WcStatus::RetryExcErr);
  EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(Cause::PeerUnknown));
}

TEST_P(RcSend, APeerThatIsConnectedElsewhereDoesNotAnswer) {
  Connection with;
  with.timeout = 8;
  with.retry_cnt = 1;
  make_pair(QpType::Rc, with);
  const Qp stranger = a->new_qp();
  to_init(stranger, QpType::Rc, with);
  to_rtr(stranger, QpType::Rc, qb, with);
  to_rts(stranger, QpType::Rc, with);
  qb.receive(1, {});
  stranger.send(send_work(1, {}));
  EXPECT_EQ(a->cq().one(WcStatus::RetryExcErr).qpn, stranger.qpn);
  qa.send(send_work(2, {}));  // the real connection is not disturbed
  (void)a->cq().one(WcStatus::Success);
}

TEST_P(RcSend, AQueuePairMayBeConnectedToItself) {
  const Qp self = a->new_qp();
  to_init(self, QpType::Rc);
  to_rtr(self, QpType::Rc, self);
  to_rts(self, QpType::Rc);
  const Region ma = a->region(8192);
  ma.fill(3, 0, 4096);
  self.receive(1, {ma.sge(4096, 4096)});
  self.send(send_work(2, {ma.sge(0, 4096)}));
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
  EXPECT_EQ(ma.mismatches(3, 4096, 4096), 0u);
}

}  // namespace
}  // namespace ib::conformance
