// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SMPs through subnets with switches: directed, by LID, both; what Sets change; keys and leases.
#include "fabric/management/subnet_test.h"
#include "fabric/subnet_setup.h"
#include "mad/smp.h"

namespace ib::fabric::test {
namespace {

namespace id = mad::smp_attribute;
using mad::method::kGet;
using mad::method::kSet;
using verbs::PortState;

// Node 0 at port 1 of the switch, node 1 at port 2 and so on.
TEST(Smi, ADirectedRouteLeadsThroughASwitch) {
  Subnet t("star:4");
  const auto to_switch = t.ask(Subnet::along({1}, kGet, id::kNodeInfo));
  EXPECT_EQ(to_switch.header.method, mad::method::kGetResp);
  const auto info = t.read<mad::NodeInfo>(to_switch);
  EXPECT_EQ(info.node_type, 2);
  EXPECT_EQ(info.num_ports, 4);
  EXPECT_EQ(info.local_port, 1);
  const auto to_node = t.ask(Subnet::along({1, 3}, kGet, id::kNodeInfo));
  EXPECT_EQ(t.read<mad::NodeInfo>(to_node).node_guid, t.fabric.nodes()[2].hcas[0].node_guid);
  EXPECT_EQ(t.ask(Subnet::along({1, 9}, kGet, id::kNodeInfo)).header.method, 0) << "no such port";
  EXPECT_EQ(t.ask(Subnet::along({1, 0}, kGet, id::kNodeInfo)).header.method, 0);
}

TEST(Smi, AnSmpByLidFollowsTheTables) {
  Subnet t("fat-tree:levels=2,ports=4");
  const Port& far = t.port_of_node(7);
  const PacketLids lids{t.port_of_node(0).lid, far.lid};
  auto answer = t.ask(Subnet::by_lid(kGet, id::kNodeInfo), lids);
  EXPECT_EQ(t.read<mad::NodeInfo>(answer).port_guid, far.guid);
  ASSERT_EQ(t.came.size(), 1u);
  EXPECT_EQ(t.came[0].lids.source, far.lid);
  EXPECT_EQ(t.came[0].lids.destination, t.port_of_node(0).lid);
  // The first switch forgets the LID: the request is lost there.
  const Port& leaf_port = *t.graph().peer_of(t.port_of_node(0));
  fresh_tables(t.graph(), t.graph().element_of(leaf_port)).set_linear(far.lid, kNoPort);
  answer = t.ask(Subnet::by_lid(kGet, id::kNodeInfo), lids);
  EXPECT_EQ(answer.header.method, 0);
  EXPECT_EQ(leaf_port.counters.switch_relay_errors, 1u);
}

TEST(Smi, TheIdealNetworkHasWaysByLidOnly) {
  Fabric fabric = *Fabric::create({.nodes = {"a", "b"}});
  Port& from = fabric.nodes()[0].hcas[0].ports[0];
  const Port& to = fabric.nodes()[1].hcas[0].ports[0];
  EXPECT_EQ(walk_by_lid(fabric.graph(), from, {from.lid, to.lid}).port, &to);
  EXPECT_EQ(walk_by_lid(fabric.graph(), from, {from.lid, 99}).port, nullptr);
  auto smp = Subnet::along({1}, kGet, id::kNodeInfo);
  EXPECT_EQ(walk_smp(fabric.graph(), from, smp, {}).port, nullptr) << "no cable to go along";
}

TEST(Smi, ADirectedRouteMayBeginBehindALid) {
  Subnet t("star:4");
  const Port& manager = *t.graph().port_of(t.the_switch(), 0);
  const std::uint16_t own = t.port_of_node(0).lid;
  auto smp = Subnet::along({3}, kGet, id::kNodeInfo);
  smp.reserved[0] = static_cast<std::uint8_t>(own >> 8);
  smp.reserved[1] = static_cast<std::uint8_t>(own);
  const auto answer = t.ask(smp, {own, manager.lid});
  EXPECT_EQ(t.read<mad::NodeInfo>(answer).node_guid, t.fabric.nodes()[2].hcas[0].node_guid);
}

TEST(Smi, ADirectedRouteMayEndBeforeALid) {
  Subnet t("star:4");
  auto smp = Subnet::along({1}, kGet, id::kNodeInfo);
  const std::uint16_t lid = t.port_of_node(3).lid;
  smp.reserved[2] = static_cast<std::uint8_t>(lid >> 8);
  smp.reserved[3] = static_cast<std::uint8_t>(lid);
  const auto answer = t.ask(smp);
  EXPECT_EQ(t.read<mad::NodeInfo>(answer).node_guid, t.fabric.nodes()[3].hcas[0].node_guid);
}

TEST(Smi, ACableThatIsDownLosesIt) {
  Subnet t("star:4");
  set_enabled(t.fabric, *t.graph().port_of(t.the_switch(), 3), false, t.changes);
  EXPECT_EQ(t.ask(Subnet::along({1, 3}, kGet, id::kNodeInfo)).header.method, 0);
  EXPECT_EQ(t.port_of_node(2).state, PortState::Down);
  EXPECT_EQ(t.graph().port_of(t.the_switch(), 3)->counters.transmit_discards, 1u);
}

// The steps of a subnet manager.
TEST(Smi, AManagerTakesAPortFromInitToActive) {
  Subnet t("star:2", SubnetManagement::Programs);
  Port& port = t.port_of_node(1);
  EXPECT_EQ(port.state, PortState::Init);
  EXPECT_EQ(port.lid, 0);
  const auto get = Subnet::along({1, 2}, kGet, id::kPortInfo);
  auto info = t.read<mad::PortInfo>(t.ask(get));
  const auto set = [&](unsigned state) {
    auto smp = Subnet::along({1, 2}, kSet, id::kPortInfo);
    info.lid = 5;
    info.master_sm_lid = 1;
    info.m_key_protect_lmc = 0;
    info.speed_supported_state = static_cast<std::uint8_t>(state);
    info.physical_down_default = 2;
    Subnet::write(smp, info);
    return t.ask(smp);
  };
  EXPECT_EQ(set(4).header.status & ~mad::kDirectionBit, mad::mad_status::kBadField)
      << "Init to Active";
  EXPECT_EQ(port.lid, 0) << "a refusal changes nothing";
  EXPECT_EQ(set(3).header.status, mad::kDirectionBit);
  EXPECT_EQ(port.state, PortState::Armed);
  EXPECT_EQ(port.lid, 5);
  const auto answer = t.read<mad::PortInfo>(set(4));
  EXPECT_EQ(answer.speed_supported_state & 15, 4) << "the answer has what is now";
  EXPECT_EQ(port.state, PortState::Active);
  EXPECT_EQ(t.graph().find_port(5), &port);
  // Down retrains the link.
  EXPECT_EQ(set(1).header.status, mad::kDirectionBit);
  EXPECT_EQ(port.state, PortState::Init);
}

TEST(Smi, TablesOfASwitchAreReadAsTheyWereWritten) {
  Subnet t("star:2", SubnetManagement::Programs);
  auto set = Subnet::along({1}, kSet, id::kLinearForwarding, 1);
  mad::SmpData block;
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::uint8_t>(i % 3);
  Subnet::write(set, block);
  EXPECT_EQ(t.ask(set).data, block);
  EXPECT_EQ(t.ask(Subnet::along({1}, kGet, id::kLinearForwarding, 1)).data, block);
  mad::SmpData empty;
  empty.fill(kNoPort);
  EXPECT_EQ(t.ask(Subnet::along({1}, kGet, id::kLinearForwarding, 0)).data, empty);
  EXPECT_EQ(t.ask(Subnet::along({1}, kGet, id::kLinearForwarding, 768)).header.status &
                ~mad::kDirectionBit,
            mad::mad_status::kBadField);

  auto groups = Subnet::along({1}, kSet, id::kMulticastForwarding, 2);
  std::array<Be16, mad::kGroupsPerBlock> masks{};
  masks[5] = 0x0006;
  Subnet::write(groups, masks);
  (void)t.ask(groups);
  const auto read = t.ask(Subnet::along({1}, kGet, id::kMulticastForwarding, 2));
  EXPECT_EQ((t.read<std::array<Be16, mad::kGroupsPerBlock>>(read)[5]), 0x0006);
  EXPECT_EQ(t.graph().switch_of(t.the_switch()).groups.size(), 1u);
}

TEST(Smi, PartitionsOfAPortAreItsManagersToSet) {
  Subnet t("star:2", SubnetManagement::Programs);
  auto set = Subnet::along({1, 2}, kSet, id::kPkeyTable);
  std::array<Be16, mad::kPkeysPerBlock> pkeys{};
  pkeys[0] = 0xffff;
  pkeys[3] = 0x8001;
  Subnet::write(set, pkeys);
  (void)t.ask(set);
  const std::vector<std::uint16_t> expected{0xffff, 0, 0, 0x8001};
  EXPECT_EQ(t.port_of_node(1).pkeys, expected);
  ASSERT_EQ(t.changes.size(), 1u);
  EXPECT_EQ(t.changes[0].what, change::kPkeys);
}

TEST(Smi, AKeyLocksOthersOutUntilItsLeaseEnds) {
  Subnet t("star:2", SubnetManagement::Programs);
  Port& port = t.port_of_node(1);
  port.settings.m_key = 0x42;
  port.settings.m_key_protect = 2;
  port.settings.m_key_lease = 10;
  const auto get = Subnet::along({1, 2}, kGet, id::kPortInfo);
  EXPECT_EQ(t.ask(get).header.method, 0);
  EXPECT_EQ(t.bad_keys, 1);
  EXPECT_EQ(port.settings.m_key_violations, 1);
  t.now += std::chrono::seconds(9);
  EXPECT_EQ(t.ask(get).header.method, 0);
  // The manager is alive: the lease does not run any more.
  auto with_key = get;
  with_key.m_key = 0x42;
  EXPECT_EQ(t.ask(with_key).header.method, mad::method::kGetResp);
  t.now += std::chrono::seconds(9);
  EXPECT_EQ(t.ask(get).header.method, 0) << "it begins again";
  t.now += std::chrono::seconds(10);
  const auto answer = t.ask(get);
  EXPECT_EQ(answer.header.method, mad::method::kGetResp);
  EXPECT_EQ(std::uint64_t{t.read<mad::PortInfo>(answer).m_key}, 0x42u);
}

TEST(Smi, WhatIsForAManagerGoesToItOrIsRefused) {
  Subnet t("star:2");
  t.takes_at = t.graph().index_of(t.port_of_node(0));
  const auto answer = t.ask(Subnet::along({1, 2}, kGet, id::kSmInfo));
  EXPECT_EQ(answer.header.method, mad::method::kGetResp);
  EXPECT_EQ(answer.header.status & ~mad::kDirectionBit, mad::mad_status::kAttributeNotSupported);
  // At the own port there is one.
  const auto own = t.ask(Subnet::along({}, kGet, id::kSmInfo));
  EXPECT_EQ(own.header.method, kGet) << "the request itself";
}

TEST(Smi, CountsAtEachHop) {
  Subnet t("star:2");
  const Port& in = *t.graph().port_of(t.the_switch(), 1);
  const Port& out = *t.graph().port_of(t.the_switch(), 2);
  (void)t.ask(Subnet::along({1, 2}, kGet, id::kNodeInfo));
  for (const Port* port : {&in, &out, static_cast<const Port*>(&t.port_of_node(1))}) {
    EXPECT_EQ(port->counters.sent.packets, 1u);
    EXPECT_EQ(port->counters.received.packets, 1u);
    EXPECT_EQ(port->counters.sent.data, kMadWords);
  }
}

}  // namespace
}  // namespace ib::fabric::test
