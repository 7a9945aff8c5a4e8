// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// REQ, REP, RTU: the exchange that makes a connection, with each of its messages lost or doubled.
#include "cm/messages/req.h"
#include "cm/test/link_world_test.h"

namespace ib::cm::test {
namespace {

using A = Attribute;
using Sent = std::vector<Attribute>;

class Connecting : public Pair {};

TEST_F(Connecting, ThreeMessagesMakeAConnection) {
  auto request = request_between(0, 1, 0x11);
  const auto hello = text("hello");
  request.private_data = hello;
  const ConnectionId active = connect(request);
  EXPECT_EQ(a.state(active), State::ReqSent);
  const RequestReceived req = requested();
  EXPECT_EQ(req.listener, listener_);
  EXPECT_EQ(req.service_id, kService);
  EXPECT_EQ(req.remote_ca_guid, guid_of(0));
  EXPECT_EQ(req.remote_qpn, 0x11u);
  EXPECT_EQ(req.starting_psn, request.starting_psn);
  EXPECT_EQ(req.responder_resources, 4);
  EXPECT_EQ(req.initiator_depth, 2);
  EXPECT_EQ(text_of(req.private_data), "hello");
  EXPECT_EQ(req.private_data.size(), kReqPrivateBytes);
  EXPECT_EQ(req.primary.sgid, gid_of(1));
  EXPECT_EQ(req.primary.dgid, gid_of(0));
  EXPECT_EQ(req.primary.dlid, lid_of(0));
  EXPECT_EQ(req.source.remote_lid, lid_of(0));
  EXPECT_EQ(z.state(req.id), State::ReqReceived);

  const auto welcome = text("welcome");
  Reply reply = reply_with(0x22);
  reply.private_data = welcome;
  EXPECT_EQ(z.engine.accept(req.id, reply, world.now), Status::Ok);
  EXPECT_EQ(z.state(req.id), State::RepSent);
  world.deliver();
  const auto rep = a.take<ReplyReceived>();
  EXPECT_EQ(rep.id, active);
  EXPECT_EQ(rep.remote_qpn, 0x22u);
  EXPECT_EQ(rep.starting_psn, reply.starting_psn);
  EXPECT_EQ(rep.remote_ca_guid, guid_of(1));
  EXPECT_EQ(rep.target_ack_delay, kAckDelay);
  EXPECT_EQ(text_of(rep.private_data), "welcome");
  EXPECT_EQ(a.state(active), State::RepReceived);

  const auto ready = text("ready");
  EXPECT_EQ(a.engine.establish(active, ready, world.now), Status::Ok);
  EXPECT_EQ(a.state(active), State::Established);
  world.deliver();
  const auto rtu = z.take<Established>();
  EXPECT_FALSE(rtu.by_data);
  EXPECT_EQ(text_of(rtu.private_data), "ready");
  EXPECT_EQ(z.state(req.id), State::Established);
  EXPECT_EQ(world.take_sent(), (Sent{A::Req, A::Rep, A::Rtu}));
  EXPECT_FALSE(a.engine.deadline() || z.engine.deadline());
}

TEST_F(Connecting, BothEndsHaveWhatTheirQueuePairsNeed) {
  const auto [active, passive] = establish();
  const ConnectionInfo one = a.info(active), other = z.info(passive);
  EXPECT_EQ(one.local_qpn, 0x11u);
  EXPECT_EQ(one.remote_qpn, 0x111u);
  EXPECT_EQ(other.local_qpn, 0x111u);
  EXPECT_EQ(other.remote_qpn, 0x11u);
  EXPECT_EQ(one.send_psn, other.receive_psn);
  EXPECT_EQ(one.receive_psn, other.send_psn);
  EXPECT_EQ(one.local_comm_id, other.remote_comm_id);
  EXPECT_EQ(one.remote_comm_id, other.local_comm_id);
  EXPECT_EQ(one.initiator_depth, 2);      // REP's responder resources
  EXPECT_EQ(one.responder_resources, 3);  // REP's initiator depth
  EXPECT_EQ(other.initiator_depth, 3);
  EXPECT_EQ(other.responder_resources, 2);
  EXPECT_EQ(one.ack_timeout, ack_timeout(kAckDelay, kLifetime));
  EXPECT_EQ(other.ack_timeout, ack_timeout(kAckDelay, kLifetime));
  EXPECT_EQ(one.role, Role::Active);
  EXPECT_EQ(other.role, Role::Passive);
  EXPECT_EQ(one.remote_ca_guid, guid_of(1));
  EXPECT_EQ(other.retry_count, 7);
  EXPECT_EQ(other.primary, [] {
    Path path = path_between(1, 0);
    path.ack_timeout = ack_timeout(kAckDelay, kLifetime);
    return path;
  }());
  EXPECT_TRUE(a.engine.is_connected(0x11));
  EXPECT_FALSE(a.engine.is_connected(0x12));
}

TEST_F(Connecting, ALostReqIsSentAgainAfterTheResponseTime) {
  lose({A::Req});
  connect();
  world.advance(kReqInterval - 1us);
  EXPECT_EQ(world.take_sent(), Sent{A::Req});
  EXPECT_TRUE(z.events.empty());
  world.advance(2us);
  EXPECT_EQ(world.take_sent(), Sent{A::Req});
  requested();
  EXPECT_EQ(a.engine.counters().resent, 1u);
}

TEST_F(Connecting, ADoubledReqIsOneRequest) {
  connect();
  world.deliver();
  const World::Flight req = world.sent[0];
  world.inject(1, req.mad, 0);
  requested();
  EXPECT_TRUE(z.events.empty());
  EXPECT_EQ(z.engine.connection_count(), 1u);
  EXPECT_EQ(z.engine.counters().duplicates, 1u);
}

TEST_F(Connecting, ALostRepIsSentAgain) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  lose({A::Rep});
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.advance(time_of(kResponse) + World::kDelay);
  EXPECT_EQ(a.take<ReplyReceived>().id, active);
}

TEST_F(Connecting, ARepeatedReqGetsTheRepAgain) {
  connect();
  const ConnectionId passive = requested().id;
  const mad::Mad req = world.sent[0].mad;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.take_sent();
  world.inject(1, req, 0);
  EXPECT_EQ(world.take_sent(), Sent{A::Rep});
}

TEST_F(Connecting, ALostRtuIsSentAgainWhenTheRepComesAgain) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();
  lose({A::Rtu});
  const auto ready = text("ready");
  EXPECT_EQ(a.engine.establish(active, ready, world.now), Status::Ok);
  world.advance(2 * time_of(kResponse));
  EXPECT_EQ(text_of(z.take<Established>().private_data), "ready");
  EXPECT_EQ(world.take_sent(), (Sent{A::Req, A::Rep, A::Rtu, A::Rep, A::Rtu}));
}

TEST_F(Connecting, DataStandsForALostRtu) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.data_has_arrived(passive, world.now), Status::InvalidState);
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  lose({A::Rtu});
  EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(z.engine.data_has_arrived(passive, world.now), Status::Ok);
  world.deliver();
  EXPECT_TRUE(z.take<Established>().by_data);
  EXPECT_EQ(z.engine.data_has_arrived(passive, world.now), Status::Ok);
  world.deliver();
  EXPECT_TRUE(z.events.empty());
  EXPECT_FALSE(z.engine.deadline());
}

TEST_F(Connecting, NobodyAnswersInSpiteOfAllRetries) {
  cut();
  const ConnectionId active = connect();
  EXPECT_TRUE(world.settle());
  const auto event = a.take<TimedOut>();
  EXPECT_EQ(event.message, Message::Req);
  EXPECT_EQ(event.times_sent, 1u + kRetries);
  EXPECT_EQ(a.state(active), State::Closed);
  EXPECT_EQ(world.take_sent(), (Sent{A::Req, A::Req, A::Req, A::Req, A::Rej}));
  EXPECT_FALSE(a.engine.is_connected(0x11));
  a.engine.destroy(active, world.now);
  expect_nothing_left();
}

TEST_F(Connecting, WhenTheActiveSideGivesUpTheRequestIsRejected) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_TRUE(world.settle());
  a.take<TimedOut>();
  const auto event = z.take<Rejected>();
  EXPECT_EQ(event.reason, RejectReason::Timeout);
  EXPECT_EQ(event.was, State::ReqReceived);
  EXPECT_EQ(z.engine.accept(passive, reply_with(1), world.now), Status::InvalidState);
  a.engine.destroy(active, world.now);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Connecting, WhenThePassiveSideGivesUpTheActiveSideIsTold) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  lose({A::Rtu, A::Rtu, A::Rtu, A::Rtu});
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();
  EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::Ok);
  EXPECT_TRUE(world.settle());
  const auto timed_out = z.take<TimedOut>();
  EXPECT_EQ(timed_out.message, Message::Rep);
  z.take<TimeWaitEnded>();
  const auto rejected = a.take<Rejected>();
  EXPECT_EQ(rejected.reason, RejectReason::Timeout);
  EXPECT_EQ(rejected.was, State::Established);
  a.take<TimeWaitEnded>();
}

TEST_F(Connecting, AnRtuForAConnectionThatIsOverIsRejected) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();
  lose({A::Rej, A::Rej});
  z.engine.destroy(passive, world.now);
  world.deliver();
  EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::Ok);
  world.deliver();  // time-wait
  EXPECT_EQ(a.state(active), State::Established);
  world.settle();
  const mad::Mad rtu = [&] {
    for (const auto& flight : world.sent) {
      if (attribute_of(flight.mad) == A::Rtu) return flight.mad;
    }
    return mad::Mad{};
  }();
  world.inject(1, rtu, 0);  // no connection at all
  world.deliver();
  const auto event = a.take<Rejected>();
  EXPECT_EQ(event.reason, RejectReason::InvalidCommId);
  EXPECT_EQ(event.was, State::Established);
  EXPECT_EQ(a.state(active), State::TimeWait);
}

TEST_F(Connecting, ARejThatOvertakesTheRepEndsTheReq) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  lose({A::Rep});
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.collect();
  const mad::Mad rep = world.sent.back().mad;
  z.engine.destroy(passive, world.now);
  world.deliver();
  EXPECT_EQ(a.take<Rejected>().reason, RejectReason::ConsumerReject);
  EXPECT_EQ(a.state(active), State::Closed);
  world.inject(0, rep, 1);
  world.deliver();
  EXPECT_TRUE(a.events.empty());
}

TEST_F(Connecting, ARepForAConnectionThatIsGoneIsRejected) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  lose({A::Rej});
  a.engine.destroy(active, world.now);
  world.deliver();
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  const auto event = z.take<Rejected>();
  EXPECT_EQ(event.reason, RejectReason::InvalidCommId);
  EXPECT_EQ(event.message, Message::Rep);
  EXPECT_EQ(z.state(passive), State::TimeWait);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Connecting, EachTransportIsTheSameAtBothEnds) {
  for (const Transport transport : {Transport::Rc, Transport::Uc, Transport::Xrc}) {
    auto request = request_between(0, 1, 0x31);
    request.transport = transport;
    const ConnectionId active = connect(request);
    const RequestReceived req = requested();
    EXPECT_EQ(req.transport, transport);
    EXPECT_EQ(z.engine.accept(req.id, reply_with(0x22), world.now), Status::Ok);
    world.deliver();
    EXPECT_EQ(a.take<ReplyReceived>().remote_qpn, 0x22u);
    a.engine.destroy(active, world.now);
    z.engine.destroy(req.id, world.now);
    expect_nothing_left();
    z.events.clear();
  }
}

TEST_F(Connecting, EthernetPortsConnectByGid) {
  auto request = request_between(0, 1, 0x31);
  request.primary = roce_path_between(0, 1);
  const ConnectionId active = connect(request);
  const RequestReceived req = requested();
  EXPECT_TRUE(req.source.is_global);
  EXPECT_EQ(req.source.remote_gid, gid_of(0));
  EXPECT_FALSE(req.primary.has_lids());
  EXPECT_TRUE(req.primary.is_global());
  EXPECT_EQ(req.primary.dgid, gid_of(0));
  EXPECT_EQ(z.engine.accept(req.id, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(a.take<ReplyReceived>().id, active);
  EXPECT_TRUE(a.info(active).peer.is_global);
}

// A router in between: only the MAD says which LIDs of this subnet lead there.
TEST_F(Connecting, APathThroughARouterGetsTheLidsOfTheMad) {
  auto request = request_between(0, 1, 0x31);
  request.primary.subnet_local = false;
  const ConnectionId active = connect(request);
  world.collect();
  Req req = decode_req(world.sent[0].mad);
  req.primary.slid = req.primary.dlid = kPermissiveLid;
  MadAddress from = World::address_between(2, 1);
  from.sl = 3;
  z.engine.receive(encode(req), from, world.now);
  world.collect();
  const auto event = z.take<RequestReceived>();
  EXPECT_EQ(event.primary.dlid, lid_of(2));
  EXPECT_EQ(event.primary.slid, lid_of(1));
  EXPECT_EQ(event.primary.sl, 3);
  a.engine.destroy(active, world.now);
}

TEST_F(Connecting, ValuesThatDoNotFitTheirFieldAreRefused) {
  const std::vector<std::uint8_t> long_data(kReqPrivateBytes + 1);
  using Change = void (*)(ConnectRequest&);
  for (const Change change : std::initializer_list<Change>{
           [](ConnectRequest& r) { r.qpn = 1u << 24; },
           [](ConnectRequest& r) { r.starting_psn = 1u << 24; },
           [](ConnectRequest& r) { r.retry_count = 8; },
           [](ConnectRequest& r) { r.rnr_retry_count = 8; },
           [](ConnectRequest& r) { r.remote_cm_response_timeout = 32; },
           [](ConnectRequest& r) { r.local_cm_response_timeout = 32; },
           [](ConnectRequest& r) { r.max_cm_retries = 16; },
           [](ConnectRequest& r) { r.path_mtu = static_cast<verbs::Mtu>(6); },
           [](ConnectRequest& r) { r.vendor.vendor_id = 1u << 24; },
           [](ConnectRequest& r) { r.primary.sl = 16; },
           [](ConnectRequest& r) { r.primary.flow_label = 1u << 20; },
           [](ConnectRequest& r) {
             r.alternate = path_between(0, 2);
             r.alternate->pkey = 0x8001;
           }}) {
    auto request = request_between(0, 1, 1);
    change(request);
    EXPECT_EQ(a.engine.connect(request, world.now).error(), Status::InvalidParameter);
  }
  auto request = request_between(0, 1, 1);
  request.private_data = long_data;
  EXPECT_EQ(a.engine.connect(request, world.now).error(), Status::InvalidParameter);
  EXPECT_EQ(a.engine.connection_count(), 0u);
}

TEST_F(Connecting, AQueuePairHasOneConnection) {
  const ConnectionId active = connect(0x11);
  EXPECT_EQ(a.engine.connect(request_between(0, 1, 0x11), world.now).error(), Status::DeviceBusy);
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  connect(0x12);
  EXPECT_EQ(z.engine.accept(requested().id, reply_with(0x22), world.now), Status::DeviceBusy);
  (void)active;
}

// As a number is that some queue pair may get later: it is not held for those who only say it.
TEST_F(Connecting, ANumberThatIsNoQueuePairsHoldsNone) {
  connect(0x10);
  Reply reply = reply_with(0x22);
  reply.has_queue_pair = false;
  EXPECT_EQ(z.engine.accept(requested().id, reply, world.now), Status::Ok);
  EXPECT_FALSE(z.engine.is_connected(0x22));
  auto request = request_between(0, 1, 0x11);
  request.has_queue_pair = false;
  EXPECT_TRUE(a.engine.connect(request, world.now));
  EXPECT_FALSE(a.engine.is_connected(0x11));
  EXPECT_TRUE(a.engine.connect(request_between(0, 1, 0x11), world.now));
}

TEST_F(Connecting, PrivateDataOfAnyLengthArrivesFilledWithZeros) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, kReqPrivateBytes}) {
    const std::vector<std::uint8_t> data(length, 0xee);
    auto request = request_between(0, 1, 0x40);
    request.private_data = data;
    const ConnectionId active = connect(request);
    const RequestReceived req = requested();
    const auto view = req.private_data.view();
    ASSERT_EQ(view.size(), kReqPrivateBytes);
    EXPECT_EQ(static_cast<std::size_t>(std::count(view.begin(), view.end(), 0xee)), length);
    a.engine.destroy(active, world.now);
    world.settle();
    z.events.clear();
    z.engine.destroy(req.id, world.now);
    world.settle();
  }
}

TEST_F(Connecting, VendorOptionsOfBothSidesArrive) {
  auto request = request_between(0, 1, 0x41);
  request.vendor = {0x123456, 0x11223344};
  const ConnectionId active = connect(request);
  const RequestReceived req = requested();
  EXPECT_EQ(req.vendor, request.vendor);
  Reply reply = reply_with(0x22);
  reply.vendor = {0xabcdef, 0x55667788};
  EXPECT_EQ(z.engine.accept(req.id, reply, world.now), Status::Ok);
  world.deliver();
  EXPECT_EQ(a.take<ReplyReceived>().vendor, reply.vendor);
  EXPECT_EQ(a.info(active).remote_vendor, reply.vendor);
}

TEST_F(Connecting, AnOldNameMeansNothing) {
  const ConnectionId active = connect();
  a.engine.destroy(active, world.now);
  EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::NotFound);
  EXPECT_EQ(a.engine.accept(active, {}, world.now), Status::NotFound);
  EXPECT_EQ(a.engine.reject(active, {}, world.now), Status::NotFound);
  EXPECT_EQ(a.engine.delay(active, 1, {}, world.now), Status::NotFound);
  EXPECT_EQ(a.engine.disconnect(active, {}, world.now), Status::NotFound);
  EXPECT_EQ(a.engine.confirm_disconnect(active, {}, world.now), Status::NotFound);
  EXPECT_EQ(a.engine.data_has_arrived(active, world.now), Status::NotFound);
  EXPECT_EQ(a.engine.path_has_migrated(active), Status::NotFound);
  EXPECT_EQ(a.engine.query(active).error(), Status::NotFound);
  a.engine.destroy(active, world.now);
}

TEST(Loopback, AnAdapterConnectsToItself) {
  World world(1);
  Node& a = world[0];
  ASSERT_TRUE(a.engine.listen({.service_id = kService}).has_value());
  const auto active = a.engine.connect(request_between(0, 0, 5), world.now);
  ASSERT_TRUE(active.has_value());
  world.deliver();
  const ConnectionId passive = a.take<RequestReceived>().id;
  EXPECT_EQ(a.engine.accept(passive, reply_with(6), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();
  EXPECT_EQ(a.engine.establish(*active, {}, world.now), Status::Ok);
  world.deliver();
  a.take<Established>();
  a.engine.destroy(*active, world.now);
  a.engine.destroy(passive, world.now);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(a.engine.connection_count(), 0u);
}

}  // namespace
}  // namespace ib::cm::test
