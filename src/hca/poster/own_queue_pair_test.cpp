// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The owner's end of a queue pair: its attributes from softibd are checked, and what Error and
// Reset entail. With traffic it is tested in tests/conformance/, from both kinds of owner.
#include "hca/poster/own_queue_pair_flow.h"
#include "hca/queues/own_shared_queue.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <functional>

namespace ib::hca {
namespace {

using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
namespace control = verbs::control;

constexpr std::uint32_t kSrq = 1;

struct TestOwner {
  NoLock& send_lock() { return lock; }
  NoLock& recv_lock() { return lock; }
  NoLock& flush_lock() { return lock; }
  void requests_wait() { ++waits; }
  void forget_waiting() { ++forgotten; }
  void forget_completions() { ++voided; }
  void wait_a_little(Quiescence&) { ++waited; }
  void flush_later() { ++later; }

  NoLock lock;
  int waits = 0;
  int forgotten = 0;
  int voided = 0;
  int waited = 0;
  int later = 0;
};

class OwnQueuePairTest : public testing::Test {
 protected:
  OwnQueuePairTest() {
    in.pd = 1;
    in.send_cq = 0;
    in.recv_cq = 0;
    made.qpn = kMine;
    made.caps = {4, 4, 2, 2, 64, 0};
    made.rq_ring = bench.own->geometry.rq_ring;
    made.rq_slots = bench.own->geometry.rq_slots;
    made.rq_stride = bench.own->geometry.rq_stride;
  }
  bool open() { return qp.open(bench.plane, kMine, in, made); }
  void set_state(QpState state) { bench.own->id.state.store(state); }
  // As after a modify-QP to this state.
  void modified(QpState state) {
    set_state(state);
    qp.modified(owner, verbs::qp_attr::kState, {}, state);
  }
  Status receive(std::uint64_t wr_id) {
    const Status status = qp.receives()->post(wr_id, {});
    if (qp.is_awaited()) qp.serve_awaited(owner);
    return status;
  }
  // The wr_id of the next completion, a receive's that was flushed; 0 if there is none.
  std::uint64_t flushed() {
    const Cqe* cqe = bench.memory.completion(0, polled);
    if (cqe == nullptr) return 0;
    ++polled;
    EXPECT_EQ(cqe->status, static_cast<std::uint32_t>(WcStatus::WrFlushErr));
    std::uint64_t wr_id = 0;
    EXPECT_TRUE(qp.receives()->finish(cqe->wqe, wr_id));
    return wr_id;
  }

  PairBench bench;
  control::CreateQpIn in;
  control::QpOut made;
  OwnQueuePair qp;
  TestOwner owner;
  std::uint64_t polled = 0;
};

TEST_F(OwnQueuePairTest, RefusesWhatSoftibdCannotMean) {
  EXPECT_TRUE(open());
  EXPECT_FALSE(qp.open(bench.plane, kMaxQps, in, made)) << "beyond the table";
  EXPECT_FALSE(qp.open(bench.plane, kPeer, in, made)) << "the number of another entry";
  const control::QpOut good = made;
  made.rq_slots = 3;
  EXPECT_FALSE(open());
  made = good;
  made.rq_stride = receive_stride(1);
  EXPECT_FALSE(open());
  made = good;
  made.rq_ring = kArenaSpace;
  EXPECT_FALSE(open());
  made = good;
  EXPECT_TRUE(open()) << "a refusal leaves nothing behind";
}

TEST_F(OwnQueuePairTest, HasTheEndsOfItsType) {
  ASSERT_TRUE(open());
  EXPECT_NE(qp.sends(), nullptr);
  EXPECT_EQ(qp.fast_path(), &qp.sends()->fast_path());
  EXPECT_NE(qp.receives(), nullptr);
  in.type = QpType::Ud;
  ASSERT_TRUE(open());
  EXPECT_NE(qp.sends(), nullptr);
  EXPECT_EQ(qp.fast_path(), nullptr);
  in.type = QpType::XrcRecv;
  made.rq_ring = 0;
  ASSERT_TRUE(open());
  EXPECT_EQ(qp.sends(), nullptr);
  EXPECT_EQ(qp.fast_path(), nullptr);
  EXPECT_EQ(qp.receives(), nullptr);
  EXPECT_FALSE(qp.is_waiting());
}

TEST_F(OwnQueuePairTest, AStateThatDoesNotExistIsError) {
  ASSERT_TRUE(open());
  EXPECT_EQ(qp.state(), QpState::Rts);
  bench.own->id.state.store(static_cast<QpState>(77));
  EXPECT_EQ(qp.state(), QpState::Error);
}

TEST_F(OwnQueuePairTest, ErrorEndsReceivesOnceAndThoseThatComeLater) {
  ASSERT_TRUE(open());
  EXPECT_EQ(receive(11), Status::Ok);
  EXPECT_EQ(receive(12), Status::Ok);
  qp.flush(owner);
  EXPECT_EQ(flushed(), 0u) << "the state is not Error";
  modified(QpState::Error);
  qp.flush(owner);
  EXPECT_EQ(flushed(), 11u);
  EXPECT_EQ(flushed(), 12u);
  EXPECT_EQ(flushed(), 0u);
  EXPECT_EQ(receive(13), Status::Ok);
  EXPECT_EQ(flushed(), 13u);
  EXPECT_TRUE(bench.host.raised.empty()) << "it has no shared queue";
}

TEST_F(OwnQueuePairTest, NothingIsEndedWhileSomebodyMayBeDelivering) {
  ASSERT_TRUE(open());
  EXPECT_EQ(receive(11), Status::Ok);
  Shared64& word = bench.memory.arena().slot(1)->threads[0].sequence;
  word.store(1);
  set_state(QpState::Error);  // by a poster
  qp.flush_all(owner);
  EXPECT_EQ(receive(12), Status::Ok);
  qp.flush(owner);
  EXPECT_EQ(flushed(), 0u);
  EXPECT_EQ(owner.waited, 1) << "once is enough";
  EXPECT_EQ(owner.later, 2);
  word.store(3);  // that one has left; the next found the queue pair in Error
  qp.flush(owner);
  EXPECT_EQ(flushed(), 11u);
  EXPECT_EQ(flushed(), 12u);
  EXPECT_EQ(owner.later, 2);
}

TEST_F(OwnQueuePairTest, SoftibdHasWaitedForThoseWhoDeliverBeforeItAnswers) {
  ASSERT_TRUE(open());
  EXPECT_EQ(receive(11), Status::Ok);
  bench.memory.arena().slot(1)->threads[0].sequence.store(1);  // works with something else
  modified(QpState::Error);
  EXPECT_EQ(flushed(), 11u);
  EXPECT_EQ(owner.waited, 0);
  EXPECT_EQ(owner.later, 0);
}

TEST_F(OwnQueuePairTest, ResetForgetsEverything) {
  ASSERT_TRUE(open());
  EXPECT_EQ(receive(11), Status::Ok);
  SendWqe wqe;
  EXPECT_EQ(qp.post(owner, wqe), Status::Ok);  // the peer has posted no receive
  EXPECT_EQ(owner.waits, 1);
  EXPECT_EQ(qp.post(owner, wqe), Status::Ok);
  EXPECT_EQ(owner.waits, 1) << "that it waits was said";
  modified(QpState::Error);
  EXPECT_EQ(owner.waits, 2) << "somebody is to flush them";
  EXPECT_EQ(flushed(), 11u);
  modified(QpState::Reset);
  EXPECT_FALSE(qp.is_waiting());
  EXPECT_EQ(owner.forgotten, 1);
  EXPECT_EQ(owner.voided, 1);
  EXPECT_EQ(qp.receives()->tail(), 0u);
  // softibd has cleared its words of the entry, and it begins again.
  bench.own->responder.rq_head.store(0);
  bench.own->owner.rq_tail.store(0);
  set_state(QpState::Rts);
  EXPECT_EQ(receive(21), Status::Ok);
  modified(QpState::Error);
  EXPECT_EQ(flushed(), 21u);
}

TEST_F(OwnQueuePairTest, LimitsOfAModifyCountAtOnce) {
  ASSERT_TRUE(open());
  control::QpAttr attr;
  attr.rnr_retry = 1;
  attr.retry_cnt = 0;
  qp.modified(owner, verbs::qp_attr::kRnrRetry, attr, QpState::Rts);
  EXPECT_EQ(qp.post(owner, {}), Status::Ok);
  bench.host.time += std::chrono::milliseconds(10);
  EXPECT_EQ(qp.run(owner), Requester::Progress::Idle);
  const Cqe* cqe = bench.memory.completion(0, 0);
  ASSERT_NE(cqe, nullptr);
  EXPECT_EQ(cqe->status, static_cast<std::uint32_t>(WcStatus::RnrRetryExcErr));
}

TEST_F(OwnQueuePairTest, AReceiveWakesTheOneThatWaitsForIt) {
  ASSERT_TRUE(open());
  EXPECT_EQ(receive(1), Status::Ok);
  EXPECT_TRUE(bench.host.kicks.empty());
  bench.own->waiter.rnr_waiter.store(2);
  EXPECT_EQ(receive(2), Status::Ok);
  EXPECT_EQ(bench.host.kicks, std::vector<std::uint32_t>{1});
  EXPECT_EQ(receive(3), Status::Ok);
  EXPECT_EQ(bench.host.kicks.size(), 1u);
}

TEST_F(OwnQueuePairTest, OneOnASharedQueueTellsThatItHasTakenItsLast) {
  made.rq_ring = 0;
  in.srq = kSrq;
  ASSERT_TRUE(open());
  modified(QpState::Error);
  qp.flush(owner);
  ASSERT_EQ(bench.host.raised.size(), 1u);
  EXPECT_EQ(bench.host.raised[0].type, verbs::EventType::QpLastWqeReached);
  EXPECT_EQ(bench.host.raised[0].index, kMine);
}

TEST_F(OwnQueuePairTest, ASharedQueueIsCheckedAndWakesTheOneThatWaits) {
  control::SrqOut srq;
  srq.slots = 8;
  srq.stride = receive_stride(1);
  srq.max_wr = 8;
  srq.max_sge = 1;
  srq.ring = bench.memory.allocate(8 * receive_stride(1));
  OwnSharedQueue queue;
  EXPECT_FALSE(queue.open(bench.plane, kMaxSrqs, srq));
  EXPECT_TRUE(queue.open(bench.plane, kSrq, srq));
  bench.memory.arena().srq(kSrq)->event.rnr_waiter.store(2);
  EXPECT_EQ(queue.receives()->post(1, {}), Status::Ok);
  queue.serve_awaited();
  queue.serve_awaited();
  EXPECT_EQ(bench.host.kicks, std::vector<std::uint32_t>{1});
  srq.slots = 7;
  EXPECT_FALSE(queue.open(bench.plane, kSrq, srq));
  EXPECT_EQ(queue.receives(), nullptr);
}

}  // namespace
}  // namespace ib::hca
