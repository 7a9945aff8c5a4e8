// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The general services interface between two nodes, on both link layers: agents, requests, tries,
// answers without an agent, redirection.
#include "fabric/topology/node_names.h"
#include "fabric/topology/presets.h"
#include "mad/mgmt_class.h"
#include "services_world.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kClass = 0x09;  // a vendor's, without RMPP

mad::MadHeader get(std::uint16_t attribute, std::uint64_t tid = 0x1234) {
  return {1, kClass, 1, mad::method::kGet, 0, 0, tid, attribute, 0, 0};
}

// The answer of a request.
struct Answer {
  int times = 0;
  Status status = Status::Pending;
  std::string reason;
  GsiAddress from;
  std::vector<std::byte> bytes;
  OnGsiAnswer taker() {
    return [this](Status s, std::string_view why, const GsiMessage* message) {
      ++times;
      status = s;
      reason = why;
      if (message == nullptr) return;
      from = message->from;
      bytes.assign(message->bytes.begin(), message->bytes.end());
    };
  }
  mad::MadHeader header() const { return header_of(bytes); }
};

class GsiTest : public ::testing::TestWithParam<verbs::LinkLayer> {
 protected:
  void SetUp() override {
    w.emitted.leave_out(kClass);
    ASSERT_EQ(w.ensure("node0"), Status::Ok);
    ASSERT_EQ(w.ensure("node1"), Status::Ok);
    client = add({.name = "client", .mgmt_class = kClass});
  }
  AgentId add(GsiAgent agent) {
    std::string reason;
    const auto id = w.gsi->add_agent(std::move(agent), reason);
    EXPECT_TRUE(id) << reason;
    return id ? *id : 0;
  }
  // An agent that answers Gets with its attribute id in the modifier.
  GsiAgent echo() {
    GsiAgent agent;
    agent.name = "echo";
    agent.mgmt_class = kClass;
    agent.methods = {mad::method::kGet};
    agent.on_message = [this](const GsiMessage& message) {
      ++requests;
      last_from = message.from;
      if (silent) return;
      mad::MadHeader header = message.header;
      header.method = mad::method::kGetResp;
      header.modifier = std::uint32_t{header.attribute} + 1;
      EXPECT_EQ(w.gsi->respond(server, message.from, mad_of(header)), Status::Ok);
    };
    return agent;
  }
  Status ask(const mad::MadHeader& header, Answer& answer, const GsiAddress& to,
             Duration timeout = 100ms, std::uint32_t retries = 2) {
    const mad::Mad mad = mad_of(header);
    const auto id = w.gsi->request(client, {to, mad, timeout, retries}, answer.taker());
    EXPECT_EQ(answer.times, 0) << "nothing is called back from inside the call";
    if (id) last_request = *id;
    return id.error();
  }

  ServicesWorld w{GetParam()};
  AgentId client = 0;
  AgentId server = 0;
  RequestId last_request = 0;
  int requests = 0;
  bool silent = false;
  GsiAddress last_from;
};
INSTANTIATE_TEST_SUITE_P(LinkLayers, GsiTest,
                         ::testing::Values(verbs::LinkLayer::InfiniBand,
                                           verbs::LinkLayer::Ethernet),
                         [](const auto& layer) {
                           return layer.param == verbs::LinkLayer::Ethernet ? "Ethernet"
                                                                            : "InfiniBand";
                         });

TEST_P(GsiTest, ARequestGetsItsAnswerWithTheIdOfTheAgent) {
  server = add(echo());
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1)), Status::Ok);
  EXPECT_EQ(w.gsi->under_way(), 1u);
  ASSERT_TRUE(w.comes([&] { return answer.times > 0; }, 50ms));
  EXPECT_EQ(answer.status, Status::Ok);
  EXPECT_EQ(answer.header().transaction_id, 0x1234u);
  EXPECT_EQ(answer.header().modifier, 8u);
  EXPECT_EQ(answer.from.port, w.index(0));
  EXPECT_EQ(answer.from.remote.qpn, 1u);
  EXPECT_EQ(last_from.port, w.index(1));
  if (GetParam() == verbs::LinkLayer::Ethernet) {
    ASSERT_TRUE(last_from.remote.route);
    EXPECT_EQ(last_from.remote.route->gid, w.port(0).gid());
    EXPECT_EQ(last_from.remote.lid, 0);
  } else {
    EXPECT_FALSE(last_from.remote.route);
    EXPECT_EQ(last_from.remote.lid, w.port(0).lid);
  }
  w.run(1s);
  EXPECT_EQ(answer.times, 1);
  EXPECT_EQ(w.gsi->under_way(), 0u);
}

TEST_P(GsiTest, ARequestByGidIsAnsweredByGid) {
  server = add(echo());
  GsiAddress to = w.address(0, 1, true);
  to.remote.route->traffic_class = 5;
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, to), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return answer.times > 0; }, 50ms));
  ASSERT_TRUE(last_from.remote.route);
  EXPECT_EQ(last_from.remote.route->gid, w.port(0).gid());
  EXPECT_EQ(last_from.remote.route->traffic_class, 5);
  ASSERT_TRUE(answer.from.remote.route);
  EXPECT_EQ(answer.from.remote.route->gid, w.port(1).gid());
}

TEST_P(GsiTest, APortReachesItself) {
  server = add(echo());
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 0)), Status::Ok);
  EXPECT_TRUE(w.comes([&] { return answer.times > 0; }, 50ms));
}

// The second GID of an Ethernet port is the IPv4 address of its node.
TEST_P(GsiTest, AnswersComeToTheAddressThatWasUsed) {
  if (GetParam() != verbs::LinkLayer::Ethernet) GTEST_SKIP() << "InfiniBand ports have one GID";
  server = add(echo());
  GsiAddress to = w.address(0, 1);
  to.remote.route->gid = w.port(1).gids[1].gid;
  to.remote.route->sgid_index = 1;
  ASSERT_TRUE(verbs::is_ipv4(to.remote.route->gid));
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, to), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return answer.times > 0; }, 50ms));
  EXPECT_EQ(last_from.remote.route->gid, w.port(0).gids[1].gid);
  EXPECT_EQ(last_from.remote.route->sgid_index, 1);
  EXPECT_EQ(answer.from.remote.route->gid, to.remote.route->gid);
}

TEST_P(GsiTest, ASilentPeerIsAskedAsOftenAsWasSaidAndThenItTimesOut) {
  server = add(echo());
  silent = true;
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1), 100ms, 2), Status::Ok);
  w.run(99ms);
  EXPECT_EQ(requests, 1);
  w.run(27ms);
  EXPECT_EQ(requests, 2) << "a quarter later at most";
  w.run(1s);
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(answer.times, 1);
  EXPECT_EQ(answer.status, Status::Timeout);
  EXPECT_NE(answer.reason.find("no answer from"), std::string::npos) << answer.reason;
}

TEST_P(GsiTest, ACancelledRequestIsNeverAnswered) {
  server = add(echo());
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1)), Status::Ok);
  w.gsi->cancel(last_request);
  EXPECT_EQ(w.gsi->under_way(), 0u);
  w.run(1s);
  EXPECT_EQ(answer.times, 0);
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(w.gsi->counters().late_responses, 1u);
  w.gsi->cancel(last_request);
}

TEST_P(GsiTest, AResponseThatComesTwiceIsLate) {
  GsiAgent twice = echo();
  twice.on_message = [&](const GsiMessage& message) {
    mad::MadHeader header = message.header;
    header.method = mad::method::kGetResp;
    (void)w.gsi->respond(server, message.from, mad_of(header));
    (void)w.gsi->respond(server, message.from, mad_of(header));
  };
  server = add(twice);
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1)), Status::Ok);
  w.run(1s);
  EXPECT_EQ(answer.times, 1);
  EXPECT_EQ(w.gsi->counters().late_responses, 1u);
  ASSERT_EQ(w.drops.size(), 1u);
  EXPECT_TRUE(
      w.drops[0].starts_with("port 1 of softib0 of node0 dropped a MAD for which nobody "
                             "waits any more: class "))
      << w.drops[0];
}

TEST_P(GsiTest, RequestsForNobodyAreRefusedInTheirStatus) {
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1)), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return answer.times > 0; }, 50ms));
  EXPECT_EQ(answer.status, Status::Ok);
  EXPECT_EQ(answer.header().method, mad::method::kGetResp);
  EXPECT_EQ(answer.header().status, mad::mad_status::kBadVersion) << "the class has no agent";
  server = add(echo());
  for (const bool other_version : {false, true}) {
    Answer refused;
    mad::MadHeader header = get(7);
    header.method = other_version ? mad::method::kGet : mad::method::kSet;
    header.class_version = other_version ? 2 : 1;
    ASSERT_EQ(ask(header, refused, w.address(0, 1)), Status::Ok);
    ASSERT_TRUE(w.comes([&] { return refused.times > 0; }, 50ms));
    EXPECT_EQ(refused.header().status,
              other_version ? mad::mad_status::kBadVersion : mad::mad_status::kMethodNotSupported);
  }
  Answer none;
  mad::MadHeader report = get(7);
  report.method = mad::method::kReport;
  ASSERT_EQ(ask(report, none, w.address(0, 1), 10ms, 0), Status::Ok);
  w.run(1s);
  EXPECT_EQ(none.status, Status::Timeout) << "only Get and Set are refused";
  ASSERT_EQ(w.drops.size(), 1u);
  EXPECT_NE(w.drops[0].find("of node1 dropped a MAD which no service takes: class 0x"),
            std::string::npos)
      << w.drops[0];
  EXPECT_NE(w.drops[0].find("method 0x06"), std::string::npos) << w.drops[0];
  for (int i = 0; i < 40; ++i) {
    Answer more;
    ASSERT_EQ(ask(report, more, w.address(0, 1), 10ms, 0), Status::Ok);
    w.run(1s);
  }
  EXPECT_EQ(w.drops.size(), 8u + 2u) << "the first eight, 16 and 32";
  EXPECT_EQ(w.gsi->counters().to_nobody, 41u);
  EXPECT_EQ(w.gsi->counters().refused, 3u);
  EXPECT_EQ(requests, 0);
}

TEST_P(GsiTest, ClassPortInfoIsAnsweredForTheAgent) {
  GsiAgent agent = echo();
  agent.methods = {mad::method::kSend};
  agent.class_port_info.emplace();
  agent.class_port_info->capability_mask = 0x1234;
  server = add(agent);
  Answer answer;
  ASSERT_EQ(ask(get(mad::kClassPortInfo), answer, w.address(0, 1)), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return answer.times > 0; }, 50ms));
  mad::ClassPortInfo info;
  std::memcpy(&info, answer.bytes.data() + mad::attribute_offset(kClass), sizeof info);
  EXPECT_EQ(answer.header().status, 0);
  EXPECT_EQ(info.capability_mask, 0x1234);
  Answer other;
  ASSERT_EQ(ask(get(7), other, w.address(0, 1)), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return other.times > 0; }, 50ms));
  EXPECT_EQ(other.header().status, mad::mad_status::kAttributeNotSupported);
  EXPECT_EQ(requests, 0);
}

TEST_P(GsiTest, AgentsOfOnePortOrOfAllAndNoTwoForTheSame) {
  GsiAgent here = echo();
  here.port = w.index(1);
  server = add(here);
  std::string reason;
  EXPECT_EQ(w.gsi->add_agent(echo(), reason).error(), Status::AlreadyExists);
  EXPECT_EQ(reason, "echo takes method 0x01 of class 0x09");
  GsiAgent there = echo();
  there.port = w.index(0);
  add(there);
  GsiAgent subnet = echo();
  subnet.mgmt_class = mad::mgmt_class::kSubnLid;
  EXPECT_EQ(w.gsi->add_agent(subnet, reason).error(), Status::InvalidParameter);
  GsiAgent deaf = echo();
  deaf.on_message = {};
  EXPECT_EQ(w.gsi->add_agent(deaf, reason).error(), Status::InvalidParameter);
}

TEST_P(GsiTest, AnAgentMayRemoveItselfInItsCallback) {
  GsiAgent agent = echo();
  agent.on_message = [&](const GsiMessage&) {
    ++requests;
    w.gsi->remove_agent(server);
  };
  server = add(agent);
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1), 10ms, 2), Status::Ok);
  w.run(1s);
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(answer.status, Status::Ok) << "the second try is refused";
  EXPECT_EQ(answer.header().status, mad::mad_status::kBadVersion);
}

TEST_P(GsiTest, RequestsOfARemovedAgentAreNotAnswered) {
  server = add(echo());
  silent = true;
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1)), Status::Ok);
  const mad::Mad mad = mad_of(get(8));
  GsiAnswer unused;
  Outcome by_irp;
  w.gsi->request(client, {w.address(0, 1), mad, 100ms, 1}, unused, by_irp.start());
  w.gsi->remove_agent(client);
  EXPECT_EQ(by_irp.irp.status, Status::Cancelled);
  w.run(1s);
  EXPECT_EQ(answer.times, 0);
  EXPECT_EQ(by_irp.times, 1);
  EXPECT_EQ(ask(get(7), answer, w.address(0, 1)), Status::InvalidParameter);
}

TEST_P(GsiTest, ARequestByIrpIsAnsweredOrCancelled) {
  server = add(echo());
  const mad::Mad mad = mad_of(get(8));
  GsiAnswer answer;
  Outcome done;
  w.gsi->request(client, {w.address(0, 1), mad, 100ms, 1}, answer, done.start());
  ASSERT_TRUE(w.comes([&] { return done.is_done(); }, 50ms));
  EXPECT_EQ(done.irp.status, Status::Ok);
  EXPECT_EQ(done.irp.information, mad::kMadSize);
  EXPECT_EQ(header_of(answer.bytes).modifier, 9u);

  silent = true;
  Outcome cancelled;
  w.gsi->request(client, {w.address(0, 1), mad, 100ms, 5}, answer, cancelled.start());
  w.run(10ms);
  cancelled.irp.cancel();
  EXPECT_EQ(cancelled.irp.status, Status::Cancelled);
  const int before = requests;
  w.run(2s);
  EXPECT_EQ(requests, before) << "a cancelled request is not sent again";
  EXPECT_EQ(w.gsi->under_way(), 0u);

  Outcome early;
  io::IrpRef irp = early.start();
  irp->cancel();
  w.gsi->request(client, {w.address(0, 1), mad, 100ms, 5}, answer, std::move(irp));
  EXPECT_EQ(early.irp.status, Status::Cancelled);

  Outcome late;
  w.gsi->request(client, {w.address(0, 1), mad, 10ms, 0}, answer, late.start());
  w.run(1s);
  EXPECT_EQ(late.irp.status, Status::Timeout);
  EXPECT_EQ(late.times, 1);
  Outcome wrong;
  w.gsi->request(client, {w.address(0, 1), {}, 10ms, 0}, answer, wrong.start());
  EXPECT_EQ(wrong.irp.status, Status::InvalidParameter);
}

TEST_P(GsiTest, WrongMessagesAreRefused) {
  Answer answer;
  mad::MadHeader header = get(7);
  header.method = mad::method::kGetResp;
  EXPECT_EQ(ask(header, answer, w.address(0, 1)), Status::InvalidParameter) << "no request";
  header = get(7);
  header.mgmt_class = kClass + 1;
  EXPECT_EQ(ask(header, answer, w.address(0, 1)), Status::InvalidParameter) << "another class";
  GsiAddress nowhere = w.address(0, 1);
  nowhere.port = 999;
  EXPECT_EQ(ask(get(7), answer, nowhere), Status::InvalidState);
  EXPECT_EQ(ask(get(7), answer, w.address(0, 1), 0ms), Status::InvalidParameter);
  const std::vector<std::byte> longer(300, std::byte{0});
  EXPECT_EQ(w.gsi->request(client, {w.address(0, 1), longer, 1s, 1}, answer.taker()).error(),
            Status::InvalidParameter);
}

TEST_P(GsiTest, AnAgentHasAQuota) {
  server = add(echo());
  silent = true;
  client = add({.name = "small", .mgmt_class = kClass, .max_requests = 2});
  Answer answers[3];
  EXPECT_EQ(ask(get(1), answers[0], w.address(0, 1)), Status::Ok);
  EXPECT_EQ(ask(get(1), answers[1], w.address(0, 1)), Status::Ok);
  EXPECT_EQ(ask(get(1), answers[2], w.address(0, 1)), Status::LimitExceeded);
  w.run(1s);
  EXPECT_EQ(answers[0].status, Status::Timeout);
  EXPECT_EQ(answers[2].times, 0);
  EXPECT_EQ(ask(get(1), answers[2], w.address(0, 1)), Status::Ok);
  w.run(1s);
}

TEST_P(GsiTest, ManyAtOnceWaitForTheirPlaceInTheQueue) {
  server = add(echo());
  std::vector<Answer> answers(1000);
  for (Answer& answer : answers) {
    ASSERT_EQ(ask(get(1), answer, w.address(0, 1), 100ms, 20), Status::Ok);
  }
  w.run(10s);
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.status, Status::Ok);
    EXPECT_EQ(answer.times, 1);
  }
}

TEST_P(GsiTest, WhatIsSentWithoutAnAnswerReachesTheAgentOfItsClass) {
  GsiAgent agent = echo();
  agent.methods = {mad::method::kSend};
  std::uint64_t tid = 0;
  agent.on_message = [&](const GsiMessage& message) {
    ++requests;
    tid = message.header.transaction_id;
  };
  server = add(agent);
  mad::MadHeader header = get(7, w.gsi->make_tid(client));
  header.method = mad::method::kSend;
  EXPECT_EQ(w.gsi->send(client, w.address(0, 1), mad_of(header)), Status::Ok);
  w.run();
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(tid >> 32, client);
}

// node1 says that the service is at port 2 of node 0, which says that it is at node1 again.
TEST_P(GsiTest, ARedirectionIsFollowedOnce) {
  const fabric::Port& second = w.hca(0).ports[1];
  GsiAgent agent = echo();
  std::vector<std::uint32_t> asked;
  agent.on_message = [&](const GsiMessage& message) {
    asked.push_back(message.from.port);
    const fabric::Port& there = message.from.port == w.index(1) ? second : w.port(1);
    mad::MadHeader header = message.header;
    header.method = mad::method::kGetResp;
    header.status = mad::mad_status::kRedirect;
    header.attribute = mad::kClassPortInfo;
    mad::ClassPortInfo info;
    info.redirect_lid = there.lid;
    if (there.is_ethernet()) info.redirect_gid = there.gid();
    info.redirect_qpn = 1;
    info.redirect_qkey = verbs::kGsiQkey;
    info.redirect_pkey = 0xffff;
    mad::Mad mad = mad_of(header);
    std::memcpy(mad.data() + mad::attribute_offset(kClass), &info, sizeof info);
    (void)w.gsi->respond(server, message.from, mad);
  };
  server = add(agent);
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1)), Status::Ok);
  w.run(1s);
  EXPECT_EQ(asked,
            (std::vector<std::uint32_t>{w.index(1), w.bench.fabric.graph().index_of(second)}));
  EXPECT_EQ(answer.times, 1);
  EXPECT_EQ(answer.header().status, mad::mad_status::kRedirect) << "the second one is the answer";
}

TEST_P(GsiTest, ARedirectionToNowhereIsTheAnswer) {
  GsiAgent agent = echo();
  agent.on_message = [&](const GsiMessage& message) {
    mad::MadHeader header = message.header;
    header.method = mad::method::kGetResp;
    header.status = mad::mad_status::kRedirect;
    (void)w.gsi->respond(server, message.from, mad_of(header));
  };
  server = add(agent);
  Answer answer;
  ASSERT_EQ(ask(get(7), answer, w.address(0, 1)), Status::Ok);
  w.run(1s);
  EXPECT_EQ(answer.times, 1);
  EXPECT_EQ(answer.header().status, mad::mad_status::kRedirect);
}

// Their ports have other indexes in the graph than in device memory.
TEST(GsiBehindASwitch, MadsGoWhereTheSwitchIsTheFirstElement) {
  ServicesWorld w(verbs::LinkLayer::InfiniBand, {}, [](fabric::Fabric& fabric) {
    std::string reason;
    fabric::Shape shape;
    shape.topology = fabric::sorted(*fabric::preset_topology("star:2", reason));
    shape.nodes = fabric::nodes_of(shape.topology);
    fabric = *fabric::Fabric::create(shape);
  });
  ASSERT_NE(w.index(0), w.port(0).device_index);
  w.emitted.leave_out(kClass);
  ASSERT_EQ(w.ensure("node0"), Status::Ok);
  ASSERT_EQ(w.ensure("node1"), Status::Ok);
  std::string reason;
  const auto sender = w.gsi->add_agent({.name = "sender", .mgmt_class = kClass}, reason);
  ASSERT_TRUE(sender) << reason;
  const mad::Mad mad = mad_of(get(7));
  EXPECT_EQ(w.gsi->send(*sender, w.address(0, 1), mad), Status::Ok);
  EXPECT_EQ(w.gsi->send(*sender, w.address(1, 0), mad), Status::Ok);
}

}  // namespace
}  // namespace ib::services::test
