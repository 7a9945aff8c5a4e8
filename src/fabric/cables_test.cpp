// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cables and switches that come and go in a subnet that is in use.
#include "fabric/cables.h"

#include "fabric/management/subnet_test.h"
#include "fabric/subnet_setup.h"
#include "fabric/topology/snapshot.h"

#include <algorithm>
#include <set>

namespace ib::fabric::test {
namespace {

using verbs::PortState;

Port& port_at(Subnet& t, std::uint32_t of_switch, std::uint32_t number) {
  return *t.graph().port_of(t.the_switch(of_switch), number);
}

Element& element_at(Subnet& t, std::uint32_t of_switch) {
  return t.graph().element_of(port_at(t, of_switch, 1));
}

bool has_change(const PortChanges& changes, const Graph& graph, const Port& port,
                std::uint32_t what) {
  return std::ranges::any_of(changes, [&](const PortChange& change) {
    return change.port == graph.index_of(port) && (change.what & what) != 0;
  });
}

void join(Subnet& t, Port& a, Port& b, CableKind kind = {}) {
  std::string reason;
  ASSERT_EQ(check_cable(t.fabric, a, b, reason), Status::Ok) << reason;
  plug(t.fabric, a, b, kind, t.changes);
}

TEST(Cables, APulledCableTakesBothEndsDownAndRoutesGoRoundIt) {
  Subnet t("fat-tree:levels=2,ports=4");
  Port& from = t.port_of_node(0);
  const Port& to = t.port_of_node(7);
  const Element& leaf = t.graph().element_of(*t.graph().peer_of(from));
  Port& up = *t.graph().port_of(leaf, fresh_tables(t.graph(), leaf).port_to(to.lid));
  const Port& far = *t.graph().peer_of(up);
  unplug(t.fabric, up, t.changes);
  for (const Port* end : {static_cast<const Port*>(&up), &far}) {
    EXPECT_EQ(end->state, PortState::Down);
    EXPECT_EQ(end->physical_state, kPolling);
    EXPECT_EQ(end->counters.link_downed, 1u);
    EXPECT_EQ(t.graph().peer_of(*end), nullptr);
    EXPECT_TRUE(has_change(t.changes, t.graph(), *end, change::kState));
    EXPECT_TRUE(t.graph().switch_of(t.graph().element_of(*end)).facts.port_state_change);
  }
  EXPECT_NE(walk_by_lid(t.graph(), from, {from.lid, to.lid}).port, nullptr) << "another way";
}

TEST(Cables, AnAdapterWithoutACableIsDownAndReachesNobody) {
  Subnet t("star:4");
  Port& port = t.port_of_node(1);
  unplug(t.fabric, port, t.changes);
  EXPECT_EQ(port.state, PortState::Down);
  EXPECT_FALSE(t.graph().reaches(port, t.port_of_node(2)));
  EXPECT_FALSE(t.graph().reaches(t.port_of_node(2), port));
  EXPECT_EQ(port.sm_lid, port.lid) << "it is alone, with an administrator of its own";
}

TEST(Cables, ACableHasTheWidthAndSpeedItWasMadeFor) {
  Subnet t("star:4");
  Port& port = t.port_of_node(1);
  Port& other = *t.graph().peer_of(port);
  unplug(t.fabric, port, t.changes);
  t.changes.clear();
  port.settings.speed_ext_enabled = 2;  // of a manager that saw the cable before
  join(t, other, port, {1, 4});
  EXPECT_EQ(port.settings.speed_ext_enabled, 0) << "else its manager writes what cannot be";
  for (const Port* end : {&port, &other}) {
    EXPECT_EQ(end->width, 1);
    EXPECT_EQ(end->speed, 4);
    EXPECT_EQ(end->state, PortState::Active);
    EXPECT_EQ(end->physical_state, kLinkUp);
    EXPECT_TRUE(has_change(t.changes, t.graph(), *end, change::kState));
  }
  EXPECT_EQ(port.sm_lid, t.port_of_node(0).sm_lid);
  EXPECT_NE(walk_by_lid(t.graph(), t.port_of_node(0), {t.port_of_node(0).lid, port.lid}).port,
            nullptr);
}

TEST(Cables, AnotherManagersSubnetGetsPortsInStateInit) {
  Subnet t("star:4", SubnetManagement::Programs);
  Port& port = t.port_of_node(1);
  Port& other = *t.graph().peer_of(port);
  unplug(t.fabric, port, t.changes);
  join(t, other, port);
  EXPECT_EQ(port.state, PortState::Init);
  EXPECT_EQ(other.state, PortState::Init);
  EXPECT_EQ(port.lid, 0);
}

TEST(Cables, OnTheIdealNetworkAPortComesBackWhereItWas) {
  Shape shape;
  shape.nodes = {"a", "b", "c"};
  Fabric fabric = *Fabric::create(shape);
  Port& a = fabric.nodes()[0].hcas[0].ports[0];
  Port& b = fabric.nodes()[1].hcas[0].ports[0];
  const Port& c = fabric.nodes()[2].hcas[0].ports[0];
  PortChanges changes;
  plug(fabric, a, b, {}, changes);
  EXPECT_EQ(a.state, PortState::Active);
  EXPECT_EQ(a.counters.link_downed, 1u);
  EXPECT_TRUE(fabric.graph().reaches(a, b));
  EXPECT_FALSE(fabric.graph().reaches(a, c));
  unplug(fabric, b, changes);
  EXPECT_EQ(b.state, PortState::Active);
  EXPECT_TRUE(fabric.graph().reaches(a, c));
}

// Which were with one of its ends, and reach it no more.
TEST(Cables, ThoseThatStayOnTheIdealNetworkKeepAManagerAndAnAdministrator) {
  Shape shape;
  shape.nodes = {"a", "b", "c", "d"};
  Fabric fabric = *Fabric::create(shape);
  const auto port = [&](std::size_t node) -> Port& {
    return fabric.nodes()[node].hcas[0].ports[0];
  };
  ASSERT_EQ(port(2).sm_lid, port(0).lid);
  PortChanges changes;
  plug(fabric, port(0), port(1), {1, 1}, changes);
  EXPECT_EQ(port(2).sm_lid, port(2).lid);
  EXPECT_EQ(port(3).sm_lid, port(2).lid);
  EXPECT_EQ(port(1).sm_lid, port(0).lid);
  EXPECT_TRUE(has_change(changes, fabric.graph(), port(3), change::kManager));
  unplug(fabric, port(0), changes);
  EXPECT_EQ(port(2).sm_lid, port(0).lid);
  EXPECT_EQ(port(0).best_speed, Port().best_speed) << "that of the cable has gone with it";
  EXPECT_EQ(port(0).width, Port().width);
}

TEST(Cables, OnlyPortsThatReachOthersNowAreReported) {
  Subnet t("fat-tree:levels=2,ports=4");
  t.graph().segment_of(t.port_of_node(0));
  t.changes.clear();
  unplug(t.fabric, t.port_of_node(3), t.changes);
  EXPECT_TRUE(has_change(t.changes, t.graph(), t.port_of_node(3), change::kSegment));
  EXPECT_FALSE(has_change(t.changes, t.graph(), t.port_of_node(0), change::kSegment));
}

// Of an adapter alone and of one in a subnet: both have the LID 1, say.
TEST(Cables, LidsAreUniqueWhenTwoSubnetsBecomeOne) {
  Subnet t("star:4");
  Port& alone = t.port_of_node(3);
  Port& other = *t.graph().peer_of(alone);
  unplug(t.fabric, alone, t.changes);
  ASSERT_EQ(t.graph().set_lid(alone, t.port_of_node(0).lid), Status::Ok);
  t.changes.clear();
  join(t, alone, other);
  EXPECT_NE(alone.lid, t.port_of_node(0).lid);
  EXPECT_TRUE(has_change(t.changes, t.graph(), alone, change::kLid));
  std::set<std::uint16_t> lids;
  for (std::size_t node = 0; node < 4; ++node) lids.insert(t.port_of_node(node).lid);
  EXPECT_EQ(lids.size(), 4u);
}

TEST(Cables, ThatCannotBeAreRefusedInWords) {
  Subnet t("star:3");
  Port& port = t.port_of_node(0);
  std::string reason;
  EXPECT_EQ(check_cable(t.fabric, port, port, reason), Status::InvalidParameter);
  EXPECT_NE(reason.find("both ends are port 1 of softib0 on "), std::string::npos) << reason;
  EXPECT_EQ(check_cable(t.fabric, port_at(t, 0, 0), port, reason), Status::InvalidParameter);
  EXPECT_NE(reason.find("inside of the switch"), std::string::npos) << reason;
  EXPECT_EQ(check_cable(t.fabric, port, t.port_of_node(1), reason), Status::AlreadyExists);
  EXPECT_NE(reason.find("has a cable already, to port 1 of "), std::string::npos) << reason;
  unplug(t.fabric, port, t.changes);
  t.fabric.hca_of(port)->present = false;
  EXPECT_EQ(check_cable(t.fabric, port, port_at(t, 0, 1), reason), Status::NotFound);
  EXPECT_NE(reason.find("softib0 is out"), std::string::npos) << reason;
}

TEST(Cables, LinkLayersDoNotMix) {
  Shape shape;
  shape.nodes = {"a", "b"};
  shape.link_layers = {{"b", 0, verbs::LinkLayer::Ethernet}};
  const Fabric fabric = *Fabric::create(shape);
  std::string reason;
  EXPECT_EQ(check_cable(fabric, fabric.nodes()[0].hcas[0].ports[0],
                        fabric.nodes()[1].hcas[0].ports[0], reason),
            Status::InvalidParameter);
  EXPECT_NE(reason.find("no cable joins two link layers"), std::string::npos) << reason;
}

TopologyElement new_switch(const char* name, std::uint32_t ports, std::uint64_t guid = 0) {
  TopologyElement what;
  what.kind = ElementKind::Switch;
  what.description = name;
  what.ports = ports;
  what.node_guid = guid;
  return what;
}

TEST(Switches, OneThatComesCanBeWiredAndRoutes) {
  Subnet t("star:3");
  std::string reason;
  const auto added = add_switch(t.fabric, new_switch("late", 4), reason);
  ASSERT_TRUE(added) << reason;
  EXPECT_NE(t.graph().ports_of(**added)[0].lid, 0);
  Port& moved = t.port_of_node(2);
  Port& freed = *t.graph().peer_of(moved);
  unplug(t.fabric, moved, t.changes);
  join(t, freed, *t.graph().port_of(**added, 1));
  join(t, moved, *t.graph().port_of(**added, 2));
  const Port& from = t.port_of_node(0);
  EXPECT_NE(walk_by_lid(t.graph(), t.port_of_node(0), {from.lid, moved.lid}).port, nullptr);
  EXPECT_EQ(snapshot_of(t.fabric).cables.size(), 4u);
}

TEST(Switches, OneThatIsRemovedIsGoneWithItsCables) {
  Subnet t("fat-tree:levels=2,ports=4");
  const std::size_t elements = snapshot_of(t.fabric).elements.size();
  Port& at_leaf = *t.graph().peer_of(t.port_of_node(0));
  Element& leaf = t.graph().element_of(at_leaf);
  const std::string name = leaf.description;
  const std::uint64_t guid = leaf.node_guid;
  remove_switch(t.fabric, leaf, t.changes);
  EXPECT_EQ(t.port_of_node(0).state, PortState::Down);
  const Topology after = snapshot_of(t.fabric);
  EXPECT_EQ(after.elements.size(), elements - 1);
  EXPECT_EQ(after.cables.size(), 12u);
  std::string reason;
  const auto back = add_switch(t.fabric, new_switch(name.c_str(), 4), reason);
  ASSERT_TRUE(back) << reason;
  EXPECT_EQ((*back)->node_guid, guid) << "the same one";
  EXPECT_EQ(t.graph().port_of(**back, 1)->state, PortState::Down);
}

TEST(Switches, WithoutPowerLinksGoAndWithItTheyComeBack) {
  Subnet t("fat-tree:levels=2,ports=4");
  Port& at_leaf = *t.graph().peer_of(t.port_of_node(0));
  Element& leaf = t.graph().element_of(at_leaf);
  set_power(t.fabric, leaf, false, t.changes);
  EXPECT_EQ(t.port_of_node(0).state, PortState::Down);
  EXPECT_EQ(t.port_of_node(0).physical_state, kPolling);
  set_enabled(t.fabric, t.port_of_node(0), false, t.changes);
  set_enabled(t.fabric, t.port_of_node(0), true, t.changes);
  EXPECT_EQ(t.port_of_node(0).state, PortState::Down) << "nobody answers";
  set_enabled(t.fabric, at_leaf, false, t.changes);
  set_enabled(t.fabric, at_leaf, true, t.changes);
  EXPECT_EQ(at_leaf.state, PortState::Down) << "it has no power itself";
  set_power(t.fabric, leaf, true, t.changes);
  EXPECT_EQ(t.port_of_node(0).state, PortState::Active);
  const std::uint16_t lid = t.port_of_node(7).lid;
  EXPECT_NE(walk_by_lid(t.graph(), t.port_of_node(0), {t.port_of_node(0).lid, lid}).port, nullptr);
}

TEST(Switches, AfterPowerNothingOfAManagerIsLeft) {
  Subnet t("star:2", SubnetManagement::Programs);
  Element& element = element_at(t, 0);
  Port& manager = port_at(t, 0, 0);
  t.graph().take_lid(manager, 9, 0);
  manager.settings.m_key = 5;
  t.graph().switch_of(element).set_linear(3, 1);
  set_power(t.fabric, element, false, t.changes);
  EXPECT_EQ(manager.lid, 0) << "no traps come from it";
  set_power(t.fabric, element, true, t.changes);
  EXPECT_EQ(manager.settings.m_key, 0u);
  EXPECT_TRUE(t.graph().switch_of(element).linear.empty());
  EXPECT_EQ(port_at(t, 0, 1).state, PortState::Init);
}

TEST(Switches, ThatCannotBeAreRefusedInWords) {
  Subnet t("star:2");
  std::string reason;
  EXPECT_FALSE(add_switch(t.fabric, new_switch("big", 255), reason));
  EXPECT_NE(reason.find("a switch has 1 to 254"), std::string::npos) << reason;
  EXPECT_FALSE(add_switch(t.fabric, new_switch("twice", 4, t.port_of_node(0).guid), reason));
  EXPECT_NE(reason.find("an element has the GUID"), std::string::npos) << reason;
}

}  // namespace
}  // namespace ib::fabric::test
