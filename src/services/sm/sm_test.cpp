// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet manager at work over the fabric.
#include "services/sm/sm_checks_test.h"

#include <chrono>

namespace ib::services {
namespace {

using namespace std::chrono_literals;
using test::World;
namespace attribute = mad::smp_attribute;

std::string settled(World& world, std::size_t seat = 0, const test::Exceptions& except = {}) {
  if (!world.settle(*world.seats[seat].manager)) return "it is not set up in time";
  return test::wrong_with(world, world.seats[seat].port, except);
}

sm::Settings with_priority(std::uint8_t priority) {
  sm::Settings settings;
  settings.priority = priority;
  return settings;
}

TEST(SubnetManager, BringsPresetsUp) {
  for (const auto& [preset, routing] : {std::pair{"star:8", "fat-tree"},
                                        {"fat-tree:hcas=18,ports=6", "fat-tree"},
                                        {"fat-tree:hcas=40,ports=6", "fat-tree"},
                                        {"torus:4x4", "up/down"},
                                        {"torus:3x3x3", "up/down"},
                                        {"dragonfly:a=4,p=2,h=2", "up/down"}}) {
    SCOPED_TRACE(preset);
    World world(preset);
    sm::Manager& manager = world.add_manager(0);
    EXPECT_EQ(settled(world), "");
    EXPECT_EQ(manager.routing(), routing);
    EXPECT_EQ(manager.problems().all().size(), 0u) << manager.problems().all()[0].text;
  }
}

TEST(SubnetManager, WithAnLmcEachLidIsReached) {
  World world("fat-tree:hcas=12,ports=6");
  sm::Settings settings;
  settings.lmc = 2;
  world.add_manager(0, settings);
  EXPECT_EQ(settled(world), "");
  EXPECT_EQ(world.port_of_node(3).lmc, 2);
}

TEST(SubnetManager, TheTorusEngineIsUsedWhereItIsWanted) {
  World world("torus:4x4x3,hosts=2");
  sm::Settings settings;
  settings.routing = sm::Routing::Torus;
  sm::Manager& manager = world.add_manager(0, settings);
  // Its lanes are no part of this check; routing_test.cpp has them.
  EXPECT_EQ(settled(world, 0, {.may_have_credit_loops = true}), "");
  EXPECT_EQ(manager.routing(), "torus");
  EXPECT_GT(world.sent_of(mad::method::kSet, attribute::kSlToVlTable), 0u);
  // From the last switch of the first dimension to its first one: over the end of the ring.
  const auto level = [&](std::size_t from, std::size_t to) {
    return manager.service_level(manager.subnet().find_port(world.port_of_node(from).guid),
                                 manager.subnet().find_port(world.port_of_node(to).guid));
  };
  EXPECT_EQ(level(0, 2) + level(2, 4) + level(4, 6) + level(6, 0), 1);
}

TEST(SubnetManager, ASweepWithoutAChangeSetsNothing) {
  World world("fat-tree:hcas=18,ports=6");
  sm::Manager& manager = world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  world.run_for(1s);
  for (const bool is_full : {false, true}) {
    world.sent.clear();
    const auto before = manager.generation();
    manager.request_sweep(is_full);
    ASSERT_EQ(settled(world), "");
    EXPECT_GT(manager.generation(), before);
    EXPECT_EQ(world.sets(), 0u);
  }
}

TEST(SubnetManager, ATrapMakesItReadOnlyWhatHasChanged) {
  World world("fat-tree:hcas=18,ports=6");
  sm::Manager& manager = world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  world.run_for(1s);
  world.sent.clear();
  // An adapter's cable: its leaf tells of it by a trap.
  world.flap(world.port_of_node(17));
  const auto before = manager.generation();
  world.run_until(world.now + 5s, [&] { return manager.generation() > before; });
  ASSERT_EQ(settled(world), "");
  EXPECT_EQ(world.sent_of(mad::method::kGet, attribute::kNodeInfo), 1u);  // behind that cable
  EXPECT_LE(world.sent_of(mad::method::kGet, attribute::kPortInfo), 20u);
  EXPECT_EQ(world.sent_of(mad::method::kSet, attribute::kLinearForwarding), 0u);
  EXPECT_EQ(world.sent_of(mad::method::kSet, attribute::kPortInfo), 4u);  // Armed, Active; two ends
  // Its change is read once.
  world.sent.clear();
  manager.request_sweep(false);
  ASSERT_EQ(settled(world), "");
  EXPECT_EQ(world.sent_of(mad::method::kGet, attribute::kPortInfo), 1u);  // of the own port
  EXPECT_EQ(world.traps_under_way(), 0u);
}

TEST(SubnetManager, ACableThatIsPulledOutIsRoutedAround) {
  World world("fat-tree:hcas=18,ports=6");
  world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  fabric::Port* up = nullptr;
  for (std::uint32_t i = 0; i < world.graph().port_count(); ++i) {
    fabric::Port& port = *world.graph().port(i);
    const fabric::Port* peer = world.graph().peer_of(port);
    if (peer != nullptr && world.graph().element_of(port).is_switch() &&
        world.graph().element_of(*peer).is_switch()) {
      up = &port;
    }
  }
  ASSERT_NE(up, nullptr);
  world.change([&](auto& changes) { fabric::unplug(world.fabric, *up, changes); });
  world.run_for(3s);
  EXPECT_EQ(settled(world), "");
}

TEST(SubnetManager, LidsOfPortsAreKept) {
  World world("star:4");
  fabric::Graph& graph = world.graph();
  graph.take_lid(world.port_of_node(1), 100, 0);
  graph.take_lid(world.port_of_node(2), 100, 0);
  graph.take_lid(world.port_of_node(3), 0xbfff, 0);
  world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  EXPECT_EQ(world.port_of_node(3).lid, 0xbfff);
  EXPECT_NE(world.port_of_node(1).lid, world.port_of_node(2).lid);
  EXPECT_TRUE(world.port_of_node(1).lid == 100 || world.port_of_node(2).lid == 100);
}

TEST(SubnetManager, APortWithAForeignKeyIsReportedAndTheRestIsSetUp) {
  for (const std::uint8_t protect : {std::uint8_t{1}, std::uint8_t{2}}) {
    World world("fat-tree:hcas=12,ports=6");
    fabric::Port& port = world.port_of_node(7);
    port.settings.m_key = 0x1234;
    port.settings.m_key_protect = protect;
    sm::Manager& manager = world.add_manager(0);
    EXPECT_EQ(settled(world, 0, {.elements = {port.element}}), "");
    EXPECT_TRUE(manager.problems().has(protect == 1 ? sm::ProblemKind::ForeignKey
                                                    : sm::ProblemKind::Silent));
    EXPECT_GT(world.bad_keys, 0u);
  }
}

TEST(SubnetManager, AKeyThatMayBeReadIsReplaced) {
  World world("star:4");
  world.port_of_node(2).settings.m_key = 0x1234;
  sm::Settings settings;
  settings.m_key = 0x99;
  settings.m_key_protect = 1;
  settings.m_key_lease = 60;
  world.add_manager(0, settings);
  EXPECT_EQ(settled(world), "");
  EXPECT_EQ(world.port_of_node(2).settings.m_key, 0x99u);
  EXPECT_EQ(world.port_of_node(2).settings.m_key_protect, 1);
  EXPECT_EQ(world.port_of_node(2).settings.m_key_lease, 60);
  // And a sweep works with it.
  world.seats[0].manager->request_sweep(true);
  EXPECT_EQ(settled(world), "");
  EXPECT_EQ(world.bad_keys, 0u);
}

TEST(SubnetManager, TwoNodesWithTheSameGuidAreReportedAndTheRestIsSetUp) {
  World world("fat-tree:hcas=12,ports=6");
  fabric::Graph& graph = world.graph();
  fabric::Port& a = world.port_of_node(5);
  fabric::Port& b = world.port_of_node(9);
  graph.element_of(b).node_guid = graph.element_of(a).node_guid;
  sm::Manager& manager = world.add_manager(0);
  EXPECT_EQ(settled(world, 0, {.elements = {a.element, b.element}}), "");
  EXPECT_TRUE(manager.problems().has(sm::ProblemKind::DuplicateGuid));
}

TEST(SubnetManager, AClockThatLosesSmpsIsNoMatter) {
  World world("fat-tree:hcas=18,ports=6", 7);
  world.loss = 50;
  world.add_manager(0);
  EXPECT_TRUE(world.settle(*world.seats[0].manager));
  world.loss = 0;
  world.run_for(60s);
  EXPECT_EQ(settled(world), "");
}

// All four tries of the first Get of an attribute, so many hops away, are lost; the manager gets
// over it.
void lose_one_get(const char* topology, std::uint16_t lost, unsigned hops) {
  World world(topology);
  std::uint64_t id = 0;
  int tries = 0;
  world.drop = [&](const mad::Smp& smp) {
    const bool is_one = smp.header.attribute == lost && smp.header.method == mad::method::kGet &&
                        (smp.header.class_specific & 0xffu) == hops;
    if (id == 0 && is_one) id = smp.header.transaction_id;
    return id == smp.header.transaction_id && ++tries != 0;
  };
  world.add_manager(0);
  ASSERT_TRUE(world.settle(*world.seats[0].manager));
  EXPECT_EQ(tries, 4);
  world.run_for(30s);
  EXPECT_EQ(settled(world), "");
}

TEST(SubnetManager, APortThatCouldNotBeReadIsReadAgain) {
  lose_one_get("fat-tree:hcas=18,ports=6", attribute::kPortInfo, 4);  // at another leaf
}

TEST(SubnetManager, ASwitchWhoseSwitchInfoCouldNotBeReadGetsItsTop) {
  lose_one_get("fat-tree:hcas=18,ports=6", attribute::kSwitchInfo, 3);
}

TEST(SubnetManager, WhatNobodyHasToldOfIsNoticedInTime) {
  World world("fat-tree:hcas=18,ports=6");
  sm::Settings settings;
  settings.partitions = sm::PartitionList::everybody();
  world.add_manager(0, settings);
  ASSERT_EQ(settled(world), "");
  world.port_of_node(5).sm_lid = 77;
  world.port_of_node(6).pkeys = {0xffff, 0x8123};
  world.run_for(30s);
  EXPECT_EQ(settled(world), "");
  EXPECT_EQ(world.port_of_node(6).pkeys, std::vector<std::uint16_t>{0xffff});
}

TEST(SubnetManager, WithoutPartitionsPkeysStayAsTheyAre) {
  World world("fat-tree:hcas=18,ports=6");
  world.port_of_node(6).pkeys = {0xffff, 0x8123};
  world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  EXPECT_EQ(world.port_of_node(6).pkeys, (std::vector<std::uint16_t>{0xffff, 0x8123}));
}

TEST(SubnetManager, ASwitchThatHadNoPowerGetsItsTablesAgain) {
  World world("fat-tree:hcas=12,ports=6");
  world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  fabric::Graph& graph = world.graph();
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    if (!graph.element(i).is_switch()) continue;
    fabric::Element& element = graph.element_of(*graph.port(graph.element(i).first_port));
    // The first time nobody has looked in the meantime.
    for (const Duration off : {Duration::zero(), Duration(30s)}) {
      SCOPED_TRACE(element.description);
      world.change([&](auto& changes) { set_power(world.fabric, element, false, changes); });
      if (off != Duration::zero()) world.run_for(off);
      world.change([&](auto& changes) { set_power(world.fabric, element, true, changes); });
      world.run_for(30s);
      ASSERT_EQ(settled(world), "");
    }
  }
}

// --- Several managers ---

TEST(SubnetManagers, TheHigherPriorityBecomesTheMasterAndTheOtherTakesOverWhenItDies) {
  World world("star:6");
  world.add_manager(1, with_priority(3));
  world.add_manager(4, with_priority(9));
  world.run_for(30s);
  ASSERT_EQ(world.seats[1].manager->state(), sm::SmState::Master);
  ASSERT_EQ(world.seats[0].manager->state(), sm::SmState::Standby);
  EXPECT_EQ(test::wrong_with(world, world.seats[1].port), "");
  world.remove_manager(1);
  world.run_for(60s);
  EXPECT_EQ(world.seats[0].manager->state(), sm::SmState::Master);
  EXPECT_EQ(settled(world), "");
}

TEST(SubnetManagers, ABetterOneThatComesLaterIsHandedOverTo) {
  World world("star:6");
  world.add_manager(1, with_priority(3));
  ASSERT_EQ(settled(world), "");
  world.add_manager(4, with_priority(9));  // its trap makes the master look
  world.run_for(30s);
  EXPECT_EQ(world.seats[0].manager->state(), sm::SmState::Standby);
  EXPECT_EQ(settled(world, 1), "");
}

TEST(SubnetManagers, ALowerOneThatComesLaterStandsBy) {
  World world("star:6");
  world.add_manager(1, with_priority(3));
  ASSERT_EQ(settled(world), "");
  world.add_manager(4, with_priority(3));
  world.run_for(30s);
  EXPECT_EQ(world.seats[1].manager->state(), sm::SmState::Standby);
  EXPECT_EQ(settled(world), "");
}

// --- Multicast, partitions ---

TEST(SubnetManager, GroupsGetTheirTrees) {
  World world("fat-tree:hcas=18,ports=6");
  sm::Manager& manager = world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  world.run_for(1s);
  world.sent.clear();
  manager.set_groups({{0xc001, {world.port_of_node(0).guid, world.port_of_node(17).guid}}});
  ASSERT_EQ(settled(world), "");
  EXPECT_EQ(world.sent.size(), 1u);  // nothing is read for that
  EXPECT_EQ(world.sets(), world.sent_of(mad::method::kSet, attribute::kMulticastForwarding));
  std::size_t switches = 0;
  fabric::Graph& graph = world.graph();
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    if (!graph.element(i).is_switch()) continue;
    if (graph.switch_of(graph.element(i)).groups.contains(0xc001)) ++switches;
  }
  EXPECT_EQ(switches, 3u);  // two leaves and a spine
  manager.set_groups({});
  ASSERT_EQ(settled(world), "");
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    if (!graph.element(i).is_switch()) continue;
    EXPECT_TRUE(graph.switch_of(graph.element(i)).groups.empty());
  }
}

TEST(SubnetManager, AJoinChangesTheTreeOfItsGroupOnly) {
  World world("fat-tree:hcas=18,ports=6");
  sm::Manager& manager = world.add_manager(0);
  ASSERT_EQ(settled(world), "");
  std::vector<sm::MulticastGroup> groups;
  for (std::uint16_t i = 0; i < 100; ++i) {
    groups.push_back({static_cast<std::uint16_t>(0xc000 + i),
                      {world.port_of_node(i % 18u).guid, world.port_of_node(17).guid}});
  }
  manager.set_groups(groups);
  ASSERT_EQ(settled(world), "");
  world.sent.clear();
  groups[40].members.push_back(world.port_of_node(0).guid);
  manager.set_groups(groups);
  ASSERT_EQ(settled(world), "");
  EXPECT_GT(world.sets(), 0u);
  EXPECT_LE(world.sets(), 3u);  // two leaves and a spine
  // What is written is the same as if all had come at once.
  std::vector<std::map<std::uint16_t, fabric::PortMask>> written;
  const auto read = [&] {
    written.clear();
    for (std::uint32_t i = 0; i < world.graph().element_count(); ++i) {
      const fabric::Element& element = world.graph().element(i);
      if (element.is_switch()) written.push_back(world.graph().switch_of(element).groups);
    }
  };
  read();
  const auto step_by_step = written;
  manager.set_groups({});
  ASSERT_EQ(settled(world), "");
  manager.set_groups(groups);
  ASSERT_EQ(settled(world), "");
  read();
  EXPECT_EQ(written, step_by_step);
}

TEST(SubnetManager, PartitionsAreWrittenAndEnforced) {
  World world("star:4");
  sm::TextError error;
  const auto list =
      sm::parse_partitions(fmt::format("Default=0x7fff : ALL, SELF=full; a=2 : {:#x}=full, {:#x};",
                                       world.port_of_node(1).guid, world.port_of_node(2).guid),
                           error);
  ASSERT_TRUE(list);
  sm::Settings settings;
  settings.partitions = *list;
  world.add_manager(0, settings);
  ASSERT_EQ(settled(world), "");
  using List = std::vector<std::uint16_t>;
  EXPECT_EQ(world.port_of_node(0).pkeys, (List{0xffff}));
  EXPECT_EQ(world.port_of_node(1).pkeys, (List{0x7fff, 0x8002}));
  EXPECT_EQ(world.port_of_node(2).pkeys, (List{0x7fff, 2}));
  EXPECT_EQ(world.port_of_node(3).pkeys, (List{0x7fff}));
  const fabric::Port& at = *world.graph().peer_of(world.port_of_node(2));
  EXPECT_EQ(at.pkeys, (List{0x7fff, 2}));
  EXPECT_EQ(at.settings.enforcement, 0x0c);
}

}  // namespace
}  // namespace ib::services
