// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SIDR_REQ and SIDR_REP: the queue pair of a datagram service.
#include "cm/messages/sidr.h"

#include "cm/test/link_world_test.h"

namespace ib::cm::test {
namespace {

using A = Attribute;
using Sent = std::vector<Attribute>;

class Sidr : public Pair {
 protected:
  SidrId resolve(ByteSpan private_data = {}) {
    SidrRequest request;
    request.service_id = kService;
    request.path = path_between(0, 1);
    request.response_timeout = kResponse;
    request.max_retries = kRetries;
    request.private_data = private_data;
    const auto id = a.engine.resolve_sidr(request, world.now);
    EXPECT_TRUE(id.has_value());
    return id ? *id : SidrId{};
  }
  void expect_none_left() {
    EXPECT_TRUE(world.settle());
    EXPECT_EQ(a.engine.sidr_count(), 0u);
    EXPECT_EQ(z.engine.sidr_count(), 0u);
  }
};

TEST_F(Sidr, TwoMessagesResolveAService) {
  const auto hello = text("hello"), welcome = text("welcome"), info = text("info");
  const SidrId id = resolve(hello);
  world.deliver();
  const auto requested = z.take<SidrRequested>();
  EXPECT_EQ(requested.listener, listener_);
  EXPECT_EQ(requested.service_id, kService);
  EXPECT_EQ(requested.pkey, kDefaultPkey);
  EXPECT_EQ(requested.source.remote_lid, lid_of(0));
  EXPECT_EQ(text_of(requested.private_data), "hello");
  SidrReply reply;
  reply.qpn = 0x123456;
  reply.qkey = 0x11111111;
  reply.vendor = {0xabcdef, 7};
  reply.info = info;
  reply.private_data = welcome;
  EXPECT_EQ(z.engine.answer_sidr(requested.id, reply, world.now), Status::Ok);
  EXPECT_EQ(z.engine.answer_sidr(requested.id, reply, world.now), Status::InvalidState);
  world.deliver();
  const auto answered = a.take<SidrAnswered>();
  EXPECT_EQ(answered.id, id);
  EXPECT_EQ(answered.status, SidrStatus::Valid);
  EXPECT_EQ(answered.qpn, 0x123456u);
  EXPECT_EQ(answered.qkey, 0x11111111u);
  EXPECT_EQ(answered.vendor, reply.vendor);
  EXPECT_EQ(answered.info.size(), 4u);
  EXPECT_EQ(text_of(answered.private_data), "welcome");
  a.engine.destroy(id, world.now);
  z.engine.destroy(requested.id, world.now);
  expect_none_left();
}

TEST_F(Sidr, LostAndDoubledMessagesDoNotMatter) {
  lose({A::SidrReq, A::SidrRep});
  const SidrId id = resolve();
  world.advance(kReqInterval + 1ms);
  const auto requested = z.take<SidrRequested>();
  EXPECT_EQ(z.engine.answer_sidr(requested.id, {.qpn = 5}, world.now), Status::Ok);
  z.engine.destroy(requested.id, world.now);
  world.advance(kReqInterval);
  EXPECT_EQ(a.take<SidrAnswered>().qpn, 5u);
  EXPECT_TRUE(z.events.empty());
  EXPECT_EQ(world.take_sent(), (Sent{A::SidrReq, A::SidrReq, A::SidrRep, A::SidrReq, A::SidrRep}));
  a.engine.destroy(id, world.now);
  expect_none_left();
}

TEST_F(Sidr, NobodyAnswers) {
  cut();
  const SidrId id = resolve();
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(a.take<SidrTimedOut>().id, id);
  EXPECT_EQ(world.take_sent(), Sent(1 + kRetries, A::SidrReq));
  a.engine.destroy(id, world.now);
  expect_none_left();
}

TEST_F(Sidr, NobodyListens) {
  z.engine.destroy(listener_);
  resolve();
  world.deliver();
  EXPECT_EQ(a.take<SidrAnswered>().status, SidrStatus::ServiceNotSupported);
}

TEST_F(Sidr, AListenerForConnectionsGetsNoSidr) {
  z.engine.destroy(listener_);
  ASSERT_TRUE(
      z.engine.listen({.service_id = kService, .kind = ServiceKind::Connections}).has_value());
  ASSERT_TRUE(
      z.engine.listen({.service_id = kService, .kind = ServiceKind::Datagrams}).has_value());
  resolve();
  world.deliver();
  z.take<SidrRequested>();
  connect();
  requested();
}

TEST_F(Sidr, DestroyingARequestRejectsIt) {
  const SidrId id = resolve();
  world.deliver();
  z.engine.destroy(z.take<SidrRequested>().id, world.now);
  world.deliver();
  EXPECT_EQ(a.take<SidrAnswered>().status, SidrStatus::Rejected);
  a.engine.destroy(id, world.now);
  expect_none_left();
}

TEST_F(Sidr, AnAnswerToNothingIsDropped) {
  const SidrId id = resolve();
  world.deliver();
  SidrRep rep;
  rep.request_id = decode_sidr_req(world.sent[0].mad).request_id;
  rep.transaction_id = 1;
  world.inject(0, encode(rep), 1);
  rep.request_id += 1;
  world.inject(0, encode(rep), 1);
  EXPECT_TRUE(a.events.empty());
  EXPECT_EQ(a.engine.counters().wrong_comm_id, 2u);
  a.engine.destroy(id, world.now);
}

TEST_F(Sidr, AnotherVersionOfTheProtocolIsRefused) {
  resolve();
  world.collect();
  mad::Mad mad = world.sent[0].mad;
  mad[2] = std::byte{1};
  world.sent.clear();
  world.inject(1, mad, 0);
  ASSERT_EQ(world.sent.size(), 1u);
  EXPECT_EQ(decode_sidr_rep(world.sent[0].mad)->status,
            static_cast<std::uint8_t>(SidrStatus::UnsupportedVersion));
}

TEST(SidrLimits, ALimitRefusesAndTheOldestAnswersAreForgotten) {
  Limits limits;
  limits.sidr_exchanges = 8;
  limits.kept_answers = 2;
  World world(2, limits);
  Node &a = world[0], &z = world[1];
  ASSERT_TRUE(z.engine.listen({.service_id = kService}).has_value());
  SidrRequest request;
  request.service_id = kService;
  request.path = path_between(0, 1);
  for (int i = 0; i < 20; ++i) {
    const auto id = a.engine.resolve_sidr(request, world.now);
    ASSERT_TRUE(id.has_value());
    world.deliver();
    const SidrId asked = z.take<SidrRequested>().id;
    EXPECT_EQ(z.engine.answer_sidr(asked, {.qpn = 5}, world.now), Status::Ok);
    z.engine.destroy(asked, world.now);
    EXPECT_LE(z.engine.sidr_count(), 2u);
    world.deliver();
    EXPECT_EQ(a.take<SidrAnswered>().id, *id);
    a.engine.destroy(*id, world.now);
  }
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(a.engine.resolve_sidr(request, world.now).has_value());
  EXPECT_EQ(a.engine.resolve_sidr(request, world.now).error(), Status::InsufficientResources);
  world.deliver();
  EXPECT_EQ(z.engine.counters().no_room, 2u);
}

}  // namespace
}  // namespace ib::cm::test
