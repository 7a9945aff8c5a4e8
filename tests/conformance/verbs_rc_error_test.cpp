// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completions at both ends of a reliable connection when a request, a key or a receive is wrong,
// and how both queues are flushed [IBA1 9.7.5, 10.3.1, 10.10.2].
#include "al/system.h"
#include "hca/layout/arena.h"
#include "softibd/in_process_daemon.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace ib::conformance {
namespace {

class RcError : public VerbsTest {
 protected:
  // Checks the requester's completion, and that its queue pair is in Error.
  void expect_failure(std::uint64_t wr_id, WcStatus status, Cause cause) {
    const Completion failed = a->cq().one(status);
    EXPECT_EQ(failed.wr_id, wr_id);
    EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(cause));
    EXPECT_EQ(failed.qpn, qa.qpn);
    EXPECT_TRUE(qa.reaches(QpState::Error));
  }
  void expect_event(Side& side, verbs::EventType type, std::uint64_t cookie) {
    const auto event = side.event();
    ASSERT_TRUE(event.has_value()) << "no event came at side " << side.name();
    EXPECT_EQ(event->type, type);
    EXPECT_EQ(event->object, control::EventObject::Qp);
    EXPECT_EQ(event->cookie, cookie);
    EXPECT_EQ(event->file, side.info().file);
  }
};
IB_EVERY_SETTING(RcError);

// --- The requester's own keys: the peer does not notice ---

struct LocalFault {
  const char* name;
  std::function<Sge(Side&, Region&)> make;
  Cause cause;
};

std::vector<LocalFault> local_faults() {
  return {
      {"unknown lkey",
       [](Side&, Region& m) {
         return Sge{m.at(0), 64, m.lkey ^ 0x55};
       },
       Cause::LocalKeyUnknown},
      {"lkey 0",
       [](Side&, Region& m) {
         return Sge{m.at(0), 64, 0};
       },
       Cause::LocalKeyUnknown},
      {"lkey of another PD",
       [](Side& s, Region&) { return s.region(4096, kAllAccess, s.new_pd()).sge(0, 64); },
       Cause::LocalKeyOtherPd},
      {"begins before the region",
       [](Side&, Region& m) {
         return Sge{m.at(0) - 1, 64, m.lkey};
       },
       Cause::LocalKeyRange},
      {"ends after the region",
       [](Side&, Region& m) {
         return Sge{m.at(m.length - 63), 64, m.lkey};
       },
       Cause::LocalKeyRange},
      {"wraps around",
       [](Side&, Region& m) {
         return Sge{~std::uint64_t{0} - 10, 64, m.lkey};
       },
       Cause::LocalKeyRange},
      {"deregistered",
       [](Side& s, Region&) {
         const Region gone = s.region(4096);
         EXPECT_EQ(s.destroy(Kind::Region, gone.handle), Status::Ok);
         return gone.sge(0, 64);
       },
       Cause::LocalKeyUnknown},
  };
}

TEST_P(RcError, ABadLocalKeyFailsLocallyAndLeavesThePeerAlone) {
  for (const LocalFault& fault : local_faults()) {
    for (const WrOpcode opcode : {WrOpcode::Send, WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
      SCOPED_TRACE(std::string(fault.name) + ", opcode " +
                   std::to_string(static_cast<std::uint32_t>(opcode)));
      make_pair(QpType::Rc);
      Region ma = a->region(4096);
      const Region mb = b->region(4096);
      mb.fill(1);
      qb.receive(1, {mb.all()});
      qa.send(rdma(opcode, 5, {fault.make(*a, ma)}, mb));
      expect_failure(5, WcStatus::LocProtErr, fault.cause);
      EXPECT_EQ(qb.state(), QpState::Rts);
      EXPECT_TRUE(b->cq().drain().empty());
      EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
      EXPECT_EQ(qa.try_destroy(), Status::Ok);
      EXPECT_EQ(qb.try_destroy(), Status::Ok);
    }
  }
}

// The requester checks the memory for a response when the response comes, so the responder's error
// is the one that is reported.
TEST_P(RcError, OfTwoBadKeysTheRemoteOneIsFoundFirst) {
  for (const WrOpcode opcode :
       {WrOpcode::RdmaRead, WrOpcode::AtomicCmpSwap, WrOpcode::AtomicFetchAdd}) {
    SCOPED_TRACE(static_cast<std::uint32_t>(opcode));
    make_pair(QpType::Rc);
    const Region ma = a->region(4096, access::kRemoteRead);
    const Region mb = b->region(4096, access::kLocalWrite | access::kRemoteWrite);
    qa.send(rdma(opcode, 6, {ma.sge(0, 8)}, mb));
    expect_failure(6, WcStatus::RemAccessErr, Cause::RemoteKeyAccess);
    EXPECT_TRUE(qb.reaches(QpState::Error));
  }
}

TEST_P(RcError, WhatComesBackNeedsLocalWrite) {
  for (const WrOpcode opcode :
       {WrOpcode::RdmaRead, WrOpcode::AtomicCmpSwap, WrOpcode::AtomicFetchAdd}) {
    make_pair(QpType::Rc);
    const Region ma = a->region(4096, access::kRemoteRead);
    const Region mb = b->region(4096);
    qa.send(rdma(opcode, 6, {ma.sge(0, 8)}, mb));
    expect_failure(6, WcStatus::LocProtErr, Cause::LocalKeyAccess);
  }
}

TEST_P(RcError, WhatGoesOutNeedsNoLocalWrite) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096, 0);
  const Region mb = b->region(4096);
  ma.fill(2);
  qb.receive(1, {mb.all()});
  qa.send(send_work(1, {ma.all()}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(2, 0, 4096), 0u);
}

TEST_P(RcError, AllButTheFirstElementAreCheckedToo) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  mb.fill(1);
  Sge bad = ma.sge(0, 16);
  bad.lkey ^= 1;
  qb.receive(1, {mb.all()});
  qa.send(send_work(2, {ma.sge(0, 16), bad}));
  expect_failure(2, WcStatus::LocProtErr, Cause::LocalKeyUnknown);
  EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u) << "nothing may have been sent";
}

// --- The receive is at fault: both ends get an error ---

TEST_P(RcError, AReceiveThatIsTooSmallFailsBothEnds) {
  make_pair(QpType::Rc);
  const Region ma = a->region(8192);
  const Region mb = b->region(8192);
  mb.fill(1);
  qb.receive(1, {mb.sge(0, 50), mb.sge(100, 49)});
  qb.receive(2, {mb.all()});
  qa.send(send_work(7, {ma.sge(0, 100)}));
  expect_failure(7, WcStatus::RemInvReqErr, Cause::RemoteLength);
  const auto received = b->cq().wait(2);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].wr_id, 1u);
  EXPECT_EQ(received[0].status, WcStatus::LocLenErr);
  EXPECT_EQ(received[0].vendor_err, static_cast<std::uint32_t>(Cause::RemoteLength));
  EXPECT_EQ(received[1].wr_id, 2u);
  EXPECT_EQ(received[1].status, WcStatus::WrFlushErr);
  EXPECT_TRUE(qb.reaches(QpState::Error));
  EXPECT_EQ(mb.mismatches(1, 149, 8000, 149), 0u);
}

TEST_P(RcError, ABadKeyOfAReceiveFailsBothEnds) {
  const std::uint32_t other_pd = b->new_pd();
  for (int fault = 0; fault < 4; ++fault) {
    SCOPED_TRACE(fault);
    make_pair(QpType::Rc);
    const Region ma = a->region(8192);
    Sge sge;
    if (fault == 0) sge = {b->new_memory(4096), 4096, 0x12345678};
    if (fault == 1) sge = b->region(4096, access::kRemoteRead).all();  // no local write
    if (fault == 2) sge = b->region(4096, kAllAccess, other_pd).all();
    if (fault == 3) {
      sge = b->region(4096).all();
      sge.length += 1;
    }
    for (const std::uint32_t size : {8u, 2000u, 4097u}) {
      if (fault == 3 && size < 4097) continue;  // the message does not reach the faulty entry
      SCOPED_TRACE(size);
      make_pair(QpType::Rc);
      qb.receive(1, {sge});
      qa.send(send_work(7, {ma.sge(0, std::min(size, sge.length))}));
      expect_failure(7, WcStatus::RemOpErr, Cause::RemoteReceiveKey);
      const Completion received = b->cq().one(WcStatus::LocProtErr);
      EXPECT_EQ(received.wr_id, 1u);
      EXPECT_TRUE(qb.reaches(QpState::Error));
    }
  }
}

// --- The remote key ---

struct RemoteFault {
  const char* name;
  std::uint32_t needs_length;
  Cause cause;
  // Turns a good request into a bad one.
  std::function<void(Side& b, const Region& good, Work& work)> spoil;
};

std::vector<RemoteFault> remote_faults() {
  return {
      {"unknown rkey", 0, Cause::RemoteKeyUnknown,
       [](Side&, const Region&, Work& w) { w.rkey ^= 0x80; }},
      {"rkey 0", 0, Cause::RemoteKeyUnknown, [](Side&, const Region&, Work& w) { w.rkey = 0; }},
      {"rkey of no table entry", 0, Cause::RemoteKeyUnknown,
       [](Side&, const Region&, Work& w) { w.rkey = 0xffffff01; }},
      {"rkey of another PD", 0, Cause::RemoteKeyOtherPd,
       [](Side& b, const Region&, Work& w) {
         const Region other = b.region(4096, kAllAccess, b.new_pd());
         w.rkey = other.rkey;
         w.remote_address = other.at(0);
       }},
      {"begins before the region", 0, Cause::RemoteKeyRange,
       [](Side&, const Region& m, Work& w) { w.remote_address = m.at(0) - 8; }},
      {"ends after the region", 0, Cause::RemoteKeyRange,
       [](Side&, const Region& m, Work& w) { w.remote_address = m.at(m.length); }},
      {"wraps around", 0, Cause::RemoteKeyRange,
       [](Side&, const Region&, Work& w) { w.remote_address = ~std::uint64_t{7}; }},
      {"deregistered", 0, Cause::RemoteKeyUnknown,
       [](Side& b, const Region&, Work& w) {
         const Region gone = b.region(4096);
         EXPECT_EQ(b.destroy(Kind::Region, gone.handle), Status::Ok);
         w.rkey = gone.rkey;
         w.remote_address = gone.at(0);
       }},
  };
}

constexpr std::array kRemoteOps{WrOpcode::RdmaWrite,      WrOpcode::RdmaWriteWithImm,
                                WrOpcode::RdmaRead,       WrOpcode::AtomicCmpSwap,
                                WrOpcode::AtomicFetchAdd, WrOpcode::AtomicWrite};

std::uint32_t right_for(WrOpcode opcode) {
  if (opcode == WrOpcode::RdmaRead) return access::kRemoteRead;
  if (opcode == WrOpcode::AtomicCmpSwap || opcode == WrOpcode::AtomicFetchAdd) {
    return access::kRemoteAtomic;
  }
  return access::kRemoteWrite;
}

// An RDMA WRITE with immediate without the right to write ends its receive in error [IBA1 11.6.2].
WcStatus end_of_receive(WrOpcode opcode) {
  return opcode == WrOpcode::RdmaWriteWithImm ? WcStatus::LocAccessErr : WcStatus::WrFlushErr;
}

TEST_P(RcError, ABadRemoteKeyFailsTheRequestAndBreaksThePeer) {
  for (const RemoteFault& fault : remote_faults()) {
    for (const WrOpcode opcode : kRemoteOps) {
      SCOPED_TRACE(std::string(fault.name) + ", opcode " +
                   std::to_string(static_cast<std::uint32_t>(opcode)));
      QpSpec spec;
      spec.cookie = 0xabc0000 + static_cast<std::uint32_t>(opcode);
      make_pair(QpType::Rc, {}, spec);
      const Region ma = a->region(4096);
      const Region mb = b->region(4096);
      mb.fill(1);
      qb.receive(3, {});
      Work work = rdma(opcode, 5, {ma.sge(0, 8)}, mb);
      fault.spoil(*b, mb, work);
      qa.send(work);
      qa.send(send_work(6, {}));
      expect_failure(5, WcStatus::RemAccessErr, fault.cause);
      EXPECT_EQ(a->cq().one(WcStatus::WrFlushErr).wr_id, 6u);
      EXPECT_EQ(b->cq().one(end_of_receive(opcode)).wr_id, 3u);
      EXPECT_TRUE(qb.reaches(QpState::Error));
      expect_event(*b, verbs::EventType::QpAccessErr, spec.cookie);
      EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
      EXPECT_EQ(qa.try_destroy(), Status::Ok);
      EXPECT_EQ(qb.try_destroy(), Status::Ok);
    }
  }
}

TEST_P(RcError, AWriteWithImmediateThatMayNotWriteEndsOneReceive) {
  for (const bool posted : {true, false}) {
    make_pair(QpType::Rc);
    const Region ma = a->region(4096);
    const Region mb = b->region(4096);
    mb.fill(1);
    if (posted) {
      qb.receive(3, {mb.sge(0, 64)});
      qb.receive(4, {mb.sge(64, 64)});
    }
    Work work = rdma(WrOpcode::RdmaWriteWithImm, 5, {ma.sge(0, 8)}, mb);
    work.rkey ^= 0x77;
    qa.send(work);
    expect_failure(5, WcStatus::RemAccessErr, Cause::RemoteKeyUnknown);
    EXPECT_TRUE(qb.reaches(QpState::Error));
    if (posted) {
      const Completion ended = b->cq().one(WcStatus::LocAccessErr);
      EXPECT_EQ(ended.wr_id, 3u);
      EXPECT_EQ(ended.vendor_err, static_cast<std::uint32_t>(Cause::RemoteKeyUnknown));
      EXPECT_EQ(b->cq().one(WcStatus::WrFlushErr).wr_id, 4u);
    }
    EXPECT_TRUE(b->cq().stays_empty());
    EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
    expect_event(*b, verbs::EventType::QpAccessErr, 0);
  }
}

TEST_P(RcError, ARegionWithoutTheRightRefuses) {
  for (const WrOpcode opcode : kRemoteOps) {
    SCOPED_TRACE(static_cast<std::uint32_t>(opcode));
    make_pair(QpType::Rc);
    const Region ma = a->region(4096);
    const Region mb = b->region(4096, kAllAccess & ~right_for(opcode));
    mb.fill(1);
    qb.receive(3, {});
    qa.send(rdma(opcode, 5, {ma.sge(0, 8)}, mb));
    expect_failure(5, WcStatus::RemAccessErr, Cause::RemoteKeyAccess);
    EXPECT_EQ(b->cq().one(end_of_receive(opcode)).wr_id, 3u);
    expect_event(*b, verbs::EventType::QpAccessErr, 0);
    EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
  }
}

TEST_P(RcError, AQueuePairWithoutTheRightRefuses) {
  for (const WrOpcode opcode : kRemoteOps) {
    SCOPED_TRACE(static_cast<std::uint32_t>(opcode));
    Connection with;
    with.access &= ~right_for(opcode);
    make_pair(QpType::Rc, with);
    const Region ma = a->region(4096);
    const Region mb = b->region(4096);
    mb.fill(1);
    qb.receive(3, {});
    qa.send(rdma(opcode, 5, {ma.sge(0, 8)}, mb));
    expect_failure(5, WcStatus::RemInvReqErr, Cause::RemoteQpAccess);
    EXPECT_EQ(b->cq().one(WcStatus::WrFlushErr).wr_id, 3u);
    expect_event(*b, verbs::EventType::QpReqErr, 0);
    EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
  }
}

TEST_P(RcError, ASendNeedsNoRightOfTheQueuePair) {
  Connection with;
  with.access = 0;
  make_pair(QpType::Rc, with);
  qb.receive(1, {});
  qa.send(send_work(1, {}));
  (void)a->cq().one(WcStatus::Success);
}

TEST_P(RcError, AnAtomicOffItsAlignmentIsRefused) {
  for (const WrOpcode opcode :
       {WrOpcode::AtomicCmpSwap, WrOpcode::AtomicFetchAdd, WrOpcode::AtomicWrite}) {
    for (const std::uint64_t shift : {1u, 4u}) {
      make_pair(QpType::Rc);
      const Region ma = a->region(4096);
      const Region mb = b->region(4096);
      mb.fill(1);
      qa.send(rdma(opcode, 5, {ma.sge(0, 8)}, mb, shift));
      expect_failure(5, WcStatus::RemInvReqErr, Cause::RemoteAlignment);
      EXPECT_TRUE(qb.reaches(QpState::Error));
      EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
    }
  }
}

TEST_P(RcError, AnAtomicReturnsEightBytesAndNoOtherNumber) {
  for (const WrOpcode opcode : {WrOpcode::AtomicCmpSwap, WrOpcode::AtomicFetchAdd}) {
    for (const std::uint32_t length : {4u, 7u, 9u, 16u}) {
      make_pair(QpType::Rc);
      const Region ma = a->region(4096);
      const Region mb = b->region(4096);
      mb.fill(1);
      qa.send(rdma(opcode, 5, {ma.sge(0, length)}, mb));
      expect_failure(5, WcStatus::LocLenErr, Cause::LocalLength);
      EXPECT_EQ(qb.state(), QpState::Rts);
      EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
    }
  }
}

TEST_P(RcError, ReadsAndAtomicsNeedDepthAtTheRequester) {
  for (const WrOpcode opcode :
       {WrOpcode::RdmaRead, WrOpcode::AtomicCmpSwap, WrOpcode::AtomicFetchAdd}) {
    Connection with;
    with.max_rd_atomic = 0;
    make_pair(QpType::Rc, with);
    const Region ma = a->region(4096);
    const Region mb = b->region(4096);
    qa.send(rdma(opcode, 5, {ma.sge(0, 8)}, mb));
    expect_failure(5, WcStatus::LocQpOpErr, Cause::ReadDepth);
  }
}

TEST_P(RcError, ReadsAndAtomicsNeedDepthAtTheResponder) {
  for (const WrOpcode opcode :
       {WrOpcode::RdmaRead, WrOpcode::AtomicCmpSwap, WrOpcode::AtomicFetchAdd}) {
    Connection with;
    with.max_dest_rd_atomic = 0;
    make_pair(QpType::Rc, with);
    const Region ma = a->region(4096);
    const Region mb = b->region(4096);
    qa.send(rdma(opcode, 5, {ma.sge(0, 8)}, mb));
    expect_failure(5, WcStatus::RemInvReqErr, Cause::ReadDepth);
    EXPECT_TRUE(qb.reaches(QpState::Error));
  }
}

// --- Flushing ---

TEST_P(RcError, ErrorFlushesBothQueuesInOrderAndWhatIsPostedLater) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  for (std::uint64_t i = 0; i < 5; ++i) qa.receive(100 + i, {ma.sge(0, 8)});
  for (std::uint64_t i = 0; i < 5; ++i) {
    Work work = send_work(i, {ma.sge(0, 8)});  // no receive at B: all wait
    if (i == 3) work.flags = 0;                // errors complete unsignalled requests too
    qa.send(work);
  }
  qa.to(QpState::Error);
  std::vector<std::uint64_t> sends;
  std::vector<std::uint64_t> receives;
  for (const Completion& flushed : a->cq().wait(10)) {
    EXPECT_EQ(flushed.status, WcStatus::WrFlushErr);
    (flushed.wr_id >= 100 ? receives : sends).push_back(flushed.wr_id);
  }
  EXPECT_EQ(sends, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(receives, (std::vector<std::uint64_t>{100, 101, 102, 103, 104}));
  qa.send(send_work(8, {}));
  EXPECT_EQ(a->cq().one(WcStatus::WrFlushErr).wr_id, 8u);
  qa.receive(108, {});
  EXPECT_EQ(a->cq().one(WcStatus::WrFlushErr).wr_id, 108u);
  EXPECT_TRUE(a->cq().stays_empty());
}

// However long that takes: a program frees a buffer whose receive has ended.
TEST_P(RcError, NoReceiveEndsWhileAStoppedThreadMayBeDeliveringIntoIt) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qa.receive(1, {ma.sge(0, 8)});
  softib::InProcessDaemon& daemon = TestFabric::shared().daemon();
  // A thread of A that sent to itself would look like this to it.
  std::atomic<std::uint64_t>* word = nullptr;
  daemon.on_loop([&] {
    const hca::Arena& arena = daemon.access_layer().arena;
    const std::uint32_t slot = arena.qp(hca::qp_index(qa.qpn))->id.owner_slot;
    arena.slot(slot)->words_used.store(hca::kThreadsPerSlot);
    word = &arena.slot(slot)->threads.back().sequence;
  });
  word->store(word->load() + 1);
  EXPECT_EQ(word->load() & 1, 1u);
  Work work = rdma(WrOpcode::RdmaWrite, 1, {mb.sge(0, 8)}, ma);
  work.rkey = 0;
  qb.send(work);  // breaks both ends
  EXPECT_EQ(b->cq().one(WcStatus::RemAccessErr).wr_id, 1u);
  EXPECT_TRUE(qa.reaches(QpState::Error));
  EXPECT_TRUE(a->cq().stays_empty());
  (void)a->region(64);  // the wait holds up nothing else of the process
  EXPECT_TRUE(a->cq().stays_empty());
  qa.receive(2, {ma.sge(0, 8)});
  EXPECT_TRUE(a->cq().stays_empty());
  word->store(word->load() + 1);
  EXPECT_EQ(a->cq().one(WcStatus::WrFlushErr).wr_id, 1u);
  EXPECT_EQ(a->cq().one(WcStatus::WrFlushErr).wr_id, 2u);
}

TEST_P(RcError, AFailedRequestFlushesTheReceivesOfItsOwnQueuePair) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  for (std::uint64_t i = 0; i < 3; ++i) qa.receive(100 + i, {ma.sge(0, 8)});
  Work work = rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 8)}, mb);
  work.rkey = 0;
  qa.send(work);
  EXPECT_EQ(a->cq().one(WcStatus::RemAccessErr).wr_id, 1u);
  const auto flushed = a->cq().wait(3);
  ASSERT_EQ(flushed.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(flushed[i].wr_id, 100 + i);
    EXPECT_EQ(flushed[i].status, WcStatus::WrFlushErr);
  }
}

TEST_P(RcError, AReceiveThatCompletedIsNotFlushedAgain) {
  make_pair(QpType::Rc);
  for (std::uint64_t i = 0; i < 4; ++i) qb.receive(i, {});
  qa.send(send_work(1, {}));
  qa.send(send_work(2, {}));
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
  qb.to(QpState::Error);
  const auto all = b->cq().wait(4);
  ASSERT_EQ(all.size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[i].wr_id, i);
    EXPECT_EQ(all[i].status, i < 2 ? WcStatus::Success : WcStatus::WrFlushErr);
  }
  EXPECT_TRUE(b->cq().stays_empty());
}

TEST_P(RcError, APeerInErrorExhaustsTheRetries) {
  Connection with;
  with.timeout = 8;
  with.retry_cnt = 1;
  make_pair(QpType::Rc, with);
  qb.to(QpState::Error);
  qa.send(send_work(1, {}));
  expect_failure(1, WcStatus::RetryExcErr, Cause::PeerNotReady);
}

}  // namespace
}  // namespace ib::conformance
