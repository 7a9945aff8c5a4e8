// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests to ports where nobody has queue pair 1, switches and closed nodes, in a star of three
// nodes; and the same agents where Gsi has it.
#include "drivers/soft_hca/core_status.h"
#include "fabric/management/subnet_test.h"
#include "fabric/subnet_setup.h"
#include "mad/class_port_info.h"
#include "mad/mgmt_class.h"
#include "mad/perf.h"
#include "services/gsi/element_agents.h"
#include "services_world.h"

#include <gtest/gtest.h>

#include <map>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;
using mad::method::kGet;
using mad::method::kSet;
using mad::mgmt_class::kPerf;

struct Answer {
  int times = 0;
  Status status = Status::Pending;
  GsiAddress from;
  mad::PerfMad mad;
  mad::PortCounters counters() const {
    mad::PortCounters out;
    std::memcpy(static_cast<void*>(&out), mad.data.data(), sizeof out);
    return out;
  }
};

class ClosedWorld : public ::testing::Test {
 protected:
  explicit ClosedWorld(const std::function<void(fabric::Fabric&)>& before_start)
      : w(verbs::LinkLayer::InfiniBand, {}, before_start) {}
  void SetUp() override {
    for (const std::uint8_t mgmt_class :
         {kPerf, mad::mgmt_class::kBm, mad::mgmt_class::kDevMgt, mad::mgmt_class::kSubnAdm}) {
      w.emitted.leave_out(mgmt_class);  // those of the requester
    }
    ASSERT_EQ(w.ensure(w.node(0).name.c_str()), Status::Ok);
  }
  AgentId client(std::uint8_t mgmt_class) {
    AgentId& id = clients[mgmt_class];
    std::string reason;
    GsiAgent agent{.name = "client", .mgmt_class = mgmt_class};
    if (mgmt_class == mad::mgmt_class::kSubnAdm) agent.class_version = 2;
    if (id == 0) id = *w.gsi->add_agent(std::move(agent), reason);
    return id;
  }
  static mad::Mad request(std::uint8_t mgmt_class, std::uint8_t method, std::uint16_t attribute,
                          std::uint8_t port_select = 1, std::uint16_t counters = 0xffff) {
    mad::PerfMad mad;
    const std::uint8_t version = mgmt_class == mad::mgmt_class::kSubnAdm ? 2 : 1;
    mad.header = {1, mgmt_class, version, method, 0, 0, 0x1234, attribute, 0, 0};
    mad::PortCounters in;
    in.port_select = port_select;
    in.counter_select = counters;
    if (mgmt_class == kPerf) std::memcpy(mad.data.data(), &in, sizeof in);
    return std::bit_cast<mad::Mad>(mad);
  }
  // From node 0; two tries.
  Answer ask(const GsiAddress& to, const mad::Mad& mad) {
    Answer answer;
    const auto id = w.gsi->request(client(header_of(mad).mgmt_class), {to, mad, 10ms, 1},
                                   [&](Status status, std::string_view, const GsiMessage* message) {
                                     ++answer.times;
                                     answer.status = status;
                                     if (message == nullptr) return;
                                     answer.from = message->from;
                                     std::memcpy(static_cast<void*>(&answer.mad),
                                                 message->bytes.data(), sizeof answer.mad);
                                   });
    EXPECT_TRUE(id);
    EXPECT_EQ(answer.times, 0) << "nothing is called back from inside the call";
    EXPECT_TRUE(w.comes([&] { return answer.times > 0; }));
    return answer;
  }
  Answer ask(const fabric::Port& end, const mad::Mad& mad) {
    GsiAddress to{w.index(0), {}};
    to.remote.lid = end.lid;
    return ask(to, mad);
  }
  Answer get_counters(const fabric::Port& end, std::uint8_t port_select = 1) {
    return ask(end, request(kPerf, kGet, mad::perf_attribute::kPortCounters, port_select));
  }
  fabric::Graph& graph() { return w.bench.fabric.graph(); }
  const fabric::Element& the_switch() { return graph().element_of(*graph().peer_of(w.port(0))); }
  fabric::Port& switch_port(std::uint32_t number) { return *graph().port_of(the_switch(), number); }

  ServicesWorld w;
  std::map<std::uint8_t, AgentId> clients;
};

class GsiClosedTest : public ClosedWorld {
 protected:
  GsiClosedTest()
      : ClosedWorld([](fabric::Fabric& fabric) { fabric = fabric::test::make_subnet("star:3"); }) {}
};

// The network without cables.
class GsiClosedIdealTest : public ClosedWorld {
 protected:
  GsiClosedIdealTest() : ClosedWorld({}) {}
};

TEST_F(GsiClosedTest, ASwitchAnswers) {
  const Answer answer = get_counters(switch_port(0));
  EXPECT_EQ(answer.status, Status::Ok);
  EXPECT_EQ(answer.mad.header.status, mad::mad_status::kOk);
  EXPECT_EQ(answer.mad.header.transaction_id, 0x1234u);
  EXPECT_EQ(answer.counters().receive_packets, 1u) << "the request itself, not yet the answer";
  EXPECT_EQ(answer.counters().transmit_packets, 0u);
  EXPECT_EQ(answer.from.port, w.index(0));
  EXPECT_EQ(answer.from.remote.lid, switch_port(0).lid);
  EXPECT_EQ(answer.from.remote.qpn, 1u);
  EXPECT_EQ(switch_port(1).counters.sent.packets, 1u);
  w.run(1s);
  EXPECT_EQ(w.gsi->counters().late_responses, 0u);
}

TEST_F(GsiClosedTest, ANodeThatNobodyHasOpenedAnswersAndStaysClosed) {
  EXPECT_EQ(get_counters(w.port(1)).counters().receive_packets, 1u);
  EXPECT_FALSE(w.gsi->is_open(w.index(1)));
  GsiAddress by_gid = w.address(0, 1, true);
  EXPECT_EQ(ask(by_gid, request(kPerf, kGet, mad::kClassPortInfo)).status, Status::Ok);
}

// The same counters, whoever carries the MADs.
TEST_F(GsiClosedTest, AnOpenNodeAnswersByItsQueuePair) {
  std::string reason;
  const auto agents =
      ElementAgents::create(*w.gsi, w.bench.fabric, w.bench.core().gmp_agents, reason);
  ASSERT_TRUE(agents) << reason;
  EXPECT_EQ(get_counters(w.port(1)).counters().receive_packets, 1u);
  ASSERT_EQ(w.ensure(w.node(1).name.c_str()), Status::Ok);
  const std::uint64_t received = w.gsi->counters().received;
  const Answer answer = get_counters(w.port(1));
  EXPECT_EQ(answer.status, Status::Ok);
  EXPECT_EQ(w.gsi->counters().received, received + 2) << "at both ends";
  EXPECT_EQ(answer.counters().receive_packets, 2u);
  EXPECT_EQ(answer.counters().transmit_packets, 1u);
  const Answer unit = ask(w.port(1), request(mad::mgmt_class::kDevMgt, kGet, 0x10));
  EXPECT_EQ(unit.mad.header.status, mad::mad_status::kOk);
}

TEST_F(GsiClosedTest, SysfsShowsWhatAClientHasCleared) {
  const drivers::CoreStatus status(w.bench.core());
  const auto packets = [&] { return status.counters(w.hca(1), w.port(1)).port.received.packets; };
  (void)get_counters(w.port(1));
  EXPECT_EQ(packets(), 1u);
  const Answer answer = ask(w.port(1), request(kPerf, kSet, mad::perf_attribute::kPortCounters));
  EXPECT_EQ(answer.counters().receive_packets, 0u);
  EXPECT_EQ(packets(), 0u);
  (void)get_counters(w.port(1));
  EXPECT_EQ(packets(), 1u);
}

TEST_F(GsiClosedTest, ABrokenWayLosesIt) {
  const std::uint8_t way = fabric::fresh_tables(graph(), the_switch()).port_to(w.port(1).lid);
  graph().switch_of(the_switch()).set_linear(w.port(1).lid, fabric::kNoPort);
  EXPECT_EQ(get_counters(w.port(1)).status, Status::Timeout);
  EXPECT_EQ(switch_port(1).counters.switch_relay_errors, 2u) << "both tries";
  graph().switch_of(the_switch()).set_linear(w.port(1).lid, way);
  EXPECT_EQ(get_counters(w.port(1)).status, Status::Ok);
  w.set_port(1, false);
  EXPECT_EQ(get_counters(w.port(1)).status, Status::Timeout);
}

TEST_F(GsiClosedIdealTest, AnHcaThatIsAwayOrSleepsDoesNotAnswer) {
  EXPECT_EQ(get_counters(w.port(1)).counters().receive_packets, 1u);
  w.power(1, io::SystemPower::Sleep);
  EXPECT_EQ(get_counters(w.port(1)).status, Status::Timeout);
  w.power(1, io::SystemPower::Working);
  EXPECT_EQ(get_counters(w.port(1)).status, Status::Ok);
  ASSERT_EQ(w.remove(1), Status::Ok);
  EXPECT_EQ(get_counters(w.port(1)).status, Status::Timeout);
}

TEST_F(GsiClosedTest, AnotherQKeyOrQueuePairIsNobodys) {
  GsiAddress to = w.address(0, 1);
  to.remote.qkey = 0x1234;
  EXPECT_EQ(ask(to, request(kPerf, kGet, mad::kClassPortInfo)).status, Status::Timeout);
  to = w.address(0, 1);
  to.remote.qpn = 77;
  EXPECT_EQ(ask(to, request(kPerf, kGet, mad::kClassPortInfo)).status, Status::Timeout);
}

// Baseboards have no agent. The administrator's node may be about to be opened, a switch has none.
TEST_F(GsiClosedTest, ClassesWithoutAnAgentAreRefused) {
  const auto status_of = [&](const fabric::Port& end, std::uint8_t mgmt_class) {
    const Answer answer = ask(end, request(mgmt_class, kGet, mad::kClassPortInfo));
    return answer.status == Status::Ok ? std::uint16_t{answer.mad.header.status} : 0xffff;
  };
  EXPECT_EQ(status_of(w.port(1), mad::mgmt_class::kBm), mad::mad_status::kBadVersion);
  EXPECT_EQ(status_of(w.port(1), mad::mgmt_class::kDevMgt), mad::mad_status::kOk);
  EXPECT_EQ(status_of(w.port(1), mad::mgmt_class::kSubnAdm), 0xffff);
  EXPECT_EQ(status_of(switch_port(0), mad::mgmt_class::kSubnAdm), mad::mad_status::kBadVersion);
}

// A program gets its answers before agents do.
TEST_F(GsiClosedTest, AnAnswerComesToProgramsFirst) {
  struct Program final : GsiFirst {
    bool on_mad(const GsiAddress& from, const mad::Mad& mad) override {
      came.emplace_back(from, header_of(mad));
      return true;
    }
    void on_port(const GsiPortEvent&) override {}
    void on_removal_over(const fabric::Hca&) override {}
    std::vector<std::pair<GsiAddress, mad::MadHeader>> came;
  } program;
  w.gsi->set_first(&program);
  GsiAddress to{w.index(0), {}};
  to.remote.lid = switch_port(0).lid;
  EXPECT_EQ(w.gsi->transmit(to, request(kPerf, kGet, mad::kClassPortInfo)), Status::Ok);
  EXPECT_EQ(program.came.size(), 0u);
  w.run();
  ASSERT_EQ(program.came.size(), 1u);
  EXPECT_EQ(program.came[0].first.remote.lid, switch_port(0).lid);
  EXPECT_EQ(program.came[0].second.method, mad::method::kGetResp);
  w.gsi->set_first(nullptr);
}

}  // namespace
}  // namespace ib::services::test
