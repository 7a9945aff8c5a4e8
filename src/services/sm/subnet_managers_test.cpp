// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sm/subnet_managers.h"

#include "fabric/cables.h"
#include "fabric/management/subnet_test.h"
#include "fabric/port_states.h"
#include "fabric/subnet_setup.h"
#include "platform/virtual_executor.h"
#include "services/smi/smi_service.h"

#include <chrono>
#include <optional>

namespace ib::services {
namespace {

using namespace std::chrono_literals;

// A fabric as softibd has it, of two spines, four leaves and 12 adapters, without programs.
class SubnetManagersTest : public testing::Test, private fabric::Smi::Receiver {
 protected:
  SubnetManagersTest() {
    smi.set_receiver(this);
    start({});
  }

  void start(std::optional<std::uint8_t> priority) {
    managers.reset();
    SubnetManagers::Options options;
    options.priority = priority;
    options.random = [] { return 1u; };
    options.on_event = [this](std::string_view line) { log.emplace_back(line); };
    managers.emplace(
        smi, fabric, executor, [this](fabric::Port& port, bool is_sm) { set_is_sm(port, is_sm); },
        std::move(options));
    executor.advance(10ms);
  }
  void set_is_sm(fabric::Port& port, bool is_sm) {
    const std::uint32_t others = port.capability_mask & ~fabric::kIsSm;
    fabric.set_capabilities(port, is_sm ? others | fabric::kIsSm : others);
    fabric::PortChanges changes{
        {fabric.graph().index_of(port), fabric::change::kCapabilities, verbs::PortState::Nop}};
    if (!is_sm) fabric::take_over(fabric, port, changes);
    tell(changes);
  }
  // As softibd does when a program opens its issm file.
  void begin_program(std::size_t node) {
    managers->make_room_at(port_of(node));
    set_is_sm(port_of(node), true);
    executor.advance(10ms);
  }
  void change(const std::function<void(fabric::PortChanges&)>& what) {
    fabric::PortChanges changes;
    what(changes);
    tell(changes);
    executor.advance(10ms);
  }
  void tell(const fabric::PortChanges& changes) {
    if (managers) managers->on_changes(changes);
  }
  fabric::Port& port_of(std::size_t node) { return fabric.nodes()[node].hcas[0].ports[0]; }
  std::uint32_t index_of(std::size_t node) { return fabric.graph().index_of(port_of(node)); }
  std::vector<std::uint32_t> places() {
    std::vector<std::uint32_t> ports;
    for (const auto& manager : managers->all()) ports.push_back(manager->port());
    return ports;
  }
  bool is_settled() {
    return managers->all().size() == 1 && managers->all()[0]->manager().is_settled();
  }

  bool on_smp(std::uint32_t at, const fabric::PacketLids& lids, const mad::Mad& mad) override {
    return managers && managers->on_smp(at, lids, mad);
  }
  void on_bad_key(std::uint32_t, const fabric::PacketLids&, const mad::Mad&) override {}

  platform::VirtualExecutor executor;
  fabric::Fabric fabric = fabric::test::make_subnet("fat-tree:hcas=12,ports=6");
  fabric::Smi smi{fabric,
                  {.now = [this] { return executor.now(); },
                   .on_changes = [this](const fabric::PortChanges& changes) { tell(changes); }}};
  std::vector<std::string> log;
  std::optional<SubnetManagers> managers;
};

TEST_F(SubnetManagersTest, ASubnetHasOneAtItsFirstAdapter) {
  EXPECT_EQ(places(), std::vector{index_of(0)});
  EXPECT_TRUE(is_settled());
  EXPECT_EQ(log.size(), 1u);
}

TEST_F(SubnetManagersTest, ItGivesWayToAProgramsAndComesBack) {
  begin_program(5);
  EXPECT_TRUE(managers->all().empty());
  EXPECT_EQ(port_of(0).capability_mask & fabric::kIsSm, 0u);
  set_is_sm(port_of(5), false);
  executor.advance(10ms);
  EXPECT_TRUE(is_settled());
}

TEST_F(SubnetManagersTest, WithAPriorityItStays) {
  start(3);
  begin_program(5);
  EXPECT_EQ(places(), std::vector{index_of(0)});
  managers->set_priority(std::nullopt);
  executor.advance(10ms);
  EXPECT_TRUE(managers->all().empty());
}

TEST_F(SubnetManagersTest, AtTheSamePortThereIsOne) {
  begin_program(0);
  EXPECT_TRUE(managers->all().empty());
  EXPECT_NE(port_of(0).capability_mask & fabric::kIsSm, 0u);
  start(3);
  EXPECT_EQ(places(), std::vector{index_of(1)});
}

TEST_F(SubnetManagersTest, ItMovesWhenItsLinkGoesDownAndStaysThere) {
  change([&](auto& changes) { fabric::set_enabled(fabric, port_of(0), false, changes); });
  EXPECT_EQ(places(), std::vector{index_of(1)});
  EXPECT_TRUE(is_settled());
  EXPECT_EQ(port_of(7).sm_lid, port_of(1).lid);
  change([&](auto& changes) { fabric::set_enabled(fabric, port_of(0), true, changes); });
  EXPECT_EQ(places(), std::vector{index_of(1)});
  executor.advance(11s);  // there is nobody who sends traps here
  EXPECT_EQ(port_of(0).state, verbs::PortState::Active);
}

TEST_F(SubnetManagersTest, APartThatIsCutOffGetsOneAndLosesItAgain) {
  // All cables of the leaf of the last adapter that lead to spines.
  fabric::Graph& graph = fabric.graph();
  const fabric::Element& leaf = graph.element_of(*graph.peer_of(port_of(11)));
  const auto set_uplinks = [&](bool is_enabled) {
    change([&](auto& changes) {
      for (fabric::Port& port : graph.ports_of(const_cast<fabric::Element&>(leaf))) {
        const fabric::Port* peer = graph.peer_of(port);
        const bool leads_up = peer != nullptr && graph.element_of(*peer).is_switch();
        if (leads_up) fabric::set_enabled(fabric, port, is_enabled, changes);
      }
    });
  };
  set_uplinks(false);
  ASSERT_EQ(managers->all().size(), 2u);
  executor.advance(10s);  // nobody answers behind those cables
  for (const auto& manager : managers->all()) EXPECT_TRUE(manager->manager().is_settled());
  set_uplinks(true);
  ASSERT_EQ(managers->all().size(), 1u);
  executor.advance(30s);
  EXPECT_TRUE(is_settled());
}

TEST_F(SubnetManagersTest, GroupsAreInTheTablesAtOnce) {
  managers->set_groups({{0xc001, {port_of(0).guid, port_of(11).guid}}});
  std::size_t switches = 0;
  for (std::uint32_t i = 0; i < fabric.graph().element_count(); ++i) {
    const fabric::Element& element = fabric.graph().element(i);
    if (!element.is_switch()) continue;
    const auto& groups = fabric.graph().switch_of(element).groups;
    if (!groups.empty()) ++switches;
  }
  EXPECT_EQ(switches, 3u);
}

}  // namespace
}  // namespace ib::services
