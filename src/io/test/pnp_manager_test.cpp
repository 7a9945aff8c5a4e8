// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/pnp_manager.h"

#include "io/pnp_removal.h"
#include "io/test/test_tree.h"

#include <gmock/gmock.h>

namespace ib::io::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFn = "TEST\\FN";

// root - hca - { port1, port2 }, root - other
struct Small : TestTree {
  Small() {
    auto hca = plug(*root, "hca", kFn);
    plug(*hca, "port1", kFn);
    plug(*hca, "port2", kFn);
    plug(*root, "other", "TEST\\UNKNOWN");
    begin();
  }
  Thing& thing(const std::string& name) { return static_cast<Thing&>(node(name)->physical()); }
};

TEST(PnpManager, StartsADeviceBeforeWhatIsBelowIt) {
  Small t;
  EXPECT_THAT(t.heard(), ElementsAre("load fn", "hca: start", "port1: start", "port2: start"));
  EXPECT_EQ(t.state("hca"), NodeState::Started);
  EXPECT_EQ(t.node("hca")->path(), "TEST\\FN\\hca");
  EXPECT_EQ(t.node("port1")->parent(), t.node("hca"));
}

TEST(PnpManager, ADeviceWithoutADriverIsShownAsSuch) {
  Small t;
  EXPECT_EQ(t.state("other"), NodeState::NoDriver);
  EXPECT_EQ(t.remove("other"), Status::Ok);
  EXPECT_EQ(t.state("other"), NodeState::Removed);
}

TEST(PnpManager, ADriverThatComesLaterGetsItsDevices) {
  Small t;
  t.add_driver("late", {"test\\unknown"}, DriverKind::Function);
  t.pnp.start_driverless(t.into(t.status));
  EXPECT_EQ(t.run(), Status::Ok);
  EXPECT_EQ(t.state("other"), NodeState::Started);
}

TEST(PnpManager, AFailedStartIsKeptWithItsReason) {
  TestTree t;
  t.behaviour["hca"].refuse_start = "no memory";
  t.plug(*t.root, "hca", kFn);
  t.begin();
  EXPECT_EQ(t.state("hca"), NodeState::Failed);
  EXPECT_EQ(t.node("hca")->problem(), "no memory");
  EXPECT_EQ(t.functions, 0u);
  t.behaviour.clear();
  EXPECT_EQ(t.start("hca"), Status::Ok);
  EXPECT_EQ(t.state("hca"), NodeState::Started);
  EXPECT_EQ(t.node("hca")->problem(), "");
}

TEST(PnpManager, HardwareIdsComeBeforeCompatibleOnes) {
  TestTree t;
  t.add_driver("generic", {"TEST\\GENERIC"}, DriverKind::Function);
  t.add_driver("exact", {"TEST\\EXACT"}, DriverKind::Function);
  auto thing = t.plug(*t.root, "x", "TEST\\EXACT");
  thing->ids.compatible = {"TEST\\GENERIC"};
  auto other = t.plug(*t.root, "y", "TEST\\STRANGE");
  other->ids.compatible = {"TEST\\GENERIC"};
  t.begin();
  EXPECT_EQ(t.node("x")->function()->driver().name, "exact");
  EXPECT_EQ(t.node("y")->function()->driver().name, "generic");
}

TEST(PnpManager, FiltersSitAboveTheFunctionInTheOrderOfWhatTheyNeed) {
  TestTree t;
  t.add_driver("upper", {kFn}, DriverKind::Filter, {"lower"});
  t.add_driver("lower", {kFn}, DriverKind::Filter, {"library"});
  t.add_driver("library", {}, DriverKind::Function);
  t.plug(*t.root, "hca", kFn);
  t.begin();
  const auto& stack = t.node("hca")->stack();
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(stack[0]->driver().name, "fn");
  EXPECT_EQ(stack[1]->driver().name, "lower");
  EXPECT_EQ(stack[2]->driver().name, "upper");
  EXPECT_EQ(t.log[0] + t.log[1] + t.log[2] + t.log[3], "load fnload libraryload lowerload upper");
}

TEST(PnpManager, NewChildrenStartAndMissingOnesAreSurpriseRemoved) {
  Small t;
  t.heard();
  t.plug(t.thing("hca"), "port3", kFn);
  t.unplug(t.thing("hca"), "port1");
  EXPECT_EQ(t.enumerate("hca"), Status::Ok);
  EXPECT_THAT(t.heard(), ElementsAre("port1: surprise-removal", "port3: start", "port1: remove"));
  EXPECT_EQ(t.node("port1"), nullptr);
  EXPECT_EQ(t.node("hca")->children().size(), 2u);
}

TEST(PnpManager, TheNameOfADeviceIsFreeOnceItIsGoneButNotWhenItsDoubleIsLeftOut) {
  Small t;
  const std::uint64_t first = t.node("port1")->id();
  t.plug(t.thing("hca"), "port1", kFn);
  EXPECT_EQ(t.enumerate("hca"), Status::Ok);
  EXPECT_EQ(t.node("hca")->children().size(), 2u);
  EXPECT_EQ(t.node("port1")->id(), first);
  t.plug(t.thing("hca"), "port1", kFn);
  EXPECT_EQ(t.enumerate("hca"), Status::Ok);
  EXPECT_EQ(t.node("hca")->children().size(), 2u);
  t.unplug(t.thing("hca"), "port1");
  EXPECT_EQ(t.enumerate("hca"), Status::Ok);
  EXPECT_EQ(t.node("port1"), nullptr);
  t.plug(t.thing("hca"), "port1", kFn);
  EXPECT_EQ(t.enumerate("hca"), Status::Ok);
  ASSERT_NE(t.node("port1"), nullptr);
  EXPECT_NE(t.node("port1")->id(), first);
}

TEST(PnpManager, TwoDevicesOfOneNameAreNotBothThere) {
  Small t;
  t.plug(t.thing("hca"), "port1", kFn);
  EXPECT_EQ(t.enumerate("hca"), Status::Ok);
  EXPECT_EQ(t.node("hca")->children().size(), 2u);
  EXPECT_THAT(t.lines, testing::Contains(HasSubstr("is there already")));
}

TEST(PnpManager, RemovesChildrenFirst) {
  Small t;
  t.heard();
  EXPECT_EQ(t.remove("hca"), Status::Ok);
  EXPECT_THAT(t.heard(),
              ElementsAre("port1: query-remove", "port2: query-remove", "hca: query-remove",
                          "port1: remove", "port2: remove", "hca: remove"));
  EXPECT_EQ(t.functions, 0u);
  EXPECT_EQ(t.state("hca"), NodeState::Removed);
  EXPECT_EQ(t.start("hca"), Status::Ok);
  EXPECT_EQ(t.functions, 3u);
}

TEST(PnpManager, AVetoChangesNothing) {
  Small t;
  t.heard();
  t.behaviour["port2"].veto_remove = "pid 7 uses it";
  EXPECT_EQ(t.remove("hca"), Status::DeviceBusy);
  EXPECT_EQ(t.reason, "pid 7 uses it");
  EXPECT_THAT(t.heard(), ElementsAre("port1: query-remove", "port2: query-remove",
                                     "port2: cancel-remove", "port1: cancel-remove"));
  for (const char* name : {"hca", "port1", "port2"}) EXPECT_EQ(t.state(name), NodeState::Started);
  EXPECT_EQ(t.node("port2")->problem(), "pid 7 uses it");
}

TEST(PnpManager, AnOpenFileIsAVeto) {
  Small t;
  Client client{1, 4711, 0, ""};
  {
    FileObject file(t.node("port1")->top(), 1, client, nullptr);
    EXPECT_EQ(t.remove("hca"), Status::DeviceBusy);
    EXPECT_THAT(t.reason, HasSubstr("has 1 open file: pid 4711"));
  }
  EXPECT_EQ(t.remove("hca"), Status::Ok);
}

TEST(PnpManager, ARemovalCanBeWithdrawnWhileADriverTakesItsTime) {
  Small t;
  t.behaviour["port2"].take_time = true;
  const auto removal = t.pnp.remove({t.node("hca")->id()}, t.into(t.status));
  EXPECT_EQ(t.run(), Status::Pending);
  EXPECT_EQ(t.state("port2"), NodeState::QueryRemove);
  t.pnp.cancel(*removal);
  EXPECT_EQ(t.run(), Status::Cancelled);
  EXPECT_EQ(t.state("port1"), NodeState::Started);
  t.pnp.cancel(*removal);  // too late: no effect
  EXPECT_EQ(t.run(), Status::Cancelled);
}

TEST(PnpManager, WithdrawnBeforeItsTurnItDoesNothing) {
  Small t;
  t.heard();
  const auto removal = t.pnp.remove({t.node("hca")->id()}, t.into(t.status));
  t.pnp.cancel(*removal);
  EXPECT_EQ(t.run(), Status::Cancelled);
  EXPECT_THAT(t.heard(), ElementsAre());
}

TEST(PnpManager, ACancelThatMeetsTheAnswerStillWithdraws) {
  Small t;
  t.behaviour["port2"].take_time = true;
  const auto removal = t.pnp.remove({t.node("hca")->id()}, t.into(t.status));
  (void)t.run();
  // The driver has agreed; its answer is on the way to the manager.
  (*t.slow.take()).complete(Status::Ok);
  t.pnp.cancel(*removal);
  EXPECT_EQ(t.run(), Status::Cancelled);
  EXPECT_EQ(t.state("hca"), NodeState::Started);
}

TEST(PnpManager, ASurpriseFailsRequestsAndWaitsForFiles) {
  Small t;
  Client client{1, 4711, 0, ""};
  auto file = std::make_unique<FileObject>(t.node("port1")->top(), 1, client, nullptr);
  Irp irp;
  Status seen = Status::Pending;
  IrpRef request = irp.start(
      [](Irp& done, void* context) { *static_cast<Status*>(context) = done.status; }, &seen);
  call_driver(t.node("port1")->top(), std::move(request));
  t.heard();
  EXPECT_EQ(t.eject("hca"), Status::Ok);
  EXPECT_EQ(seen, Status::DeviceRemoved);
  EXPECT_THAT(t.heard(), ElementsAre("port1: surprise-removal", "port2: surprise-removal",
                                     "hca: surprise-removal", "port2: remove"))
      << "what nobody uses goes; its parent waits for the sibling that is in use";
  EXPECT_EQ(t.node("hca"), nullptr);
  ASSERT_EQ(t.tree.leaving().size(), 1u);
  EXPECT_EQ(t.functions, 2u);
  file.reset();
  (void)t.run();
  EXPECT_THAT(t.heard(), ElementsAre("port1: remove", "hca: remove"));
  EXPECT_TRUE(t.tree.leaving().empty());
  EXPECT_EQ(t.functions, 0u);
}

// A request of a kernel client has no file that would keep the device. The device waits for it
// before and after Remove: the driver may have begun one meanwhile.
TEST(PnpManager, ARemovalWaitsForRequestsThatAreUnderWay) {
  Small t;
  Irp early;
  Irp late;
  const auto send = [&t](Irp& irp) {
    call_driver(t.node("port1")->top(), irp.start([](Irp&, void*) {}, nullptr));
  };
  Behaviour& port = t.behaviour["port1"];
  port.keep_requests = true;
  port.on_remove = [&] { send(late); };
  send(early);
  t.heard();
  EXPECT_EQ(t.remove("port1"), Status::Pending);
  EXPECT_THAT(t.heard(), ElementsAre("port1: query-remove")) << "in use";
  t.slow.fail_all(Status::Cancelled, "enough");
  EXPECT_EQ(t.run(), Status::Pending);
  EXPECT_THAT(t.heard(), ElementsAre("port1: remove"));
  EXPECT_EQ(t.functions, 3u) << "in use again";
  t.slow.fail_all(Status::Cancelled, "enough");
  EXPECT_EQ(t.run(), Status::Ok);
  EXPECT_EQ(t.functions, 2u);
}

TEST(PnpManager, ANewDeviceMayComeWhileTheOldOneLeaves) {
  Small t;
  Client client{1, 4711, 0, ""};
  FileObject file(t.node("port1")->top(), 1, client, nullptr);
  t.unplug(*t.root, "hca");
  EXPECT_EQ(t.enumerate("root"), Status::Ok);
  t.plug(*t.root, "hca", kFn);
  EXPECT_EQ(t.enumerate("root"), Status::Ok);
  EXPECT_EQ(t.state("hca"), NodeState::Started);
  EXPECT_EQ(t.tree.leaving().size(), 1u);
}

TEST(PnpManager, NodesThatHaveGoneAreNotFound) {
  Small t;
  const std::uint64_t port = t.node("port1")->id();
  EXPECT_EQ(t.remove("hca"), Status::Ok);
  t.pnp.remove({port}, t.into(t.status));
  EXPECT_EQ(t.run(), Status::NotFound);
  t.pnp.surprise_remove(port, t.into(t.status));
  EXPECT_EQ(t.run(), Status::NotFound);
  t.pnp.enumerate(port, t.into(t.status));
  EXPECT_EQ(t.run(), Status::NotFound);
  EXPECT_EQ(t.enumerate("hca"), Status::InvalidState);
}

TEST(PnpManager, RemovalsThatMeetTakeTurns) {
  Small t;
  Status first = Status::Pending;
  Status second = Status::Pending;
  t.pnp.remove({t.node("hca")->id()}, t.into(first));
  t.pnp.surprise_remove(t.node("hca")->id(), t.into(second));
  (void)t.run();
  EXPECT_EQ(first, Status::Ok);
  EXPECT_EQ(second, Status::Ok);
  EXPECT_EQ(t.functions, 0u);
}

}  // namespace
}  // namespace ib::io::test
