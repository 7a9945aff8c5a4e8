// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Active/active connections: both sides send a REQ.
#include "cm/test/link_world_test.h"

namespace ib::cm::test {
namespace {

ConnectRequest peer_request(unsigned from, unsigned to, std::uint32_t qpn) {
  auto request = request_between(from, to, qpn);
  request.peer_to_peer = true;
  return request;
}

class PeerToPeer : public testing::Test {
 protected:
  ConnectionId connect(unsigned from, unsigned to, std::uint32_t qpn) {
    const auto id = world[from].engine.connect(peer_request(from, to, qpn), world.now);
    EXPECT_TRUE(id.has_value());
    return id ? *id : ConnectionId{};
  }
  // Node 1 has the larger GUID and is the active side.
  void finish(ConnectionId passive, ConnectionId active) {
    const auto request = world[0].take<RequestReceived>();
    EXPECT_EQ(request.id, passive);
    EXPECT_FALSE(request.listener.has_value());
    EXPECT_TRUE(request.peer_to_peer);
    EXPECT_EQ(world[0].engine.accept(passive, reply_with(10), world.now), Status::Ok);
    world.deliver();
    EXPECT_EQ(world[1].take<ReplyReceived>().id, active);
    EXPECT_EQ(world[1].engine.establish(active, {}, world.now), Status::Ok);
    world.deliver();
    EXPECT_EQ(world[0].take<Established>().id, passive);
    EXPECT_EQ(world[0].info(passive).role, Role::Passive);
    EXPECT_EQ(world[1].info(active).role, Role::Active);
    EXPECT_EQ(world[0].info(passive).remote_qpn, world[1].info(active).local_qpn);
    EXPECT_TRUE(world[0].events.empty() && world[1].events.empty());
  }
  World world{2};
};

TEST_F(PeerToPeer, TheLargerGuidIsTheActiveSide) {
  const ConnectionId passive = connect(0, 1, 10);
  const ConnectionId active = connect(1, 0, 20);
  world.deliver();
  finish(passive, active);
}

TEST_F(PeerToPeer, TheFirstMayComeBeforeTheSecondIsThere) {
  const ConnectionId passive = connect(0, 1, 10);
  world.deliver();
  EXPECT_EQ(world[0].state(passive), State::ReqSent);  // the REJ does not end it
  const ConnectionId active = connect(1, 0, 20);
  world.deliver();
  finish(passive, active);
}

TEST_F(PeerToPeer, TheActiveSideMayBeTheFirst) {
  const ConnectionId active = connect(1, 0, 20);
  world.deliver();
  const ConnectionId passive = connect(0, 1, 10);
  world.advance(kReqInterval + 1ms);
  finish(passive, active);
}

TEST_F(PeerToPeer, NobodyComes) {
  const ConnectionId alone = connect(0, 1, 10);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(world[0].take<Rejected>().reason, RejectReason::InvalidServiceId);
  EXPECT_EQ(world[0].state(alone), State::Closed);
}

TEST_F(PeerToPeer, AnOrdinaryReqDoesNotMeetAnother) {
  const auto one = world[0].engine.connect(request_between(0, 1, 10), world.now);
  const auto two = world[1].engine.connect(request_between(1, 0, 20), world.now);
  ASSERT_TRUE(one && two);
  world.deliver();
  EXPECT_EQ(world[0].take<Rejected>().reason, RejectReason::InvalidServiceId);
  EXPECT_EQ(world[1].take<Rejected>().reason, RejectReason::InvalidServiceId);
}

TEST_F(PeerToPeer, TwoQueuePairsOfOneAdapterMeet) {
  const ConnectionId smaller = connect(0, 0, 10);
  const ConnectionId larger = connect(0, 0, 20);
  world.advance(kReqInterval + 1ms);
  Node& node = world[0];
  const auto request = node.take<RequestReceived>();
  EXPECT_EQ(request.id, smaller);
  EXPECT_EQ(node.engine.accept(smaller, reply_with(10), world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(node.take<ReplyReceived>().id, larger);
}

TEST_F(PeerToPeer, BothEndAndNothingIsLeft) {
  const ConnectionId passive = connect(0, 1, 10);
  const ConnectionId active = connect(1, 0, 20);
  world.deliver();
  finish(passive, active);
  world[0].engine.destroy(passive, world.now);
  world[1].engine.destroy(active, world.now);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(world[0].engine.connection_count() + world[1].engine.connection_count(), 0u);
}

}  // namespace
}  // namespace ib::cm::test
