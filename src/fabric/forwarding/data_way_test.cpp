// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/forwarding/data_way.h"

#include "fabric/key_violation.h"
#include "fabric/management/subnet_test.h"
#include "fabric/subnet_setup.h"
#include "mad/attributes.h"

#include <algorithm>

namespace ib::fabric::test {
namespace {

using verbs::PortState;
using verbs::control::Cause;

constexpr std::uint16_t kGroup = 0xc005;

// Eight nodes at four leaves, with two spines above.
struct Tree : Subnet {
  Tree() : Subnet("fat-tree:levels=2,ports=4") {}
  DataWay way(std::size_t from, std::size_t to, std::uint16_t pkey = 0xffff) {
    return find_data_way(graph(), port_of_node(from), port_of_node(to).lid, pkey);
  }
  Port& at(const DataWay& way, std::size_t i) { return *graph().port(way.ports[i]); }
  std::size_t last() const { return fabric.nodes().size() - 1; }
  // By every port of each switch.
  void send_group_everywhere() {
    PortMask all;
    all.fill(~std::uint64_t{0});
    for (std::uint32_t i = 0; i < graph().element_count(); ++i) {
      const Element& element = graph().element(i);
      if (element.is_switch()) graph().switch_of(element).groups[kGroup] = all;
    }
  }
};

TEST(DataWay, LeadsThroughTheTablesFromPortToPort) {
  Tree t;
  const DataWay way = t.way(0, t.last());
  ASSERT_EQ(way.end, &t.port_of_node(t.last()));
  EXPECT_EQ(way.stop, Cause::None);
  EXPECT_EQ(way.mtu, verbs::Mtu::B4096);
  EXPECT_EQ(way.levels, 0xffff);
  ASSERT_GE(way.ports.size(), 6u) << "more than one switch";
  EXPECT_EQ(&t.at(way, 0), &t.port_of_node(0));
  EXPECT_EQ(&t.at(way, way.ports.size() - 1), way.end);
  for (std::size_t i = 0; i < way.ports.size(); i += 2) {
    EXPECT_EQ(t.graph().peer_of(t.at(way, i)), &t.at(way, i + 1));
  }
}

// Several LIDs of a port would be of no use if one cable were part of all their ways.
TEST(DataWay, TheLidsOfAPortHaveWaysOverDifferentSpines) {
  Tree t;
  constexpr std::uint16_t kLid = 0x100;
  Port& to = t.port_of_node(t.last());
  t.graph().take_lid(to, kLid, 1);
  mark_stale(t.fabric, to);
  const DataWay one = find_data_way(t.graph(), t.port_of_node(0), kLid, 0xffff);
  const DataWay other = find_data_way(t.graph(), t.port_of_node(0), kLid + 1, 0xffff);
  ASSERT_EQ(one.end, &to);
  ASSERT_EQ(other.end, &to);
  EXPECT_NE(one.ports[3], other.ports[3]);
  EXPECT_EQ(t.graph().find_port(kLid + 1), &to);
  EXPECT_EQ(t.graph().find_port(kLid + 2), nullptr);
}

TEST(DataWay, ToItselfPassesNoPort) {
  Tree t;
  const DataWay way = t.way(0, 0);
  EXPECT_EQ(way.end, &t.port_of_node(0));
  EXPECT_TRUE(way.ports.empty());
}

TEST(DataWay, EndsWhereATableHasNoPort) {
  Tree t;
  const DataWay whole = t.way(0, t.last());
  Port& in = t.at(whole, 3);  // of the second switch
  fresh_tables(t.graph(), t.graph().element_of(in))
      .set_linear(t.port_of_node(t.last()).lid, kNoPort);
  const DataWay way = t.way(0, t.last());
  EXPECT_EQ(way.end, nullptr);
  EXPECT_EQ(way.stop, Cause::WayMissing);
  EXPECT_EQ(way.stop_at, t.graph().index_of(in));
  EXPECT_EQ(way.ports.size(), 4u) << "packets come to the second switch";
}

TEST(DataWay, EndsInACircle) {
  Tree t;
  const DataWay whole = t.way(0, t.last());
  Port& back = t.at(whole, 3);
  fresh_tables(t.graph(), t.graph().element_of(back))
      .set_linear(t.port_of_node(t.last()).lid, static_cast<std::uint8_t>(back.number));
  EXPECT_EQ(t.way(0, t.last()).stop, Cause::WayInCircle);
}

TEST(DataWay, NeedsLinksThatAreActive) {
  Tree t;
  const DataWay whole = t.way(0, t.last());
  Port& out = t.at(whole, 2);
  out.state = PortState::Armed;  // sends nothing yet
  EXPECT_EQ(t.way(0, t.last()).stop, Cause::WayDown);
  EXPECT_EQ(t.way(0, t.last()).stop_at, t.graph().index_of(out));
  out.state = PortState::Active;
  t.at(whole, 3).state = PortState::Armed;  // takes what comes
  EXPECT_EQ(t.way(0, t.last()).stop, Cause::None);
  t.at(whole, 3).state = PortState::Init;
  EXPECT_EQ(t.way(0, t.last()).stop, Cause::WayDown);
}

TEST(DataWay, SwitchesThatEnforcePartitionsDropOtherKeys) {
  Tree t;
  const DataWay whole = t.way(0, t.last());
  for (const auto& [place, direction] : {std::pair{1u, kEnforcesIn}, std::pair{2u, kEnforcesOut}}) {
    Port& port = t.at(whole, place);
    port.settings.enforcement = direction;
    port.pkeys = {0x8005};
    EXPECT_EQ(t.way(0, t.last(), 0x8006).stop, Cause::WayPartition) << place;
    EXPECT_EQ(t.way(0, t.last(), 0x8006).stop_at, t.graph().index_of(port));
    EXPECT_EQ(t.way(0, t.last(), 0x0005).stop, Cause::None) << "a limited member";
    port.pkeys = {0x0005};
    EXPECT_EQ(t.way(0, t.last(), 0x0005).stop, Cause::None)
        << "two limited members: the receiver drops it";
    port.settings.enforcement = 0;
  }
}

TEST(DataWay, HasTheLeastMtuAndTheLanesOfAllLinks) {
  Tree t;
  const DataWay whole = t.way(0, t.last());
  Port& out = t.at(whole, 2);
  out.mtu = verbs::Mtu::B1024;
  mad::SmpData table{};
  table.fill(0xff);  // no lane
  table[1] = 0x0f;   // but for service level 2
  t.graph().tables().set_sl_to_vl(t.graph().index_of(out), t.at(whole, 1).number, table);
  const DataWay way = t.way(0, t.last());
  EXPECT_EQ(way.mtu, verbs::Mtu::B1024);
  EXPECT_EQ(way.levels, 1u << 2);
  table.fill(0xff);
  t.graph().tables().set_sl_to_vl(t.graph().index_of(out), t.at(whole, 1).number, table);
  EXPECT_EQ(t.way(0, t.last()).stop, Cause::WayLane);
}

TEST(DataWay, ALaneThatAPortDoesNotUseIsNone) {
  Tree t;
  Port& out = t.at(t.way(0, t.last()), 2);
  out.settings.operational_vls = 2;  // lanes 0 and 1
  EXPECT_EQ(t.way(0, t.last()).levels, 0x0303);
}

// Joins the ports of two nodes at one leaf, and nobody else.
TEST(GroupWays, AreThoseOfTheMulticastTables) {
  Tree t;
  const Element& leaf = t.graph().element_of(*t.graph().peer_of(t.port_of_node(0)));
  const std::uint32_t one = t.graph().peer_of(t.port_of_node(0))->number;
  const std::uint32_t other = t.graph().peer_of(t.port_of_node(1))->number;
  ASSERT_EQ(t.graph().peer_of(t.port_of_node(1))->element,
            t.graph().peer_of(t.port_of_node(0))->element);
  PortMask& mask = t.graph().switch_of(leaf).groups[kGroup];
  mask[0] = std::uint64_t{1} << one | std::uint64_t{1} << other;
  const GroupWays ways = find_group_ways(t.graph(), t.port_of_node(0), kGroup, 0xffff);
  ASSERT_EQ(ways.ends.size(), 1u) << "not back to the sender";
  EXPECT_EQ(ways.ends[0].end, &t.port_of_node(1));
  EXPECT_EQ(ways.ports.size(), 4u);
  EXPECT_TRUE(find_group_ways(t.graph(), t.port_of_node(0), kGroup + 1, 0xffff).ends.empty());
}

// Tables that lead in a circle end.
TEST(GroupWays, ComeToASwitchOnce) {
  Tree t;
  t.send_group_everywhere();
  const GroupWays ways = find_group_ways(t.graph(), t.port_of_node(0), kGroup, 0xffff);
  EXPECT_EQ(ways.ends.size(), t.fabric.nodes().size() - 1);
}

// Refusals matter: such a port may let packets pass later.
TEST(GroupWays, NamePortsThatLetNothingPass) {
  Tree t;
  t.send_group_everywhere();
  Port& in = t.at(t.way(0, t.last()), 3);
  in.state = PortState::Init;
  const GroupWays ways = find_group_ways(t.graph(), t.port_of_node(0), kGroup, 0xffff);
  EXPECT_NE(std::ranges::find(ways.refused, t.graph().index_of(in)), ways.refused.end());
}

TEST(DataWay, OfManyHopsIsNoCircle) {
  Subnet t("torus:2x130,hosts=1");
  const std::size_t far = t.fabric.nodes().size() / 2;  // half of the long ring away
  const DataWay way = find_data_way(t.graph(), t.port_of_node(0), t.port_of_node(far).lid, 0xffff);
  EXPECT_EQ(way.stop, Cause::None);
  EXPECT_GT(way.ports.size(), 128u);
}

TEST(ForwardingMarks, ComeWithWhatChangesWays) {
  Tree t;
  (void)t.way(0, t.last());
  (void)t.graph().take_forwarding_marks();
  const Element& leaf = t.graph().element_of(*t.graph().peer_of(t.port_of_node(0)));
  const auto set = [&](std::uint16_t attribute, std::uint32_t modifier, auto&& fill) {
    mad::Smp smp = Subnet::along({1}, mad::method::kSet, attribute, modifier);
    fill(smp);
    return t.ask(smp).header.status & 0x7fff;
  };
  mad::SmpData block{};
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = t.graph().switch_of(leaf).linear[i];
  }
  EXPECT_EQ(set(mad::smp_attribute::kLinearForwarding, 0, [&](auto& smp) { smp.data = block; }), 0);
  EXPECT_TRUE(t.graph().take_forwarding_marks().empty()) << "the same table";
  block[t.port_of_node(t.last()).lid] = 1;
  EXPECT_EQ(set(mad::smp_attribute::kLinearForwarding, 0, [&](auto& smp) { smp.data = block; }), 0);
  EXPECT_EQ(t.graph().take_forwarding_marks(),
            std::vector{t.graph().peer_of(t.port_of_node(0))->element});
  PortChanges changes;
  Port& cable = *t.graph().port(t.way(0, 0).ports.empty() ? leaf.first_port + 1 : 0);
  lose_link(t.fabric, cable, changes);
  EXPECT_FALSE(t.graph().take_forwarding_marks().empty());
}

}  // namespace
}  // namespace ib::fabric::test
