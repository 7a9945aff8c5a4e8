// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cables: the state of a port follows the other end, and messages pass between the two ends only.
#include "drivers/diagnostics/status.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/test/driver_bench_test.h"
#include "hca/layout/flow.h"
#include "mad/smp.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using testing::HasSubstr;
using verbs::EventType;
using verbs::PortState;
using verbs::QpType;

// Joins port 1 of both nodes; their ports 2 are on the ideal network.
void join(fabric::Fabric& fabric) {
  auto& nodes = fabric.nodes();
  EXPECT_EQ(fabric.graph().connect(nodes[0].hcas[0].ports[0], nodes[1].hcas[0].ports[0]),
            Status::Ok);
}

struct Cable : Bench {
  explicit Cable(verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand)
      : Bench(0, {}, link_layer, join),
        a(*this, 11, "node0"),
        b(*this, 12, "node1"),
        tool(*this, 13, "", false) {}

  fabric::Port& port(std::size_t node) { return fabric.nodes()[node].hcas[0].ports[0]; }
  // Of port 1 of a node, as posters see it.
  PortState state(std::size_t node) {
    return arena().port(fabric.graph().index_of(port(node)))->state.load();
  }
  void expect(PortState of_a, PortState of_b) {
    EXPECT_EQ(state(0), of_a);
    EXPECT_EQ(state(1), of_b);
  }
  void set(const char* node, bool up) {
    SetPortIn in;
    put_text(in.node, node);
    put_text(in.ca, "softib0");
    in.port = 1;
    in.up = up ? 1 : 0;
    tool.good(tool.root_call(Code::SetPort, in));
  }
  void power(const char* node, PowerState power_state) {
    SetPowerIn in;
    put_text(in.node, node);
    in.state = power_state;
    tool.good(tool.root_call(Code::SetPower, in));
  }
  void hca(const char* node, HcaAction action) {
    ChangeHcaIn in;
    put_text(in.node, node);
    put_text(in.ca, "softib0");
    in.action = action;
    const auto reply = tool.root_call<CaName>(Code::ChangeHca, in);
    EXPECT_EQ(reply.status, Status::Ok) << reply.reason;
  }
  // The events of port 1 that a process has not taken yet, such as "err active".
  std::string events(Process& of) {
    std::string text;
    for (;;) {
      auto request = of.start(of.zero(), Code::WaitEvent, Nothing{});
      executor.advance(std::chrono::milliseconds(1));
      if (!request->done) {
        request->irp.cancel();
        return text;
      }
      const EventOut event = of.finish<EventOut>(*request).out;
      const bool is_port = event.type == EventType::PortErr || event.type == EventType::PortActive;
      if (!is_port || event.index != 1) continue;
      text += text.empty() ? "" : " ";
      text += event.type == EventType::PortErr ? "err" : "active";
    }
  }
  // The flow of a queue pair of `from` that connects through this port to a LID.
  std::uint32_t flow(Process& from, std::uint8_t number, std::uint16_t dlid) {
    const auto qp = from.qp(QpType::Rc, from.pd(), from.cq());
    verbs::AddressVector av;
    av.dlid = dlid;
    av.port = number;
    from.connect(qp.handle, 0x4242, av);
    return arena().qp(index_of(qp.handle))->connection.flow.load();
  }

  Process a;
  Process b;
  Process tool;
};

TEST(Cable, APortThatGoesDownTakesTheOtherEndDown) {
  Cable t;
  t.expect(PortState::Active, PortState::Active);
  t.set("node0", false);
  t.expect(PortState::Down, PortState::Down);
  EXPECT_EQ(t.port(0).physical_state, fabric::kDisabled);
  EXPECT_EQ(t.port(1).physical_state, fabric::kPolling);
  EXPECT_EQ(t.events(t.a), "err");
  EXPECT_EQ(t.events(t.b), "err");
  const auto seen = t.b.call<PortAttr>(Code::QueryPort, PortIn{1, 0}).out;
  EXPECT_EQ(seen.state, PortState::Down);
  EXPECT_EQ(seen.phys_state, fabric::kPolling);
  EXPECT_EQ(t.arena().port(1)->state.load(), PortState::Active) << "another port of the HCA";
  EXPECT_THAT(t.trace(), HasSubstr("of softib0 of node1 (LID 3) is down: the other end"));

  t.set("node0", true);
  t.expect(PortState::Active, PortState::Active);
  EXPECT_EQ(t.port(1).physical_state, fabric::kLinkUp);
  EXPECT_EQ(t.events(t.a), "active");
  EXPECT_EQ(t.events(t.b), "active");
}

TEST(Cable, APortComesUpIfNobodyHasTakenTheOtherEndDown) {
  Cable t;
  t.set("node0", false);
  t.set("node1", false);
  EXPECT_EQ(t.events(t.b), "err");
  t.set("node0", true);
  t.expect(PortState::Down, PortState::Down);
  EXPECT_EQ(t.port(0).physical_state, fabric::kPolling);
  EXPECT_EQ(t.port(1).physical_state, fabric::kDisabled);
  EXPECT_EQ(t.events(t.a), "err") << "when it went down; it did not come up";
  t.set("node1", true);
  t.expect(PortState::Active, PortState::Active);
  EXPECT_EQ(t.events(t.a), "active");
  EXPECT_EQ(t.events(t.b), "active");
}

TEST(Cable, AnHcaThatSleepsIsSilent) {
  Cable t;
  t.power("node1", PowerState::Sleep);
  t.expect(PortState::Down, hca::kPortAsleep);
  EXPECT_EQ(t.port(0).physical_state, fabric::kPolling);
  EXPECT_EQ(t.events(t.a), "err");
  t.power("node1", PowerState::Working);
  t.expect(PortState::Active, PortState::Active);
  EXPECT_EQ(t.events(t.a), "active");
  EXPECT_EQ(t.events(t.b), "err active");
}

TEST(Cable, BothEndsWakeInAnyOrder) {
  for (const bool first_again : {true, false}) {
    Cable t;
    t.power("node0", PowerState::Sleep);
    t.power("node1", PowerState::Sleep);
    t.expect(hca::kPortAsleep, hca::kPortAsleep);
    EXPECT_EQ(t.events(t.a), "err");
    EXPECT_EQ(t.events(t.b), "err");
    t.power(first_again ? "node0" : "node1", PowerState::Working);
    EXPECT_EQ(t.state(first_again ? 0 : 1), PortState::Down);
    EXPECT_EQ(t.events(t.a) + t.events(t.b), "") << "the other one sleeps";
    t.power(first_again ? "node1" : "node0", PowerState::Working);
    t.expect(PortState::Active, PortState::Active);
    EXPECT_EQ(t.events(t.a), "active");
    EXPECT_EQ(t.events(t.b), "active");
  }
}

TEST(Cable, APortThatGoesDownAsItsPeerSleepsKeepsItDown) {
  Cable t;
  t.power("node1", PowerState::Sleep);
  t.set("node0", false);
  t.power("node1", PowerState::Working);
  t.expect(PortState::Down, PortState::Down);
  EXPECT_EQ(t.port(1).physical_state, fabric::kPolling);
  EXPECT_EQ(t.events(t.b), "err") << "when it fell asleep; it did not come up";
}

TEST(Cable, AnHcaThatIsPulledOutLeavesItsCablesSilent) {
  Cable t;
  t.hca("node1", HcaAction::Eject);
  t.expect(PortState::Down, PortState::Down);
  EXPECT_EQ(t.events(t.a), "err");
  t.hca("node1", HcaAction::Add);
  t.expect(PortState::Active, PortState::Active);
  EXPECT_EQ(t.events(t.a), "active");

  t.hca("node1", HcaAction::Eject);
  t.set("node0", false);
  t.hca("node1", HcaAction::Add);
  t.expect(PortState::Down, PortState::Down);
  EXPECT_EQ(t.port(1).physical_state, fabric::kPolling) << "nobody has taken it down";
  t.set("node0", true);
  t.expect(PortState::Active, PortState::Active);
}

TEST(Cable, ConnectionsPassBetweenItsEndsOnly) {
  Cable t;
  constexpr auto kNoWay = hca::flow::blocked(Cause::PeerUnknown);
  EXPECT_EQ(t.flow(t.a, 1, 3), hca::flow::kMemory);
  EXPECT_EQ(t.flow(t.a, 1, 1), hca::flow::kMemory) << "itself";
  EXPECT_EQ(t.flow(t.a, 1, 4), kNoWay);
  EXPECT_EQ(t.flow(t.a, 1, 2), kNoWay) << "the other port of its HCA";
  EXPECT_EQ(t.flow(t.a, 2, 4), hca::flow::kMemory) << "on the ideal network";
  EXPECT_EQ(t.flow(t.a, 2, 3), kNoWay);
}

TEST(Cable, AnAddressBesideItIsRefusedByGidAndExplainedByLid) {
  Cable t;
  const verbs::Gid beside = t.fabric.nodes()[1].hcas[0].ports[1].gid();
  CreateAhIn ah;
  ah.pd = t.a.pd();
  ah.av.port = 1;
  ah.av.is_global = 1;
  ah.av.dgid = beside;
  const auto refused = t.a.call(Code::CreateAh, ah);
  EXPECT_EQ(refused.status, Status::InvalidParameter);
  EXPECT_THAT(refused.reason, HasSubstr("a cable leads to its other end only"));
  ah.av.dgid = t.port(1).gid();
  EXPECT_EQ(t.a.call(Code::CreateAh, ah).status, Status::Ok);

  const auto qp = t.a.qp(QpType::Rc, t.a.pd(), t.a.cq());
  t.a.connect(qp.handle, 0x4242, 4);
  TraceErrorIn error;
  error.qp_index = index_of(qp.handle);
  error.peer_qpn = 0x4242;
  error.status = verbs::WcStatus::RetryExcErr;
  error.cause = Cause::PeerUnknown;
  error.detail = 4;
  t.a.good(t.a.root_call(Code::TraceError, error));
  EXPECT_THAT(t.trace(), HasSubstr("LID 4 is that of node1, softib0, port 2, to which no way"));
}

TEST(Cable, KeysThatDoNotFitAreCountedAtTheReceiver) {
  Cable t;
  const auto from = t.a.qp(QpType::Rc, t.a.pd(), t.a.cq());
  const auto to = t.b.qp(QpType::Rc, t.b.pd(), t.b.cq());
  t.a.connect(from.handle, to.out.qpn, 3);
  t.b.connect(to.handle, from.out.qpn, 1);
  std::vector<std::uint32_t> keys;
  t.core().on_key_violation = [&](const fabric::KeyViolation& violation, const fabric::Port& at) {
    EXPECT_EQ(&at, &t.port(1));
    EXPECT_EQ(violation.from, &t.port(0));
    EXPECT_EQ(violation.source_qp, from.out.qpn);
    EXPECT_EQ(violation.target_qp, to.out.qpn);
    keys.push_back(violation.key);
  };
  TraceErrorIn error;
  error.qp_index = index_of(from.handle);
  error.peer_qpn = to.out.qpn;
  error.status = verbs::WcStatus::RetryExcErr;
  error.cause = Cause::PkeyMismatch;
  error.detail = 0x8001ull << 32 | 0xffff;
  t.a.good(t.a.root_call(Code::TraceError, error));
  error.cause = Cause::QkeyMismatch;
  error.detail = 0x22ull << 32 | 0x11;
  error.reserved = 3;  // times
  t.a.good(t.a.root_call(Code::TraceError, error));
  EXPECT_EQ(t.port(1).settings.p_key_violations, 1u);
  EXPECT_EQ(t.port(1).settings.q_key_violations, 3u);
  EXPECT_EQ(keys, (std::vector<std::uint32_t>{0x8001, 0x22}));
  error.status = verbs::WcStatus::LocQpOpErr;
  t.a.good(t.a.root_call(Code::TraceError, error));
  error.status = verbs::WcStatus::Success;
  error.cause = Cause::PortDown;
  t.a.good(t.a.root_call(Code::TraceError, error));
  EXPECT_EQ(keys.size(), 2u) << "neither reached a receiver";
}

TEST(Cable, JoinsEthernetPortsToo) {
  Cable t(verbs::LinkLayer::Ethernet);
  const auto flow = [&](const fabric::Port& to) {
    const auto qp = t.a.qp(QpType::Rc, t.a.pd(), t.a.cq());
    t.a.connect(qp.handle, 0x4242, to.gids[1].gid);
    return t.arena().qp(index_of(qp.handle))->connection.flow.load();
  };
  EXPECT_EQ(flow(t.port(1)), hca::flow::kMemory);
  t.set("node1", false);
  t.expect(PortState::Down, PortState::Down);
}

// As a subnet manager changes them.
TEST(Cable, QueuePairsFollowTheLidAndThePkeysOfTheirPort) {
  Cable t;
  const auto qp = t.a.qp(QpType::Rc, t.a.pd(), t.a.cq());
  t.a.connect(qp.handle, 0x4242, 3);
  const hca::QpEntry& entry = *t.arena().qp(index_of(qp.handle));
  ASSERT_EQ(entry.id.lid, 1);
  ASSERT_EQ(entry.id.pkey, 0xffff);
  fabric::Port& port = t.port(0);
  t.fabric.graph().take_lid(port, 40, 0);
  port.pkeys[0] = 0x8005;
  apply_changes(t.core(), {{t.fabric.graph().index_of(port),
                            fabric::change::kLid | fabric::change::kPkeys, PortState::Nop}});
  EXPECT_EQ(entry.id.lid, 40);
  EXPECT_EQ(entry.id.pkey, 0x8005);
  EXPECT_EQ(t.arena().port_with_lid(40), port.device_index);
  EXPECT_EQ(t.arena().port_with_lid(1), hca::kNone);
}

// Get(NodeInfo) along a directed route out of port 1 of node0.
struct DirectedRoute : Cable {
  DirectedRoute() {
    smp.header = {mad::kBaseVersion,
                  mad::mgmt_class::kSubnDirected,
                  mad::kClassVersion,
                  mad::method::kGet,
                  0,
                  1,  // hop pointer 0, hop count 1
                  0x77,
                  mad::smp_attribute::kNodeInfo,
                  0,
                  0};
    std::fill_n(smp.reserved.begin(), 4, std::uint8_t{0xff});
    smp.paths[1] = 1;
  }
  Reply<MadOut> ask(std::uint32_t number = 1) {
    MadIn in;
    in.port = number;
    std::memcpy(&in.mad, &smp, sizeof smp);
    return a.call<MadOut>(Code::LocalMad, in);
  }
  mad::Smp smp;
};

TEST(DirectedRoute, OverACableIsAnsweredByTheOtherEnd) {
  DirectedRoute t;
  const auto reply = t.ask();
  ASSERT_EQ(reply.status, Status::Ok) << reply.reason;
  const auto response = std::bit_cast<mad::Smp>(reply.out);
  EXPECT_EQ(response.header.method, mad::method::kGetResp);
  EXPECT_EQ(response.header.status, mad::kDirectionBit);
  EXPECT_EQ(response.header.class_specific, 0x0001) << "it is back";
  EXPECT_EQ(response.paths[64 + 1], 1) << "the return path";
  mad::NodeInfo info;
  std::memcpy(static_cast<void*>(&info), response.data.data(), sizeof info);
  EXPECT_EQ(info.node_guid, t.fabric.nodes()[1].hcas[0].node_guid);
  EXPECT_EQ(info.local_port, 1);
}

TEST(DirectedRoute, ThatLeadsNowhereIsRefused) {
  DirectedRoute t;
  const auto refused = [&t](const char* why) {
    const auto reply = t.ask();
    EXPECT_EQ(reply.status, Status::InvalidParameter);
    EXPECT_THAT(reply.reason, HasSubstr(why));
  };
  for (const unsigned port : {2u, 3u, 0u, 255u}) {
    t.smp.paths[1] = static_cast<std::uint8_t>(port);
    refused("has no cable that is up");
  }
  t.smp.paths[1] = t.smp.paths[2] = 1;
  t.smp.header.class_specific = 2;
  refused("a channel adapter sends nothing on");
  t.smp.header.class_specific = 1;
  t.smp.reserved[1] = 7;
  refused("the LIDs of both ends");
  t.smp.reserved[1] = 0xff;
  t.smp.header.method = mad::method::kGetResp;
  refused("is a response");
  t.smp.header.method = mad::method::kGet;
  t.set("node1", false);
  refused("has no cable that is up");
  t.set("node1", true);
  EXPECT_EQ(t.ask().status, Status::Ok);
}

TEST(Cable, TheStatusNamesTheOtherEnd) {
  Cable t;
  const auto ports = nlohmann::json::parse(status_json(t.core()))["nodes"][0]["hcas"][0]["ports"];
  const nlohmann::json peer = {{"node", "node1"}, {"hca", "softib0"}, {"port", 1}};
  EXPECT_EQ(ports[0]["peer"], peer);
  EXPECT_FALSE(ports[1].contains("peer"));
}

}  // namespace
}  // namespace ib::drivers::test
