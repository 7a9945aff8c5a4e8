// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// REJ in each state and for each reason that the engine has itself, and MRA.
#include "cm/messages/rej.h"
#include "cm/messages/rep.h"
#include "cm/messages/req.h"
#include "cm/test/link_world_test.h"

namespace ib::cm::test {
namespace {

using A = Attribute;
using Sent = std::vector<Attribute>;

class Refusing : public Pair {
 protected:
  // Sends a REQ from the third node, changed; returns the reason of the REJ that comes back.
  RejectReason reason_for(const std::function<void(Req&)>& change) {
    const auto id = world[2].engine.connect(request_between(2, 1, 0x99), world.now);
    EXPECT_TRUE(id.has_value());
    while (const auto mad = world[2].engine.poll_mad()) {
      Req req = decode_req(mad->mad);
      req.local_comm_id += 1;  // its own answer does not matter
      change(req);
      world.inject(1, encode(req), 2);
    }
    world[2].engine.destroy(*id, world.now);
    while (world[2].engine.poll_mad()) {}
    for (auto it = world.sent.rbegin(); it != world.sent.rend(); ++it) {
      if (attribute_of(it->mad) != A::Rej) continue;
      last_rej = *decode_rej(it->mad);
      return static_cast<RejectReason>(last_rej.reason);
    }
    ADD_FAILURE() << "no REJ";
    return {};
  }
  Rej last_rej;
};

TEST_F(Refusing, TheConsumerRejectsARequest) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  const auto why = text("full"), info = text("ari");
  EXPECT_EQ(z.engine.reject(passive, {RejectReason::ConsumerReject, info, why}, world.now),
            Status::Ok);
  EXPECT_EQ(z.state(passive), State::Closed);
  world.deliver();
  const auto event = a.take<Rejected>();
  EXPECT_EQ(event.id, active);
  EXPECT_EQ(event.reason, RejectReason::ConsumerReject);
  EXPECT_EQ(event.message, Message::Req);
  EXPECT_EQ(event.was, State::ReqSent);
  EXPECT_EQ(text_of(event.private_data), "full");
  EXPECT_EQ(event.info.size(), 3u);
  EXPECT_EQ(a.state(active), State::Closed);
  EXPECT_FALSE(a.engine.is_connected(0x11));
  a.engine.destroy(active, world.now);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Refusing, ALostRejIsSentAgainForTheRepeatedReq) {
  connect();
  const ConnectionId passive = requested().id;
  lose({A::Rej});
  EXPECT_EQ(z.engine.reject(passive, {}, world.now), Status::Ok);
  z.engine.destroy(passive, world.now);
  world.advance(kReqInterval + 1ms);
  EXPECT_EQ(a.take<Rejected>().reason, RejectReason::ConsumerReject);
  EXPECT_TRUE(z.events.empty());
  EXPECT_EQ(world.take_sent(), (Sent{A::Req, A::Rej, A::Req, A::Rej}));
}

TEST_F(Refusing, TheActiveSideRejectsTheReply) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();
  lose({A::Rej});
  EXPECT_EQ(a.engine.reject(active, {RejectReason::InvalidMtu, {}, {}}, world.now), Status::Ok);
  EXPECT_EQ(a.state(active), State::Closed);
  world.advance(2 * time_of(kResponse));  // the REP comes again
  const auto event = z.take<Rejected>();
  EXPECT_EQ(event.reason, RejectReason::InvalidMtu);
  EXPECT_EQ(event.message, Message::Rep);
  EXPECT_EQ(event.was, State::RepSent);
}

TEST_F(Refusing, ThePassiveSideChangesItsMindAfterTheReply) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();
  EXPECT_EQ(z.engine.reject(passive, {}, world.now), Status::Ok);
  EXPECT_EQ(z.state(passive), State::TimeWait);
  world.deliver();
  EXPECT_EQ(a.take<Rejected>().message, Message::Other);
  EXPECT_EQ(a.state(active), State::TimeWait);
  EXPECT_EQ(a.engine.reject(active, {}, world.now), Status::InvalidState);
}

TEST_F(Refusing, NobodyListens) {
  auto request = request_between(0, 1, 0x11);
  request.service_id = kService + 1;
  connect(request);
  world.deliver();
  EXPECT_EQ(a.take<Rejected>().reason, RejectReason::InvalidServiceId);
  EXPECT_EQ(z.engine.connection_count(), 0u);
  EXPECT_EQ(z.engine.counters().no_listener, 1u);
}

TEST_F(Refusing, EachFaultOfARequestHasItsReason) {
  PortFacts facts;
  facts.lid = lid_of(1);
  facts.gids = {gid_of(1)};
  facts.max_mtu = verbs::Mtu::B2048;
  z.engine.set_port(facts);
  EXPECT_EQ(reason_for([](Req& r) { r.transport = 2; }), RejectReason::InvalidTransport);
  EXPECT_EQ(reason_for([](Req& r) { r.transport = 3; }), RejectReason::InvalidTransport);
  EXPECT_EQ(reason_for([](Req& r) { r.path_mtu = 0; }), RejectReason::InvalidMtu);
  EXPECT_EQ(reason_for([](Req& r) { r.path_mtu = 5; }), RejectReason::InvalidMtu);
  ASSERT_EQ(last_rej.info.size(), 1u);
  EXPECT_EQ(last_rej.info.view()[0], 4);
  EXPECT_EQ(reason_for([](Req& r) { r.primary.dgid = gid_of(2); }), RejectReason::InvalidGid);
  EXPECT_EQ(last_rej.info.size(), sizeof(Gid));
  EXPECT_EQ(reason_for([](Req& r) { r.primary.dlid = 0x77; }), RejectReason::InvalidLid);
  EXPECT_EQ(last_rej.info.view()[1], lid_of(1));
  EXPECT_EQ(reason_for([](Req& r) { r.alternate = path_between(2, 0); }),
            RejectReason::InvalidAltGid);
  EXPECT_EQ(reason_for([](Req& r) {
              r.alternate = path_between(2, 1);
              r.alternate->dlid = 0x77;
            }),
            RejectReason::InvalidAltLid);
  EXPECT_TRUE(z.events.empty());
  reason_for([](Req& r) { r.service_id = 1; });
  EXPECT_EQ(z.engine.connection_count(), 0u);
}

TEST_F(Refusing, AnotherVersionOfTheProtocolIsRefused) {
  connect();
  world.collect();
  mad::Mad mad = world.sent[0].mad;
  mad[2] = std::byte{3};
  world.sent.clear();
  world.inject(1, mad, 0);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(decode_rej(world.sent[0].mad)->reason,
            static_cast<std::uint16_t>(RejectReason::InvalidClassVersion));
}

TEST_F(Refusing, AnMraForCopiesIsSentWhenTheMessageComesAgain) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  constexpr std::uint8_t kLong = 18;
  world.take_sent();
  EXPECT_EQ(z.engine.delay(passive, kLong, {}, world.now, /*for_copies=*/true), Status::Ok);
  world.deliver();
  EXPECT_EQ(world.take_sent(), Sent{});
  EXPECT_EQ(a.state(active), State::ReqSent);
  world.advance(10s);
  const Sent sent = world.take_sent();
  ASSERT_GE(sent.size(), 2u);
  EXPECT_EQ((Sent{sent[0], sent[1]}), (Sent{A::Req, A::Mra}));
  EXPECT_EQ(a.take<Delayed>().message, Message::Req);
}

TEST_F(Refusing, AnMraGivesTheConsumerTime) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  const auto busy = text("busy");
  constexpr std::uint8_t kLong = 18;  // 1.07 s
  EXPECT_EQ(z.engine.delay(passive, kLong, busy, world.now), Status::Ok);
  EXPECT_EQ(z.state(passive), State::ReqReceivedMraSent);
  world.deliver();
  const auto event = a.take<Delayed>();
  EXPECT_EQ(event.message, Message::Req);
  EXPECT_EQ(event.service_timeout, kLong);
  EXPECT_EQ(text_of(event.private_data), "busy");
  EXPECT_EQ(a.state(active), State::ReqSentMraReceived);
  world.take_sent();
  world.advance(time_of(kLong));
  EXPECT_EQ(world.take_sent(), Sent{});
  world.advance(2 * time_of(kLifetime) + 1ms);
  EXPECT_EQ(world.take_sent(), (Sent{A::Req, A::Mra}));  // the MRA is repeated
  EXPECT_EQ(a.take<Delayed>().id, active);
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();

  EXPECT_EQ(a.engine.delay(active, kLong, {}, world.now), Status::Ok);
  EXPECT_EQ(a.state(active), State::RepReceivedMraSent);
  world.deliver();
  EXPECT_EQ(z.take<Delayed>().message, Message::Rep);
  EXPECT_EQ(z.state(passive), State::RepSentMraReceived);
  EXPECT_EQ(a.engine.establish(active, {}, world.now), Status::Ok);
  EXPECT_EQ(a.engine.delay(active, kLong, {}, world.now), Status::InvalidState);
  world.deliver();
  z.take<Established>();
}

TEST_F(Refusing, NoWaitIsLongerThanTheLimit) {
  connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.delay(passive, 31, {}, world.now), Status::Ok);  // 2.4 hours
  world.deliver();
  ASSERT_TRUE(a.engine.deadline().has_value());
  EXPECT_LE(*a.engine.deadline() - world.now, Limits().longest_wait);
}

TEST_F(Refusing, EndlessMrasEndWithTheRetries) {
  connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.delay(passive, 10, {}, world.now), Status::Ok);
  EXPECT_TRUE(world.settle());
  for (int i = 0; i <= kRetries; ++i) a.take<Delayed>();
  a.take<TimedOut>();
  z.take<Rejected>();
}

TEST_F(Refusing, DestroyingARequestRejectsIt) {
  connect();
  const ConnectionId passive = requested().id;
  z.engine.destroy(passive, world.now);
  world.deliver();
  EXPECT_EQ(a.take<Rejected>().reason, RejectReason::ConsumerReject);
}

TEST_F(Refusing, DestroyingTheActiveSideEndsTheRequest) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  a.engine.destroy(active, world.now);
  world.deliver();
  EXPECT_EQ(z.take<Rejected>().reason, RejectReason::Timeout);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Refusing, DestroyingAReplyRejectsIt) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.engine.destroy(active, world.now);
  world.deliver();
  EXPECT_EQ(z.take<Rejected>().message, Message::Rep);
  z.engine.destroy(passive, world.now);
  expect_nothing_left();
}

TEST_F(Refusing, DestroyingTheReplyingSideTellsTheActiveOne) {
  const ConnectionId active = connect();
  const ConnectionId passive = requested().id;
  EXPECT_EQ(z.engine.accept(passive, reply_with(0x22), world.now), Status::Ok);
  world.deliver();
  a.take<ReplyReceived>();
  z.engine.destroy(passive, world.now);
  world.deliver();
  EXPECT_EQ(a.take<Rejected>().id, active);
  a.engine.destroy(active, world.now);
  expect_nothing_left();
}

TEST(RejectReasons, EveryNumberHasAText) {
  for (unsigned number = 0; number <= 65535; ++number) {
    const ReasonText text = reason_text(static_cast<RejectReason>(number));
    ASSERT_TRUE(text.name != nullptr && text.sentence != nullptr && text.check != nullptr);
  }
  EXPECT_STREQ(reason_text(RejectReason::ConsumerReject).name, "consumer reject");
  EXPECT_STREQ(reason_text(static_cast<RejectReason>(99)).name, "unknown");
  for (unsigned number = 1; number <= 33; ++number) {
    EXPECT_STRNE(reason_text(static_cast<RejectReason>(number)).name, "unknown") << number;
  }
  for (unsigned number = 0; number <= 13; ++number) {
    EXPECT_STRNE(status_text(static_cast<AlternatePathStatus>(number)).name, "unknown");
  }
  for (unsigned number = 0; number <= 5; ++number) {
    EXPECT_STRNE(status_text(static_cast<SidrStatus>(number)).name, "unknown");
  }
}

}  // namespace
}  // namespace ib::cm::test
