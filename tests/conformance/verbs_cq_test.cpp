// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion queues: events, arming, overflow, resizing, time stamps [IBA1 11.2.6, 11.4.2].
#include "peer/scribbler.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace ib::conformance {
namespace {

class CompletionQueues : public VerbsTest {
 protected:
  // qa/qb connected; B's receives complete in `cq`, which has a channel.
  void with_channel(std::uint32_t cqe = 64, std::uint32_t flags = 0) {
    channel = b->new_channel();
    CqSpec spec;
    spec.cqe = cqe;
    spec.channel = channel;
    spec.flags = flags;
    spec.cookie = 0xc0c0;
    cq = b->new_cq(spec);
    QpSpec qp;
    qa = a->new_qp();
    qp.recv_cq = cq.handle;
    qb = b->new_qp(qp);
    connect(qa, qb, QpType::Rc);
  }
  void message(bool solicited = false) {
    qb.receive(1, {});
    Work work = send_work(1, {});
    if (solicited) work.flags |= send_flag::kSolicited;
    qa.send(work);
    (void)a->cq().one(WcStatus::Success);
  }
  bool event_comes() { return b->channel_event(channel) == std::uint64_t{0xc0c0}; }
  bool no_event_comes() { return !b->channel_event(channel, kMoment).has_value(); }
  std::uint32_t channel = kNoHandle;
  Cq cq;
};
IB_EVERY_SETTING(CompletionQueues);

TEST_P(CompletionQueues, AnArmedQueueGivesOneEventForManyCompletions) {
  with_channel();
  message();
  EXPECT_TRUE(no_event_comes()) << "not armed";
  EXPECT_EQ(cq.wait(1).size(), 1u);
  cq.arm();
  EXPECT_TRUE(no_event_comes()) << "nothing new";
  message();
  message();
  EXPECT_TRUE(event_comes());
  EXPECT_TRUE(no_event_comes());
  EXPECT_EQ(cq.wait(2).size(), 2u);
  cq.arm();
  message();
  EXPECT_TRUE(event_comes());
}

// As on adapters, where arming also passes the consumer's position.
TEST_P(CompletionQueues, ArmingReportsWhatNoEventHasReported) {
  with_channel();
  message();
  cq.arm();
  EXPECT_TRUE(event_comes()) << "it arrived between the last poll and the arming";
  cq.arm();
  EXPECT_TRUE(no_event_comes()) << "it is still there, but has been reported";
  message();
  EXPECT_TRUE(event_comes());
  message();
  cq.arm(true);
  EXPECT_TRUE(no_event_comes()) << "not solicited";
  cq.arm();
  EXPECT_TRUE(event_comes());
  EXPECT_EQ(cq.wait(3).size(), 3u);
}

TEST_P(CompletionQueues, ArmedForSolicitedCompletionsItIgnoresOthers) {
  with_channel();
  cq.arm(true);
  message();
  EXPECT_TRUE(no_event_comes());
  message(true);
  EXPECT_TRUE(event_comes());
  message(true);
  EXPECT_TRUE(no_event_comes()) << "it is not armed any more";
}

TEST_P(CompletionQueues, AnErrorCountsAsSolicited) {
  with_channel();
  qb.receive(5, {});
  cq.arm(true);
  qb.to(QpState::Error);
  EXPECT_TRUE(event_comes());
  EXPECT_EQ(cq.one(WcStatus::WrFlushErr).wr_id, 5u);
}

TEST_P(CompletionQueues, ASolicitedRequestDoesNotWeakenArmingForAll) {
  with_channel();
  cq.arm(false);
  cq.arm(true);
  message();
  EXPECT_TRUE(event_comes());
}

TEST_P(CompletionQueues, SendCompletionsGiveEventsToo) {
  const std::uint32_t own = a->new_channel();
  CqSpec spec;
  spec.channel = own;
  spec.cookie = 12;
  const Cq sends = a->new_cq(spec);
  QpSpec qp;
  qp.send_cq = sends.handle;
  qa = a->new_qp(qp);
  qb = b->new_qp();
  connect(qa, qb, QpType::Rc);
  sends.arm();
  qa.send(send_work(1, {}));  // waits; its completion comes from the service thread
  qb.receive(1, {});
  EXPECT_EQ(a->channel_event(own), std::uint64_t{12});
  EXPECT_EQ(sends.one(WcStatus::Success).wr_id, 1u);
}

TEST_P(CompletionQueues, QueuesMayShareAChannel) {
  channel = b->new_channel();
  CqSpec spec;
  spec.channel = channel;
  Qp at_a[3];
  Qp at_b[3];
  Cq queues[3];
  for (std::uint64_t i = 0; i < 3; ++i) {
    spec.cookie = 100 + i;
    queues[i] = b->new_cq(spec);
    QpSpec qp;
    qp.recv_cq = queues[i].handle;
    at_a[i] = a->new_qp();
    at_b[i] = b->new_qp(qp);
    connect(at_a[i], at_b[i], QpType::Rc);
    queues[i].arm();
    at_b[i].receive(i, {});
  }
  for (const std::size_t i : {2u, 0u, 1u}) {
    at_a[i].send(send_work(1, {}));
    EXPECT_EQ(b->channel_event(channel), std::uint64_t{100 + i});
  }
  EXPECT_EQ(b->destroy(Kind::Channel, channel), Status::DeviceBusy);
}

// More than the pipe of the channel holds (TestHost::make_pipe), and of another queue then.
TEST_P(CompletionQueues, NoEventIsLostHoweverManyAreUnread) {
  constexpr std::size_t kMany = 600;
  with_channel(1024);
  CqSpec spec;
  spec.channel = channel;
  spec.cookie = 0xd0d0;
  const Cq other = b->new_cq(spec);
  QpSpec qp;
  qp.recv_cq = other.handle;
  Qp at_a = a->new_qp();
  Qp at_b = b->new_qp(qp);
  connect(at_a, at_b, QpType::Rc);
  for (std::size_t i = 0; i < kMany; ++i) {
    cq.arm();
    message();
    EXPECT_EQ(cq.one(WcStatus::Success).byte_len, 0u);
  }
  other.arm();
  at_b.receive(1, {});
  at_a.send(send_work(1, {}));
  EXPECT_EQ(other.one(WcStatus::Success).wr_id, 1u);
  std::map<std::uint64_t, std::size_t> events;
  for (std::size_t i = 0; i <= kMany; ++i) {
    const auto event = b->channel_event(channel);
    ASSERT_TRUE(event.has_value()) << i;
    ++events[*event];
  }
  EXPECT_EQ(events[0xc0c0], kMany);
  EXPECT_EQ(events[0xd0d0], 1u);
  EXPECT_TRUE(no_event_comes());
  cq.arm();
  message();
  EXPECT_TRUE(event_comes());
}

TEST_P(CompletionQueues, UnreadEventsDoNotKeepItFromEnding) {
  with_channel(1024);
  for (int i = 0; i < 520; ++i) {
    cq.arm();
    message();
    EXPECT_EQ(cq.one(WcStatus::Success).byte_len, 0u);
  }
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Cq, cq.handle), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Channel, channel), Status::Ok);
}

TEST_P(CompletionQueues, AnOverflowBreaksItAndItsOwnerLearnsOfIt) {
  with_channel(2);
  QpSpec idle;
  idle.send_cq = cq.handle;
  Qp its_peer = a->new_qp();
  Qp user = b->new_qp(idle);
  connect(its_peer, user, QpType::Rc);
  for (std::uint64_t i = 0; i < 4; ++i) qb.receive(i, {});
  for (std::uint64_t i = 0; i < 4; ++i) qa.send(send_work(i, {}));
  // One event for it, and one for each queue pair that uses it.
  std::map<std::pair<control::EventObject, verbs::EventType>, std::size_t> events;
  for (int i = 0; i < 3; ++i) {
    const auto event = b->event();
    ASSERT_TRUE(event.has_value());
    ++events[{event->object, event->type}];
    if (event->object == control::EventObject::Cq) {
      EXPECT_EQ(event->cookie, 0xc0c0u);
    }
  }
  EXPECT_EQ((events[{control::EventObject::Cq, verbs::EventType::CqErr}]), 1u);
  EXPECT_EQ((events[{control::EventObject::Qp, verbs::EventType::QpFatal}]), 2u);
  EXPECT_FALSE(b->event(kMoment).has_value());
  // The two completions that fitted are whole; the third request fails at the sender.
  const auto sent = a->cq().wait(4);
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[0].status, WcStatus::Success);
  EXPECT_EQ(sent[1].status, WcStatus::Success);
  EXPECT_EQ(sent[2].status, WcStatus::RemOpErr);
  EXPECT_EQ(sent[3].status, WcStatus::WrFlushErr);
  EXPECT_TRUE(qb.reaches(QpState::Error));
  EXPECT_TRUE(user.reaches(QpState::Error));
  EXPECT_EQ(cq.wait(2).size(), 2u);
  EXPECT_TRUE(cq.stays_empty()) << "it takes no more";
}

TEST_P(CompletionQueues, HoldsAsManyAsItWasAskedFor) {
  CqSpec spec;
  spec.cqe = 5;
  const Cq small = b->new_cq(spec);
  QpSpec qp;
  qp.recv_cq = small.handle;
  qa = a->new_qp();
  qb = b->new_qp(qp);
  connect(qa, qb, QpType::Rc);
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 5; ++i) {
      qb.receive(round * 5 + i, {});
      qa.send(send_work(i, {}));
    }
    EXPECT_EQ(a->cq().wait(5).size(), 5u);
    const auto got = small.wait(5);
    ASSERT_EQ(got.size(), 5u);
    for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(got[i].wr_id, round * 5 + i);
  }
}

TEST_P(CompletionQueues, ResizingKeepsWhatIsOutstanding) {
  with_channel(8);
  for (std::uint64_t i = 0; i < 300; ++i) {
    if (i % 60 == 7) {
      const auto size = static_cast<std::uint32_t>(i % 120 == 7 ? 200 : 33);
      Reply reply = b->expect(Command::ResizeCq, Message().put(cq.handle).put(size));
      EXPECT_GE(reply.out.take<std::uint32_t>(), size);
    }
    qb.receive(i, {});
    qa.send(send_work(i, {}));
    (void)a->cq().one(WcStatus::Success);
    if (i % 60 >= 6 && i % 60 < 26) continue;  // lets some pile up over a resize
    const std::uint32_t due = i % 60 == 26 ? 21 : 1;
    const auto got = cq.wait(due);
    ASSERT_EQ(got.size(), due);
    EXPECT_EQ(got.back().wr_id, i);
    EXPECT_EQ(got.front().wr_id, i + 1 - due);
  }
}

TEST_P(CompletionQueues, ResizingBelowWhatItHoldsIsRefused) {
  with_channel(16);
  for (int i = 0; i < 6; ++i) message();
  const std::uint32_t five = 5;
  EXPECT_EQ(b->call(Command::ResizeCq, Message().put(cq.handle).put(five)).status,
            Status::InvalidParameter);
  EXPECT_EQ(cq.wait(6).size(), 6u);
  EXPECT_EQ(b->call(Command::ResizeCq, Message().put(cq.handle).put(five)).status, Status::Ok);
  message();
  EXPECT_EQ(cq.wait(1).size(), 1u);
}

TEST_P(CompletionQueues, ImpossibleSizesAreRefused) {
  CqSpec spec;
  spec.cqe = 0;
  EXPECT_EQ(a->call(Command::CreateCq, Message().put(spec)).status, Status::InvalidParameter);
  spec.cqe = 4194304;
  EXPECT_EQ(a->call(Command::CreateCq, Message().put(spec)).status, Status::InvalidParameter);
  EXPECT_EQ(a->call(Command::ResizeCq, Message().put(a->cq().handle).put(std::uint32_t{0})).status,
            Status::InvalidParameter);
}

TEST_P(CompletionQueues, ItIsBusyWhileAQueuePairUsesIt) {
  with_channel();
  EXPECT_EQ(b->destroy(Kind::Cq, cq.handle), Status::DeviceBusy);
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Cq, cq.handle), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Channel, channel), Status::Ok);
}

TEST_P(CompletionQueues, TimeStampsGrow) {
  with_channel(64, control::cq_flag::kTimestamp);
  for (int i = 0; i < 5; ++i) message();
  const auto got = cq.wait(5);
  ASSERT_EQ(got.size(), 5u);
  EXPECT_NE(got[0].timestamp, 0u);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_GE(got[i].timestamp, got[i - 1].timestamp);
}

TEST_P(CompletionQueues, CompletionsOfADestroyedQueuePairAreGone) {
  with_channel();
  message();
  message();
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
  EXPECT_TRUE(cq.stays_empty());
}

TEST_P(CompletionQueues, SeveralProducersLoseNothing) {
  CqSpec spec;
  spec.cqe = 512;
  const Cq shared = b->new_cq(spec);
  std::vector<Qp> at_a;
  std::vector<Qp> at_b;
  for (std::size_t i = 0; i < 6; ++i) {
    QpSpec qp;
    qp.send_cq = shared.handle;
    qp.recv_cq = shared.handle;
    at_a.push_back(a->new_qp());
    at_b.push_back(b->new_qp(qp));
    connect(at_a[i], at_b[i], QpType::Rc);
    for (std::uint64_t n = 0; n < 20; ++n) {
      at_a[i].receive(n, {});
      at_b[i].receive(100 * i + n, {});
    }
  }
  for (std::uint64_t n = 0; n < 20; ++n) {
    for (std::size_t i = 0; i < 6; ++i) {
      at_a[i].send(send_work(n, {}));
      at_b[i].send(send_work(1000 + 100 * i + n, {}));
    }
  }
  std::vector<std::uint64_t> next(6, 0);
  const auto all = shared.wait(240);
  ASSERT_EQ(all.size(), 240u);
  for (const Completion& c : all) {
    EXPECT_EQ(c.status, WcStatus::Success);
    if (c.wr_id >= 1000) continue;
    EXPECT_EQ(c.wr_id % 100, next[c.wr_id / 100]++);
  }
  EXPECT_EQ(a->cq().wait(240).size(), 240u);
}

// Every process with device memory mapped can write a completion into any queue. A completion in
// the queue pair's other queue would end its request twice, from two threads.
TEST_P(CompletionQueues, AForgedCompletionOfTheOtherQueueIsIgnored) {
  QpSpec spec;
  const Cq sends = a->new_cq({});
  const Cq receives = a->new_cq({});
  spec.send_cq = sends.handle;
  spec.recv_cq = receives.handle;
  qa = a->new_qp(spec);
  qb = b->new_qp();
  connect(qa, qb, QpType::Rc);
  const Scribbler scribbler;
  const hca::QpEntry& entry = scribbler.qp(qa.qpn);
  hca::Cqe forged;
  forged.qpn = qa.qpn;
  forged.wqe = 0;

  qa.receive(7, {});
  forged.bits = hca::cqe_bit::kReceive;
  scribbler.forge(entry.geometry.send_cq, forged);
  EXPECT_TRUE(sends.stays_empty());
  qb.send(send_work(1, {}));
  EXPECT_EQ(receives.one(WcStatus::Success).wr_id, 7u);

  qa.send(send_work(9, {}));  // waits, nothing is posted there
  forged.bits = 0;
  scribbler.forge(entry.id.recv_cq, forged);
  EXPECT_TRUE(receives.stays_empty());
}

}  // namespace
}  // namespace ib::conformance
