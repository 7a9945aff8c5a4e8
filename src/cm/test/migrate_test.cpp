// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LAP and APR: alternate paths of an established connection.
#include "cm/messages/lap.h"
#include "cm/test/link_world_test.h"

namespace ib::cm::test {
namespace {

using A = Attribute;
using Sent = std::vector<Attribute>;

class Migrating : public Pair {
 protected:
  // Another path between the same ports.
  static Path other_path() {
    Path path = path_between(0, 1);
    path.slid = 0x51;
    path.dlid = 0x52;
    path.sl = 5;
    return path;
  }
};

TEST_F(Migrating, AnAlternatePathOfTheReqIsAtBothEnds) {
  auto request = request_between(0, 1, 0x11);
  request.alternate = other_path();
  const ConnectionId active = connect(request);
  const RequestReceived req = requested();
  ASSERT_TRUE(req.alternate.has_value());
  EXPECT_EQ(req.alternate->dlid, 0x51);
  EXPECT_EQ(req.alternate->slid, 0x52);
  EXPECT_EQ(req.alternate->sl, 5);
  EXPECT_EQ(z.engine.accept(req.id, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  EXPECT_TRUE(a.info(active).alternate.has_value());
  EXPECT_TRUE(z.info(req.id).alternate.has_value());
  EXPECT_NE(z.info(req.id).alternate_ack_timeout, 0);
}

TEST_F(Migrating, AReplyMayRefuseFailover) {
  auto request = request_between(0, 1, 0x11);
  request.alternate = other_path();
  const ConnectionId active = connect(request);
  const ConnectionId passive = requested().id;
  Reply reply = reply_with(0x22);
  reply.failover = Failover::NotSupported;
  EXPECT_EQ(z.engine.accept(passive, reply, world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(a.take<ReplyReceived>().failover, Failover::NotSupported);
  EXPECT_FALSE(a.info(active).alternate.has_value());
  EXPECT_FALSE(z.info(passive).alternate.has_value());
}

TEST_F(Migrating, TheActiveSideLoadsAnotherPath) {
  const auto [active, passive] = establish();
  const auto why = text("why"), ok = text("ok");
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), why, world.now), Status::Ok);
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), why, world.now),
            Status::InvalidState);
  EXPECT_TRUE(a.info(active).awaits_path_answer);
  world.deliver();
  const auto offered = z.take<AlternatePathOffered>();
  EXPECT_EQ(offered.path.dlid, 0x51);
  EXPECT_EQ(text_of(offered.private_data), "why");
  EXPECT_TRUE(z.info(passive).awaits_path_answer);
  EXPECT_EQ(
      z.engine.answer_alternate_path(passive, {AlternatePathStatus::Loaded, {}, ok}, world.now),
      Status::Ok);
  world.deliver();
  const auto answered = a.take<AlternatePathAnswered>();
  EXPECT_EQ(answered.status, AlternatePathStatus::Loaded);
  EXPECT_EQ(text_of(answered.private_data), "ok");
  EXPECT_EQ(a.info(active).alternate->dlid, 0x52);
  EXPECT_EQ(z.info(passive).alternate->slid, 0x52);
  EXPECT_FALSE(a.engine.deadline());

  EXPECT_EQ(a.engine.path_has_migrated(active), Status::Ok);
  EXPECT_EQ(a.info(active).primary.dlid, 0x52);
  EXPECT_EQ(a.info(active).peer.remote_lid, 0x52);
  EXPECT_FALSE(a.info(active).alternate.has_value());
  EXPECT_EQ(a.engine.path_has_migrated(active), Status::InvalidState);
}

TEST_F(Migrating, LostAndDoubledMessagesDoNotMatter) {
  const auto [active, passive] = establish();
  lose({A::Lap, A::Apr});
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), {}, world.now), Status::Ok);
  world.advance(kReqInterval + 1ms);
  z.take<AlternatePathOffered>();
  EXPECT_EQ(z.engine.answer_alternate_path(passive, {AlternatePathStatus::Rejected, text("i"), {}},
                                           world.now),
            Status::Ok);
  world.advance(kReqInterval);
  const auto answered = a.take<AlternatePathAnswered>();
  EXPECT_EQ(answered.status, AlternatePathStatus::Rejected);
  EXPECT_EQ(answered.info.size(), 1u);
  EXPECT_FALSE(z.info(passive).alternate.has_value());
  EXPECT_EQ(world.take_sent(), (Sent{A::Lap, A::Lap, A::Apr, A::Lap, A::Apr}));
  EXPECT_TRUE(z.events.empty());
  // The next one is another one.
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), {}, world.now), Status::Ok);
  world.deliver();
  z.take<AlternatePathOffered>();
}

TEST_F(Migrating, ACopyOfAnOlderLapIsNotAnotherOne) {
  const auto [active, passive] = establish();
  std::vector<mad::Mad> laps;
  for (unsigned plane = 1; plane <= 4; ++plane) {
    Path path = other_path();
    path.dlid = lid_of(1, plane);
    EXPECT_EQ(a.engine.load_alternate_path(active, path, {}, world.now), Status::Ok);
    world.collect();
    laps.push_back(world.sent.back().mad);
    world.deliver();
    z.take<AlternatePathOffered>();
    EXPECT_EQ(z.engine.answer_alternate_path(passive, {}, world.now), Status::Ok);
    world.deliver();
    a.take<AlternatePathAnswered>();
  }
  world.take_sent();
  for (const mad::Mad& lap : laps) world.inject(1, lap, 0);
  EXPECT_TRUE(z.events.empty());
  EXPECT_EQ(world.take_sent(), Sent{A::Apr});  // for the last one
  EXPECT_EQ(z.info(passive).alternate->slid, lid_of(1, 4));
}

TEST_F(Migrating, AnMraDelaysTheAnswer) {
  const auto [active, passive] = establish();
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), {}, world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(z.engine.delay(passive, 18, {}, world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(a.take<Delayed>().message, Message::Other);
  world.take_sent();
  world.advance(1s);
  EXPECT_EQ(world.take_sent(), Sent{});
}

TEST_F(Migrating, NoAnswerLeavesTheConnectionAsItIs) {
  const auto [active, passive] = establish();
  cut();
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), {}, world.now), Status::Ok);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(a.take<AlternatePathTimedOut>().id, active);
  EXPECT_EQ(a.state(active), State::Established);
  EXPECT_FALSE(a.info(active).awaits_path_answer);
  heal();
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), {}, world.now), Status::Ok);
  world.deliver();
  z.take<AlternatePathOffered>();
  (void)passive;
}

TEST_F(Migrating, TheEngineRefusesWhatCannotBe) {
  const auto [active, passive] = establish();
  EXPECT_EQ(z.engine.load_alternate_path(passive, path_between(1, 0), {}, world.now),
            Status::InvalidState);  // the passive side
  const auto status_of = [&, active = active](const Path& path) {
    EXPECT_EQ(a.engine.load_alternate_path(active, path, {}, world.now), Status::Ok);
    world.deliver();
    EXPECT_TRUE(z.events.empty());
    return a.take<AlternatePathAnswered>().status;
  };
  EXPECT_EQ(status_of(path_between(0, 1)), AlternatePathStatus::IsCurrent);
  PortFacts facts;
  facts.lid = 0x52;
  facts.gids = {gid_of(1)};
  z.engine.set_port(facts);
  Path path = other_path();
  path.dlid = 0x53;
  EXPECT_EQ(status_of(path), AlternatePathStatus::InvalidLid);
  path.dgid = gid_of(2);
  EXPECT_EQ(status_of(path), AlternatePathStatus::InvalidGid);

  Lap lap;
  lap.ids = {1, a.info(active).local_comm_id, z.info(passive).local_comm_id};
  lap.remote_qpn = 0x112;
  lap.alternate = other_path();
  const auto answer_to = [&](unsigned to) {
    world.take_sent();
    world.inject(to, encode(lap), 2);
    EXPECT_EQ(world.sent.size(), 1u);
    return static_cast<AlternatePathStatus>(decode_apr(world.sent.at(0).mad)->status);
  };
  EXPECT_EQ(answer_to(1), AlternatePathStatus::InvalidQpn);
  lap.ids.remote += 1;
  EXPECT_EQ(answer_to(1), AlternatePathStatus::InvalidCommId);
  lap.ids = {1, z.info(passive).local_comm_id, a.info(active).local_comm_id};
  EXPECT_EQ(answer_to(0), AlternatePathStatus::NotSupported);  // from the passive side
}

TEST_F(Migrating, DisconnectingEndsAPathChange) {
  const auto [active, passive] = establish();
  EXPECT_EQ(a.engine.load_alternate_path(active, other_path(), {}, world.now), Status::Ok);
  EXPECT_EQ(a.engine.disconnect(active, {}, world.now), Status::Ok);
  world.deliver();
  z.take<AlternatePathOffered>();
  z.take<DisconnectRequested>();
  EXPECT_EQ(z.engine.answer_alternate_path(passive, {}, world.now), Status::InvalidState);
  EXPECT_EQ(z.engine.confirm_disconnect(passive, {}, world.now), Status::Ok);
  a.engine.destroy(active, world.now);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

}  // namespace
}  // namespace ib::cm::test
