// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests of general management to elements where nobody has queue pair 1.
#include "fabric/management/gmp_agents.h"

#include "fabric/management/subnet_test.h"
#include "fabric/subnet_setup.h"
#include "mad/class_port_info.h"
#include "mad/mgmt_class.h"
#include "mad/perf.h"
#include "platform/virtual_executor.h"

namespace ib::fabric::test {
namespace {

namespace status = mad::mad_status;
using mad::method::kGet;
using mad::method::kSet;

struct World : Subnet {
  using Subnet::Subnet;
  platform::VirtualExecutor executor;
  GmpAgents agents{fabric.graph(), executor, {}};

  static mad::Mad request(std::uint8_t mgmt_class, std::uint8_t method = kGet,
                          std::uint16_t attribute = mad::kClassPortInfo) {
    mad::PerfMad mad;
    mad.header = {
        mad::kBaseVersion, mgmt_class, mad::kClassVersion, method, 0, 0, 9, attribute, 0, 0};
    return std::bit_cast<mad::Mad>(mad);
  }
  // From the port of node 0 by LID. Returns the status of the answer; nothing: none came.
  std::optional<std::uint16_t> exchange(const Port& end, const mad::Mad& mad,
                                        std::uint16_t pkey = 0xffff) {
    Port& from = port_of_node(0);
    const auto answer = agents.exchange(from, end, {from.lid, end.lid}, pkey, mad);
    if (!answer) return std::nullopt;
    return std::bit_cast<mad::PerfMad>(*answer).header.status;
  }
  std::optional<std::uint16_t> get_info(const Port& end) {
    return exchange(end, request(mad::mgmt_class::kPerf));
  }
};

TEST(GmpAgents, ASwitchAnswersByItsPort0) {
  World w("star:4");
  Port& manager = *w.graph().port_of(w.the_switch(), 0);
  Port& first = *w.graph().port_of(w.the_switch(), 1);
  EXPECT_EQ(w.get_info(manager), status::kOk);
  // There and back, at both ends of the cable.
  for (const Port* port : {&first, &w.port_of_node(0)}) {
    EXPECT_EQ(port->counters.sent.packets, 1u);
    EXPECT_EQ(port->counters.received.packets, 1u);
  }
}

TEST(GmpAgents, AnAdapterAnswersBehindSwitches) {
  World w("fat-tree:levels=2,ports=4");
  const Port& far = w.port_of_node(7);
  EXPECT_EQ(w.get_info(far), status::kOk);
  EXPECT_EQ(far.counters.sent.data, kMadWords);
  // The first switch forgets the LID.
  const Port& leaf_port = *w.graph().peer_of(w.port_of_node(0));
  Switch& leaf = fresh_tables(w.graph(), w.graph().element_of(leaf_port));
  const std::uint8_t way = leaf.port_to(far.lid);
  leaf.set_linear(far.lid, kNoPort);
  EXPECT_EQ(w.get_info(far), std::nullopt);
  leaf.set_linear(far.lid, way);
  EXPECT_EQ(w.get_info(far), status::kOk);
  // The way back has another end: the answer gets lost.
  leaf.set_linear(w.port_of_node(0).lid, kNoPort);
  EXPECT_EQ(w.get_info(far), std::nullopt);
}

TEST(GmpAgents, ACableThatIsDownLosesIt) {
  World w("star:4");
  set_enabled(w.fabric, *w.graph().port_of(w.the_switch(), 3), false, w.changes);
  EXPECT_EQ(w.get_info(w.port_of_node(2)), std::nullopt);
  EXPECT_EQ(w.graph().port_of(w.the_switch(), 3)->counters.transmit_discards, 1u);
}

TEST(GmpAgents, APortThatIsNotArmedTakesNone) {
  World w("star:4");
  w.port_of_node(2).state = verbs::PortState::Init;
  EXPECT_EQ(w.get_info(w.port_of_node(2)), std::nullopt);
  w.port_of_node(2).state = verbs::PortState::Armed;
  EXPECT_EQ(w.get_info(w.port_of_node(2)), status::kOk);
}

TEST(GmpAgents, PartitionsAreSeparate) {
  World w("star:4");
  Port& end = w.port_of_node(1);
  end.pkeys = {0x7fff, 0, 0x8001};
  const mad::Mad mad = World::request(mad::mgmt_class::kPerf);
  EXPECT_EQ(w.exchange(end, mad, 0xffff), status::kOk);
  EXPECT_EQ(w.exchange(end, mad, 0x7fff), std::nullopt) << "two limited members";
  EXPECT_EQ(w.exchange(end, mad, 0x0001), status::kOk);
  EXPECT_EQ(w.exchange(end, mad, 0x8002), std::nullopt);
  EXPECT_EQ(w.exchange(end, mad, 0x8000), std::nullopt) << "0 is no P_Key";
}

TEST(GmpAgents, TheIdealNetworkIsOneHop) {
  Fabric fabric = *Fabric::create({{"node0", "node1"}});
  platform::VirtualExecutor executor;
  GmpAgents agents(fabric.graph(), executor, {});
  Port& from = fabric.nodes()[0].hcas[0].ports[0];
  const Port& end = fabric.nodes()[1].hcas[0].ports[0];
  const auto answer = agents.exchange(from, end, {from.lid, end.lid}, 0xffff,
                                      World::request(mad::mgmt_class::kPerf));
  ASSERT_TRUE(answer);
  EXPECT_EQ(from.counters.sent.packets, 1u);
  EXPECT_EQ(from.counters.received.packets, 1u);
  EXPECT_EQ(end.counters.sent.data, kMadWords);
}

TEST(GmpAgents, ClassesWithoutAnAgentAreRefused) {
  World w("star:2");
  const Port& end = w.port_of_node(1);
  for (unsigned number = 0; number < 0x100; ++number) {
    const auto mgmt_class = static_cast<std::uint8_t>(number);
    const auto answer = w.exchange(end, World::request(mgmt_class));
    if (!mad::is_general_class(mgmt_class)) {
      EXPECT_EQ(answer, std::nullopt) << number;
      continue;
    }
    const bool has_agent =
        mgmt_class == mad::mgmt_class::kPerf || mgmt_class == mad::mgmt_class::kDevMgt;
    EXPECT_EQ(answer, has_agent ? status::kOk : status::kBadVersion) << number;
  }
  mad::Mad other_version = World::request(mad::mgmt_class::kPerf);
  other_version[offsetof(mad::MadHeader, class_version)] = std::byte{2};
  EXPECT_EQ(w.exchange(end, other_version), status::kBadVersion);
  other_version = World::request(mad::mgmt_class::kPerf);
  other_version[offsetof(mad::MadHeader, base_version)] = std::byte{2};
  EXPECT_EQ(w.exchange(end, other_version), status::kBadVersion);
}

TEST(GmpAgents, OnlyGetAndSetAreAnswered) {
  World w("star:2");
  const Port& end = w.port_of_node(1);
  for (unsigned method = 0; method < 0x100; ++method) {
    const auto answer =
        w.exchange(end, World::request(mad::mgmt_class::kPerf, static_cast<std::uint8_t>(method)));
    EXPECT_EQ(answer.has_value(), method == kGet || method == kSet) << method;
  }
  mad::Mad segment = World::request(mad::mgmt_class::kDevMgt);
  segment[24] = std::byte{1};  // of RMPP
  segment[26] = std::byte{1};  // active
  EXPECT_EQ(w.exchange(end, segment), std::nullopt);
}

}  // namespace
}  // namespace ib::fabric::test
