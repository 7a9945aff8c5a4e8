// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DREQ, DREP, time-wait, stale connections.
#include "cm/messages/dreq.h"
#include "cm/messages/rej.h"
#include "cm/messages/rep.h"
#include "cm/messages/req.h"
#include "cm/test/link_world_test.h"

namespace ib::cm::test {
namespace {

using A = Attribute;
using Sent = std::vector<Attribute>;

class Disconnecting : public Pair {};

TEST_F(Disconnecting, TwoMessagesAndTimeWait) {
  const auto [active, passive] = establish();
  const auto bye = text("bye"), ok = text("ok");
  EXPECT_EQ(a.engine.disconnect(active, bye, world.now), Status::Ok);
  EXPECT_EQ(a.state(active), State::DreqSent);
  EXPECT_EQ(a.engine.disconnect(active, bye, world.now), Status::InvalidState);
  world.deliver();
  EXPECT_EQ(text_of(z.take<DisconnectRequested>().private_data), "bye");
  EXPECT_EQ(z.state(passive), State::DreqReceived);
  EXPECT_EQ(z.engine.confirm_disconnect(passive, ok, world.now), Status::Ok);
  EXPECT_EQ(z.state(passive), State::TimeWait);
  const Instant start = world.now;
  world.deliver();
  const auto event = a.take<Disconnected>();
  EXPECT_EQ(event.by, Disconnected::By::Answer);
  EXPECT_EQ(text_of(event.private_data), "ok");
  EXPECT_EQ(a.state(active), State::TimeWait);
  EXPECT_TRUE(a.engine.is_connected(0x11));
  EXPECT_EQ(a.engine.connect(request_between(0, 1, 0x11), world.now).error(), Status::DeviceBusy);

  const auto deadline = z.engine.deadline();
  EXPECT_EQ(deadline, start + time_of(ack_timeout(kAckDelay, kLifetime)));
  EXPECT_EQ(a.engine.deadline(), world.now + kTimeWait);
  EXPECT_TRUE(world.settle());
  a.take<TimeWaitEnded>();
  z.take<TimeWaitEnded>();
  EXPECT_EQ(a.state(active), State::Closed);
  EXPECT_FALSE(a.engine.is_connected(0x11));
  a.engine.destroy(active, world.now);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Disconnecting, ALostDrepIsSentAgainFromTimeWait) {
  const auto [active, passive] = establish();
  EXPECT_EQ(z.engine.disconnect(passive, {}, world.now), Status::Ok);
  world.deliver();
  a.take<DisconnectRequested>();
  lose({A::Drep});
  const auto ok = text("ok");
  const mad::Mad dreq = world.sent.back().mad;
  EXPECT_EQ(a.engine.confirm_disconnect(active, ok, world.now), Status::Ok);
  world.deliver();
  EXPECT_TRUE(z.events.empty());
  world.inject(0, dreq, 1);
  world.deliver();
  EXPECT_EQ(text_of(z.take<Disconnected>().private_data), "ok");
  (void)passive;
}

// The other side's time-wait is over before the DREQ comes again.
TEST_F(Disconnecting, ADreqForNoConnectionIsAnswered) {
  const auto [active, passive] = establish();
  EXPECT_EQ(a.engine.disconnect(active, {}, world.now), Status::Ok);
  world.deliver();
  z.take<DisconnectRequested>();
  lose({A::Drep});
  EXPECT_EQ(z.engine.confirm_disconnect(passive, {}, world.now), Status::Ok);
  z.engine.destroy(passive, world.now);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(a.take<Disconnected>().by, Disconnected::By::Answer);
  EXPECT_EQ(world.take_sent(), (Sent{A::Dreq, A::Drep, A::Dreq, A::Drep}));
}

TEST_F(Disconnecting, BothSidesDisconnectAtOnce) {
  const auto [active, passive] = establish();
  const auto one = text("one"), two = text("two");
  EXPECT_EQ(a.engine.disconnect(active, one, world.now), Status::Ok);
  EXPECT_EQ(z.engine.disconnect(passive, two, world.now), Status::Ok);
  world.deliver();
  const auto at_a = a.take<Disconnected>(), at_z = z.take<Disconnected>();
  EXPECT_EQ(at_a.by, Disconnected::By::Crossed);
  EXPECT_EQ(at_z.by, Disconnected::By::Crossed);
  EXPECT_EQ(text_of(at_a.private_data), "two");
  EXPECT_EQ(text_of(at_z.private_data), "one");
  a.engine.destroy(active, world.now);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Disconnecting, TheOtherSideHasVanished) {
  const auto [active, passive] = establish();
  cut();
  EXPECT_EQ(a.engine.disconnect(active, {}, world.now), Status::Ok);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(a.take<Disconnected>().by, Disconnected::By::Timeout);
  a.take<TimeWaitEnded>();
  EXPECT_EQ(world.take_sent(), Sent(1 + kRetries, A::Dreq));
  heal();
  // The other end ends when it tries.
  EXPECT_EQ(z.engine.disconnect(passive, {}, world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(z.take<Disconnected>().by, Disconnected::By::Answer);
}

TEST_F(Disconnecting, DestroyingAConnectionDisconnectsIt) {
  const auto [active, passive] = establish();
  a.engine.destroy(active, world.now);
  EXPECT_EQ(a.engine.query(active).error(), Status::NotFound);
  world.deliver();
  z.take<DisconnectRequested>();
  z.engine.destroy(passive, world.now);
  world.deliver();
  EXPECT_TRUE(a.events.empty());
  EXPECT_EQ(a.engine.connection_count(), 1u);  // time-wait
  EXPECT_TRUE(a.engine.is_connected(0x11));
  expect_nothing_left();
}

TEST_F(Disconnecting, ALostDreqOfADestroyedConnectionIsSentAgain) {
  const auto [active, passive] = establish();
  lose({A::Dreq, A::Dreq});
  a.engine.destroy(active, world.now);
  world.advance(2 * kReqInterval + 1ms);
  z.take<DisconnectRequested>();
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Disconnecting, ADreqStandsForALostRtu) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  lose({A::Rtu});
  EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::Ok);
  a.engine.destroy(active, world.now);
  world.deliver();
  z.take<DisconnectRequested>();
  EXPECT_EQ(z.engine.confirm_disconnect(passive, {}, world.now), Status::Ok);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Disconnecting, ADreqOfAWrongQueuePairOrConnectionEndsNothing) {
  const auto [active, passive] = establish();
  Dreq dreq;
  dreq.ids = {1, a.info(active).local_comm_id, z.info(passive).local_comm_id};
  dreq.remote_qpn = 0x112;
  world.inject(1, encode(dreq), 2);
  dreq.remote_qpn = 0x111;
  dreq.ids.local += 1;
  world.inject(1, encode(dreq), 2);
  dreq.ids.local -= 1;
  dreq.ids.remote += 1;
  world.inject(1, encode(dreq), 2);
  EXPECT_EQ(z.state(passive), State::Established);
  EXPECT_EQ(z.engine.counters().wrong_comm_id, 3u);
  EXPECT_TRUE(z.events.empty());
}

TEST_F(Disconnecting, AReqInTimeWaitIsStale) {
  const auto [active, passive] = establish();
  a.engine.destroy(active, world.now);
  world.deliver();
  z.engine.destroy(passive, world.now);
  world.deliver();
  // Another communication ID, but a queue pair that is still in time-wait there.
  World other(2, {}, 99);
  const auto again = other[0].engine.connect(request_between(0, 1, 0x11), world.now);
  ASSERT_TRUE(again.has_value());
  world.take_sent();
  world.inject(1, other[0].engine.poll_mad()->mad, 0);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(decode_rej(world.sent[0].mad)->reason,
            static_cast<std::uint16_t>(RejectReason::StaleConnection));
  other[0].engine.receive(world.sent[0].mad, World::address_between(1, 0), world.now);
  const auto event = other[0].engine.poll_event();
  ASSERT_TRUE(event && std::holds_alternative<Rejected>(*event));
  EXPECT_EQ(other[0].state(*again), State::TimeWait);  // as the other side has
  (void)passive;
}

// The other node was started again: it has the same adapter and queue pairs and no connections.
TEST_F(Disconnecting, AReqOfAConnectedQueuePairEndsTheOldConnection) {
  const auto [active, passive] = establish();
  World other(2, {}, 99);
  ASSERT_TRUE(other[0].engine.connect(request_between(0, 1, 0x11), world.now).has_value());
  cut();
  world.take_sent();
  world.inject(1, other[0].engine.poll_mad()->mad, 0);
  EXPECT_EQ(world.take_sent(), (Sent{A::Rej, A::Dreq}));
  EXPECT_EQ(z.state(passive), State::DreqSent);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(z.take<Disconnected>().by, Disconnected::By::Stale);
  EXPECT_EQ(z.engine.counters().stale, 1u);
  (void)active;
}

TEST_F(Disconnecting, AReqFromElsewhereEndsNoConnection) {
  const auto [active, passive] = establish();
  World other(2, {}, 99);
  ASSERT_TRUE(other[0].engine.connect(request_between(0, 1, 0x11), world.now).has_value());
  world.inject(1, other[0].engine.poll_mad()->mad, 2);
  EXPECT_EQ(world.take_sent(), Sent{A::Rej});
  EXPECT_EQ(z.state(passive), State::Established);
  (void)active;
}

TEST_F(Disconnecting, AReqWithACommunicationIdInUseIsADuplicate) {
  const auto [active, passive] = establish();
  connect(0x12);
  world.collect();
  Req req = decode_req(world.sent.back().mad);
  req.local_comm_id = a.info(active).local_comm_id;
  world.take_sent();
  world.inject(1, encode(req), 0);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(decode_rej(world.sent[0].mad)->reason,
            static_cast<std::uint16_t>(RejectReason::DuplicateLocalCommId));
  EXPECT_EQ(z.state(passive), State::Established);
}

TEST_F(Disconnecting, ARepOfAConnectedQueuePairIsStale) {
  establish(0x11);
  const ConnectionId active = connect(0x12);
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.collect();
  Rep rep = decode_rep(world.sent.back().mad);
  rep.qpn = 0x111;  // of the first connection
  world.take_sent();
  world.inject(0, encode(rep), 1);
  EXPECT_EQ(a.state(active), State::ReqSent);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(decode_rej(world.sent[0].mad)->reason,
            static_cast<std::uint16_t>(RejectReason::StaleConnection));
}

TEST_F(Disconnecting, ACommunicationIdComesAgainOnlyAfterManyOthers) {
  std::set<ConnectionId> ids;
  for (int i = 0; i < 20000; ++i) {
    const ConnectionId id = connect(0x11);
    EXPECT_TRUE(ids.insert(id).second);
    a.engine.destroy(id, world.now);
    while (a.engine.poll_mad()) {}
  }
}

}  // namespace
}  // namespace ib::cm::test
