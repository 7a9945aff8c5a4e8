// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hosts that get their devices when somebody wants them (DeviceMaking::WhenWanted), beside hosts
// that have them from the start.
#include "drivers/diagnostics/status.h"
#include "drivers/test/driver_bench_test.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

namespace ib::drivers::test {
namespace {

using control::HcaAction;
using control::PowerState;
using verbs::PortState;
using Json = nlohmann::json;

FabricTreeOptions made(DeviceMaking making) {
  FabricTreeOptions options;
  options.making = making;
  return options;
}

struct Making : Bench {
  explicit Making(DeviceMaking making = DeviceMaking::WhenWanted)
      : Bench(0, made(making)), tool(*this, 13, "", false) {}

  fabric::Node& node(std::size_t number) { return fabric.nodes()[number]; }
  bool has_devices(std::size_t number) {
    const io::DeviceNode* hca = tree->node_of(node(number).hcas[0]);
    return hca != nullptr && hca->is_started();
  }
  Json devices() {
    EXPECT_EQ(tool.root_call(Code::Devices).status, Status::Ok);
    return Json::parse(host.last_text);
  }
  template <class In>
  Status ask(Code code, const In& in) {
    return tool.root_call<control::CaName>(code, in).status;
  }
  Status change(HcaAction action, const char* ca = "softib0") {
    control::ChangeHcaIn in;
    put_text(in.node, "node1");
    put_text(in.ca, ca);
    in.action = action;
    return ask(Code::ChangeHca, in);
  }
  Status power(PowerState state, const char* of) {
    control::SetPowerIn in;
    put_text(in.node, of);
    in.state = state;
    return ask(Code::SetPower, in);
  }
  PortState port_state(std::uint32_t port) { return arena().port(port)->state.load(); }

  Process tool;
};

AttachIn attach_to(const char* node) {
  AttachIn in;
  put_text(in.node, node);
  return in;
}

TEST(DeviceMaking, TheFirstProgramOfANodeMakesItsDevicesAndTheLastLeavesThem) {
  Making m;
  EXPECT_FALSE(m.has_devices(0));
  EXPECT_EQ(m.tree->hosts().node_of(m.node(0)), nullptr);
  Process first(m, 11, "node1");
  first.pd();
  EXPECT_TRUE(m.has_devices(1));
  EXPECT_FALSE(m.has_devices(0));
  first.exit();
  m.executor.advance(std::chrono::seconds(1));
  EXPECT_TRUE(m.has_devices(1));
  EXPECT_FALSE(m.has_devices(0));
}

TEST(DeviceMaking, ProgramsThatComeTogetherHaveTheSameDevices) {
  Making m;
  Process a(m, 11, "", false);
  Process b(m, 12, "", false);
  const auto of_a = a.start(a.zero(), Code::Attach, attach_to("node0"));
  const auto of_b = b.start(b.zero(), Code::Attach, attach_to("node0"));
  const auto again = a.start(a.zero(), Code::Attach, attach_to("node0"));
  EXPECT_FALSE(of_a->done);
  EXPECT_FALSE(of_b->done) << "the devices are on their way only";
  EXPECT_EQ(a.finish<AttachOut>(*of_a).out.ca_count, 1u);
  EXPECT_EQ(b.finish<AttachOut>(*of_b).out.ca_count, 1u);
  EXPECT_EQ(a.finish<AttachOut>(*again).status, Status::InvalidState);
  EXPECT_TRUE(m.has_devices(0));
  const auto late = m.tool.start(m.tool.zero(), Code::Attach, attach_to("node0"));
  EXPECT_TRUE(late->done) << "nothing to wait for";
}

TEST(DeviceMaking, AProgramThatEndsWhileItWaitsLeavesNothing) {
  Making m;
  Process a(m, 11, "", false);
  const auto waiting = a.start(a.zero(), Code::Attach, attach_to("node0"));
  ASSERT_FALSE(waiting->done);
  m.root->disconnect(a.zero());
  EXPECT_EQ(a.finish<AttachOut>(*waiting).status, Status::Disconnected);
  EXPECT_EQ(m.root->attached_processes(), 0u);
  EXPECT_TRUE(m.has_devices(0)) << "they come all the same";
}

TEST(DeviceMaking, PortsOfANodeWithoutDevicesAreThereForOthers) {
  Making m;
  for (std::uint32_t port = 0; port < 4; ++port) {
    EXPECT_EQ(m.port_state(port), PortState::Active);
    EXPECT_EQ(m.arena().port(port)->lid, m.fabric.device_port(port)->lid);
    EXPECT_EQ(m.arena().port_with_lid(m.fabric.device_port(port)->lid), port);
  }
}

TEST(DeviceMaking, NobodySeesWhetherDevicesAreThere) {
  Making late;
  Making early(DeviceMaking::AtStart);
  EXPECT_FALSE(late.has_devices(0));
  EXPECT_TRUE(early.has_devices(0));
  EXPECT_EQ(late.root->status()["nodes"], early.root->status()["nodes"]);
  EXPECT_EQ(late.root->status()["shape"], early.root->status()["shape"]);
  // The second node has its devices first, and comes second.
  Process in_late(late, 12, "node1");
  Process in_early(early, 12, "node1");
  EXPECT_EQ(late.devices(), early.devices());
  EXPECT_EQ(late.trace(), early.trace());
}

TEST(DeviceMaking, ToolsGetWhatTheyAskFor) {
  Making names;
  control::ViewIn in;
  put_text(in.node, "node1");
  put_text(in.path, "\\Device");
  EXPECT_EQ(names.ask(Code::ListNames, in), Status::Ok);
  EXPECT_NE(names.host.last_text.find("softib0"), std::string::npos);
  EXPECT_TRUE(names.has_devices(1));
  EXPECT_FALSE(names.has_devices(0));

  Making pulled;
  EXPECT_EQ(pulled.change(HcaAction::Eject), Status::Ok);
  EXPECT_EQ(pulled.port_state(2), PortState::Down);
  EXPECT_EQ(pulled.change(HcaAction::Add), Status::Ok);
  EXPECT_EQ(pulled.port_state(2), PortState::Active);
  EXPECT_EQ(pulled.change(HcaAction::Add, "softib1"), Status::Ok);
  EXPECT_EQ(pulled.change(HcaAction::Remove), Status::Ok);
  EXPECT_FALSE(pulled.has_devices(0));

  Making driverless;
  control::ChangeDriverIn driver;
  put_text(driver.name, "ib_bus");
  driver.unload = 1;
  EXPECT_EQ(driverless.ask(Code::ChangeDriver, driver), Status::Ok);
  EXPECT_EQ(driverless.devices()["tree"]["children"][0]["children"][0]["filters"], Json::array());
}

TEST(DeviceMaking, APowerEventReachesAllThatAreMeant) {
  Making m;
  EXPECT_EQ(m.power(PowerState::Sleep, "node1"), Status::Ok);
  EXPECT_EQ(m.port_state(2), hca::kPortAsleep);
  EXPECT_EQ(m.port_state(0), PortState::Active);
  EXPECT_FALSE(m.has_devices(0));
  EXPECT_EQ(m.power(PowerState::Sleep, ""), Status::Ok);
  EXPECT_EQ(m.port_state(0), hca::kPortAsleep);
  EXPECT_EQ(m.power(PowerState::Working, ""), Status::Ok);
  for (std::uint32_t port = 0; port < 4; ++port) EXPECT_EQ(m.port_state(port), PortState::Active);
}

TEST(DeviceMaking, AnExtraPkeyIsThereWhenTheDevicesCome) {
  Making m;
  control::ChangePartitionIn in;
  put_text(in.node, "node1");
  put_text(in.ca, "softib0");
  in.port = 1;
  in.pkey = 0x8001;
  put_text(in.name, "ione");
  EXPECT_EQ(m.ask(Code::ChangePartition, in), Status::Ok);
  EXPECT_FALSE(m.has_devices(1));
  const Json hca = m.devices()["tree"]["children"][1]["children"][0];
  EXPECT_EQ(hca["children"].size(), 3u);
}

TEST(DeviceMaking, SoftibGoesDownWithoutThem) {
  Making m;
  Process a(m, 11, "node0");
  a.exit();
  bool is_down = false;
  m.tree->shut_down([&] { is_down = true; });
  m.executor.advance(std::chrono::seconds(1));
  EXPECT_TRUE(is_down);
  EXPECT_FALSE(m.has_devices(1));
}

}  // namespace
}  // namespace ib::drivers::test
