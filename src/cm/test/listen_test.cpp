// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which listener gets a request: service IDs with masks, private data, ports; backlogs and floods.
#include "cm/messages/rej.h"
#include "cm/messages/req.h"
#include "cm/messages/sidr.h"
#include "cm/service_id.h"
#include "cm/test/link_world_test.h"
#include "mad/class_port_info.h"

#include <cstring>

namespace ib::cm::test {
namespace {

class Listening : public testing::Test {
 protected:
  ListenerId listen(const Listen& what) {
    const auto id = z.engine.listen(what);
    EXPECT_TRUE(id.has_value());
    return id ? *id : ListenerId{};
  }
  std::optional<ListenerId> heard(std::uint64_t service_id, ByteSpan private_data = {}) {
    auto request = request_between(0, 1, ++qpn_);
    request.service_id = service_id;
    request.private_data = private_data;
    EXPECT_TRUE(world[0].engine.connect(request, world.now).has_value());
    world.deliver();
    if (z.events.empty()) return std::nullopt;
    return z.take<RequestReceived>().listener;
  }
  World world{3};
  Node& z = world[1];
  std::uint32_t qpn_ = 0x1000;
};

TEST_F(Listening, AMaskStandsForARangeOfServices) {
  const ListenerId range = listen({.service_id = kIpServices, .service_mask = kIpServiceMask});
  EXPECT_EQ(heard(service_id({6, 1})), range);
  EXPECT_EQ(heard(service_id({17, 65535})), range);
  EXPECT_EQ(heard(kLocalServices), std::nullopt);
  EXPECT_EQ(z.engine.listen({.service_id = service_id({6, 80})}).error(), Status::AlreadyExists);
  EXPECT_EQ(z.engine.listen({.service_id = 0, .service_mask = 0}).error(), Status::AlreadyExists);
  z.engine.destroy(range);
  const ListenerId one = listen({.service_id = service_id({6, 80})});
  EXPECT_EQ(heard(service_id({6, 80})), one);
  EXPECT_EQ(heard(service_id({6, 81})), std::nullopt);
  EXPECT_EQ(z.engine.listen({.service_id = kIpServices, .service_mask = kIpServiceMask}).error(),
            Status::AlreadyExists);
}

TEST_F(Listening, PrivateDataChoosesAmongListeners) {
  const std::vector<std::uint8_t> one{1}, two{2}, mask{0x0f}, long_value(217);
  const ListenerId any = listen({.service_id = kService});
  const ListenerId first =
      listen({.service_id = kService, .compare = PrivateDataCompare{.offset = 3, .value = one}});
  const ListenerId second =
      listen({.service_id = kService,
              .compare = PrivateDataCompare{.offset = 3, .value = two, .mask = mask}});
  const std::vector<std::uint8_t> to_first{0, 0, 0, 1}, to_second{9, 9, 9, 0xf2},
      to_any{0, 0, 0, 3};
  EXPECT_EQ(heard(kService, to_first), first);
  EXPECT_EQ(heard(kService, to_second), second);
  EXPECT_EQ(heard(kService, to_any), any);
  EXPECT_EQ(heard(kService), any);
  EXPECT_EQ(z.engine
                .listen({.service_id = kService,
                         .compare = PrivateDataCompare{.offset = 3, .value = one}})
                .error(),
            Status::AlreadyExists);
  for (const auto& compare : {PrivateDataCompare{}, PrivateDataCompare{.value = long_value},
                              PrivateDataCompare{.offset = 216, .value = one},
                              PrivateDataCompare{.value = to_first, .mask = mask}}) {
    EXPECT_EQ(z.engine.listen({.service_id = 1, .compare = compare}).error(),
              Status::InvalidParameter);
  }
}

TEST_F(Listening, AListenerOfOnePortGetsItsRequests) {
  const ListenerId second = listen({.service_id = kService, .port = 2});
  EXPECT_EQ(heard(kService), std::nullopt);
  const ListenerId first = listen({.service_id = kService, .port = 1});
  EXPECT_EQ(heard(kService), first);
  EXPECT_EQ(z.engine.listen({.service_id = kService}).error(), Status::AlreadyExists);
  (void)second;
}

TEST_F(Listening, ARequestOutlivesItsListener) {
  const ListenerId id = listen({.service_id = kService});
  ASSERT_TRUE(world[0].engine.connect(request_between(0, 1, 1), world.now).has_value());
  world.deliver();
  const auto request = z.take<RequestReceived>();
  z.engine.destroy(id);
  z.engine.destroy(id);
  EXPECT_EQ(z.engine.accept(request.id, reply_with(2), world.now), Status::Ok);
  world.deliver();
  world[0].take<ReplyReceived>();
}

TEST_F(Listening, AFullBacklogRefusesUntilTheConsumerHasAnswered) {
  listen({.service_id = kService, .backlog = 2});
  std::vector<ConnectionId> waiting;
  for (std::uint32_t qpn = 1; qpn <= 3; ++qpn) {
    ASSERT_TRUE(world[0].engine.connect(request_between(0, 1, qpn), world.now).has_value());
    world.deliver();
    if (qpn < 3) waiting.push_back(z.take<RequestReceived>().id);
  }
  EXPECT_TRUE(z.events.empty());
  EXPECT_EQ(world[0].take<Rejected>().reason, RejectReason::NoResources);
  EXPECT_EQ(z.engine.counters().backlog_full, 1u);
  EXPECT_EQ(z.engine.accept(waiting[0], reply_with(0x200), world.now), Status::Ok);
  EXPECT_EQ(heard(kService).has_value(), true);
  EXPECT_EQ(z.engine.reject(waiting[1], {}, world.now), Status::Ok);
  EXPECT_EQ(heard(kService).has_value(), true);
  EXPECT_EQ(heard(kService).has_value(), false);
}

// A peer that sends requests and gives up cannot pile up what the consumer has not seen.
TEST_F(Listening, ARequestThatEndsKeepsItsPlaceUntilItIsDestroyed) {
  listen({.service_id = kService, .backlog = 2});
  for (std::uint32_t qpn = 1; qpn <= 50; ++qpn) {
    const auto id = world[0].engine.connect(request_between(0, 1, qpn), world.now);
    ASSERT_TRUE(id.has_value());
    world.deliver();
    world[0].engine.destroy(*id, world.now);
    world.deliver();
  }
  EXPECT_EQ(z.engine.connection_count(), 2u);
  EXPECT_EQ(z.events.size(), 4u);
  for (const ConnectionId id : z.engine.connections()) z.engine.destroy(id, world.now);
  EXPECT_EQ(z.engine.connection_count(), 0u);
}

// A flood of one remote port, each REQ of another queue pair; what was sent in answer is in
// world.sent.
void flood(World& world, unsigned from, unsigned count) {
  Req req;
  req.service_id = kService;
  req.path_mtu = 3;
  req.primary = path_between(from, 1);
  req.ca_guid = guid_of(from);
  for (unsigned i = 0; i < count; ++i) {
    req.local_comm_id = req.qpn = i + 1;
    world.inject(1, encode(req), from);
  }
}

TEST(Flood, IsRejectedWithAReasonAndLeavesTheBacklogToOtherPorts) {
  World world(6);
  Node& z = world[1];
  ASSERT_TRUE(z.engine.listen({.service_id = kService, .backlog = 8}).has_value());
  flood(world, 0, 100);
  EXPECT_EQ(z.events.size(), 8u) << "one port alone gets what the listener has asked for";
  ASSERT_EQ(world.sent.size(), 92u);
  for (const World::Flight& flight : world.sent) {
    ASSERT_EQ(attribute_of(flight.mad), Attribute::Rej);
    EXPECT_EQ(decode_rej(flight.mad)->reason, static_cast<unsigned>(RejectReason::NoResources));
  }
  // Each other one finds a place, however much those before it have sent.
  for (const unsigned other : {2u, 3u, 4u, 5u}) {
    z.events.clear();
    flood(world, other, 100);
    EXPECT_GT(z.events.size(), 0u) << "node " << other;
  }
  EXPECT_LE(z.engine.connection_count(), 16u);
}

TEST(Flood, OfDatagramRequestsLeavesTheBacklogToOtherPorts) {
  World world(3);
  Node& z = world[1];
  ASSERT_TRUE(z.engine.listen({.service_id = kService, .backlog = 2}).has_value());
  SidrReq req;
  req.service_id = kService;
  for (; req.request_id < 10; ++req.request_id) world.inject(1, encode(req), 0);
  EXPECT_EQ(z.events.size(), 2u);
  ASSERT_EQ(world.sent.size(), 8u);
  for (const World::Flight& flight : world.sent) {
    EXPECT_EQ(decode_sidr_rep(flight.mad)->status, static_cast<unsigned>(SidrStatus::Rejected));
  }
  world.inject(1, encode(req), 2);
  ASSERT_EQ(z.events.size(), 3u);
  // A request that was answered has left its place, also one of another port.
  const SidrId last = std::get<SidrRequested>(z.events.back()).id;
  EXPECT_EQ(z.engine.answer_sidr(last, {}, world.now), Status::Ok);
  ++req.request_id;
  world.inject(1, encode(req), 2);
  EXPECT_EQ(z.events.size(), 4u);
}

TEST(Flood, OnePeerCannotTakeThePlaceOfOthers) {
  Limits limits;
  limits.pending = 20;
  limits.pending_of_peer = 10;
  limits.connections = 200;
  limits.connections_of_peer = 100;
  limits.kept_answers = 16;
  World world(3, limits);
  Node& z = world[1];
  ASSERT_TRUE(z.engine.listen({.service_id = kService, .backlog = 0}).has_value());
  Req req;
  req.service_id = kService;
  req.path_mtu = 3;
  req.primary = path_between(0, 1);
  req.ca_guid = guid_of(0);
  std::vector<ConnectionId> asked;
  const auto flood = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ++req.local_comm_id;
      ++req.qpn;
      req.ca_guid += 7;  // claims to be somebody else each time
      world.inject(1, encode(req), 0);
    }
    while (!z.events.empty()) asked.push_back(z.take<RequestReceived>().id);
  };
  flood(1000);
  EXPECT_EQ(asked.size(), 10u);
  EXPECT_EQ(z.engine.counters().backlog_full, 990u);
  const auto other = world[2].engine.connect(request_between(2, 1, 5), world.now);
  ASSERT_TRUE(other.has_value());
  world.deliver();
  EXPECT_EQ(z.take<RequestReceived>().remote_ca_guid, guid_of(2));

  // Rejected ones are kept to be rejected again, but not without limit.
  for (int round = 0; round < 20; ++round) {
    for (const ConnectionId id : std::exchange(asked, {})) z.engine.destroy(id, world.now);
    flood(10);
  }
  EXPECT_LE(z.engine.connection_count(), 16u + 10u + 1u);
}

TEST(ClassPortInfo, CanBeRead) {
  World world(2);
  mad::MadHeader header{1, kCmClass, kCmClassVersion, mad::method::kGet, 0, 0, 0x1234, 1, 0, 0};
  mad::Mad mad{};
  std::memcpy(mad.data(), &header, sizeof header);
  world.inject(1, mad, 0);
  ASSERT_EQ(world.sent.size(), 1u);
  const mad::Mad answer = world.sent[0].mad;
  EXPECT_EQ(header_of(answer).method, mad::method::kGetResp);
  EXPECT_EQ(header_of(answer).status, 0);
  EXPECT_EQ(header_of(answer).transaction_id, 0x1234u);
  mad::ClassPortInfo info;
  std::memcpy(&info, answer.data() + sizeof header, sizeof info);
  EXPECT_EQ(info.class_version, kCmClassVersion);
  EXPECT_EQ(info.capability_mask, 0x3200);
  header.attribute = 0x10;
  std::memcpy(mad.data(), &header, sizeof header);
  world.inject(1, mad, 0);
  EXPECT_EQ(header_of(world.sent[1].mad).status, mad::mad_status::kAttributeNotSupported);
  // Neither answers nor unknown classes are answered.
  for (const auto& [at, value] : {std::pair{3, 0x81}, {3, 0x93}, {1, 0x04}, {0, 2}}) {
    mad::Mad other = mad;
    other[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    world.inject(1, other, 0);
  }
  EXPECT_EQ(world.sent.size(), 2u);
  EXPECT_EQ(world[1].engine.counters().malformed, 4u);
}

TEST(ServiceId, HasATextForUsers) {
  EXPECT_EQ(service_text(kService), "TCP port 7471");
  EXPECT_EQ(service_text(service_id({17, 4791})), "UDP port 4791");
  EXPECT_EQ(service_text(service_id({0x3f, 5})), "port 5 of port space 0x3f");
  EXPECT_EQ(service_text(kSdpServices | 80), "SDP port 80");
  EXPECT_EQ(service_text(kLocalServices | 1), "local service 0x200000000000001");
  EXPECT_EQ(service_text(0x1000'ce00'0000'0001), "service 0x1000ce0000000001");
  EXPECT_EQ(ip_service(kService), (IpService{6, 7471}));
  EXPECT_FALSE(ip_service(kSdpServices));
}

}  // namespace
}  // namespace ib::cm::test
