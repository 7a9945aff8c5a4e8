// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HCAs that come, go and sleep, ports that go down, and the end of everything, with requests under
// way.
#include "al/mad_qp.h"
#include "drivers/soft_hca/events.h"
#include "services_world.h"

#include <gtest/gtest.h>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kClass = 0x09;

class GsiChangeTest : public ::testing::TestWithParam<verbs::LinkLayer> {
 protected:
  void open() {
    ASSERT_EQ(w.ensure("node0"), Status::Ok);
    ASSERT_EQ(w.ensure("node1"), Status::Ok);
    add_agents();
  }
  void add_agents() {
    w.emitted.leave_out(kClass);
    std::string reason;
    GsiAgent agent;
    agent.name = "echo";
    agent.mgmt_class = kClass;
    agent.methods = {mad::method::kGet};
    agent.on_message = [this](const GsiMessage& message) {
      ++requests;
      mad::MadHeader header = message.header;
      header.method = mad::method::kGetResp;
      (void)w.gsi->respond(server, message.from, mad_of(header));
    };
    agent.on_port = [this](const GsiPortEvent& event) { events.push_back(event); };
    server = *w.gsi->add_agent(std::move(agent), reason);
    client = *w.gsi->add_agent({.name = "client", .mgmt_class = kClass}, reason);
  }
  // Sends node1 a request; returns the status, Pending if there is no answer within `span`.
  Status ask(Duration span = 100ms, std::uint32_t retries = 0) {
    auto status = std::make_shared<Status>(Status::Pending);
    const mad::Mad mad = request();
    const auto id = w.gsi->request(client, {w.address(0, 1), mad, 20ms, retries},
                                   [status](Status s, std::string_view, const GsiMessage*) {
                                     EXPECT_EQ(*status, Status::Pending) << "called twice";
                                     *status = s;
                                   });
    if (!id) return id.error();
    (void)w.comes([&] { return *status != Status::Pending; }, span);
    return *status;
  }
  static mad::Mad request() { return mad_of({1, kClass, 1, mad::method::kGet, 0, 0, 5, 7, 0, 0}); }
  int changes(std::uint32_t port, GsiPortChange change) const {
    int count = 0;
    for (const GsiPortEvent& event : events) {
      if (event.port == port && event.change == change) ++count;
    }
    return count;
  }

  ServicesWorld w{GetParam()};
  AgentId client = 0;
  AgentId server = 0;
  int requests = 0;
  std::vector<GsiPortEvent> events;
};
INSTANTIATE_TEST_SUITE_P(LinkLayers, GsiChangeTest,
                         ::testing::Values(verbs::LinkLayer::InfiniBand,
                                           verbs::LinkLayer::Ethernet),
                         [](const auto& layer) {
                           return layer.param == verbs::LinkLayer::Ethernet ? "Ethernet"
                                                                            : "InfiniBand";
                         });

TEST_P(GsiChangeTest, NothingHappensBeforeANodeIsEnsured) {
  const std::size_t objects = w.bench.objects();
  add_agents();
  w.run(1s);
  EXPECT_EQ(w.bench.objects(), objects);
  EXPECT_EQ(ask(), Status::InvalidState);
  EXPECT_EQ(w.ensure("nowhere"), Status::NotFound);
  EXPECT_TRUE(w.gsi->ports().empty());
  EXPECT_EQ(w.ensure("node0"), Status::Ok);
  EXPECT_EQ(w.gsi->ports().size(), 2u);
  EXPECT_TRUE(w.gsi->is_open(w.index(0)));
  EXPECT_FALSE(w.gsi->is_open(w.index(1)));
  EXPECT_EQ(w.ensure("node0"), Status::Ok) << "again";
  w.run();
  EXPECT_EQ(changes(w.index(0), GsiPortChange::Opened), 1);
  w.close();
  EXPECT_EQ(w.bench.objects(), objects) << "all of it is gone again";
}

TEST_P(GsiChangeTest, AnAgentHearsOfPortsThatAreOpenAlready) {
  ASSERT_EQ(w.ensure("node0"), Status::Ok);
  add_agents();
  EXPECT_TRUE(events.empty());
  w.run();
  EXPECT_EQ(changes(w.index(0), GsiPortChange::Opened), 1);
}

TEST_P(GsiChangeTest, AnotherOwnerOfQueuePairOneIsNamedAndThePortOpensWhenItHasGone) {
  io::DriverObject driver("somebody");
  al::Al al(w.system, driver);
  al::Ca ca(al);
  al::MadQp qp;
  Outcome opened;
  al.open("node0", "somebody", opened.start());
  ASSERT_TRUE(w.comes([&] { return opened.is_done(); }));
  Outcome found;
  ca.open("\\Device\\ibal", found.start());
  ASSERT_TRUE(w.comes([&] { return found.is_done(); }));
  Outcome owner;
  qp.open(ca, {verbs::QpType::Gsi, 1, 8}, owner.start());
  ASSERT_TRUE(w.comes([&] { return owner.is_done(); }));
  ASSERT_EQ(owner.irp.status, Status::Ok) << owner.irp.reason;

  std::string reason;
  EXPECT_EQ(w.ensure("node0", &reason), Status::AlreadyExists);
  EXPECT_NE(reason.find("somebody"), std::string::npos) << reason;
  EXPECT_FALSE(w.gsi->is_open(w.index(0)));
  EXPECT_TRUE(w.gsi->is_open(w.index(0) + 1)) << "the other port";
  EXPECT_EQ(w.gsi->ports().at(0).status, Status::AlreadyExists);

  Outcome closed[3];
  qp.close(closed[0].start());
  ASSERT_TRUE(w.comes([&] { return closed[0].is_done(); }));
  EXPECT_EQ(w.ensure("node0", &reason), Status::Ok) << reason;
  EXPECT_TRUE(w.gsi->is_open(w.index(0)));
  ca.close(closed[1].start());
  ASSERT_TRUE(w.comes([&] { return closed[1].is_done(); }));
  al.close(closed[2].start());
  ASSERT_TRUE(w.comes([&] { return closed[2].is_done(); }));
}

TEST_P(GsiChangeTest, ThePortThatIsDownLosesWhatIsSentAndGoesOnAfterwards) {
  open();
  EXPECT_EQ(ask(), Status::Ok);
  for (const std::size_t end : {0u, 1u}) {
    w.set_port(end, false);
    EXPECT_EQ(ask(), Status::Timeout);
    w.set_port(end, true);
    EXPECT_EQ(ask(), Status::Ok);
  }
  w.run();
  EXPECT_GE(changes(w.index(0), GsiPortChange::Event), 2);
}

TEST_P(GsiChangeTest, ARequestOutlivesAShortAbsenceOfThePort) {
  open();
  w.set_port(0, false);
  auto status = std::make_shared<Status>(Status::Pending);
  const mad::Mad mad = request();
  ASSERT_TRUE(
      w.gsi->request(client, {w.address(0, 1), mad, 20ms, 10},
                     [status](Status s, std::string_view, const GsiMessage*) { *status = s; }));
  w.run(50ms);
  EXPECT_EQ(*status, Status::Pending);
  w.set_port(0, true);
  w.run(50ms);
  EXPECT_EQ(*status, Status::Ok);
}

TEST_P(GsiChangeTest, AnHcaThatSleepsLosesMadsAndHoldsNobodyUp) {
  open();
  for (const std::size_t end : {0u, 1u}) {
    w.power(end, io::SystemPower::Sleep);
    EXPECT_EQ(ask(), Status::Timeout);
    EXPECT_EQ(ask(), Status::Timeout);
    w.power(end, io::SystemPower::Working);
    EXPECT_EQ(ask(), Status::Ok) << end;
  }
}

TEST_P(GsiChangeTest, ANodeThatSleepsIsOpenedWhenItWakes) {
  w.power(0, io::SystemPower::Sleep);
  Outcome opened;
  w.gsi->ensure("node0", opened.start());
  w.run(1s);
  EXPECT_FALSE(opened.is_done());
  Outcome cancelled;
  w.gsi->ensure("node0", cancelled.start());
  cancelled.irp.cancel();
  EXPECT_EQ(cancelled.irp.status, Status::Cancelled);
  w.power(0, io::SystemPower::Working);
  w.run(1s);
  EXPECT_EQ(opened.irp.status, Status::Ok) << opened.irp.reason;
  EXPECT_EQ(opened.times, 1);
  EXPECT_TRUE(w.gsi->is_open(w.index(0)));
}

TEST_P(GsiChangeTest, AnHcaThatIsPulledOutEndsItsRequestsAndComesBack) {
  open();
  EXPECT_EQ(ask(), Status::Ok);
  auto status = std::make_shared<Status>(Status::Pending);
  const mad::Mad mad = request();
  w.gsi->remove_agent(server);
  GsiAddress to = w.address(0, 1);
  ASSERT_TRUE(
      w.gsi->request(client, {to, mad, 10s, 10},
                     [status](Status s, std::string_view, const GsiMessage*) { *status = s; }));
  // The refusal is on its way, and is lost with the HCA.
  ASSERT_EQ(w.eject(0), Status::Ok);
  w.run(100ms);
  EXPECT_TRUE(*status == Status::DeviceRemoved || *status == Status::Ok);
  EXPECT_FALSE(w.gsi->is_open(w.index(0)));
  EXPECT_EQ(ask(), Status::Timeout) << "nothing can be sent";
  ASSERT_EQ(w.plug_in(0), Status::Ok);
  w.run(100ms);
  EXPECT_TRUE(w.gsi->is_open(w.index(0)));
  EXPECT_EQ(ask(), Status::Ok);
}

TEST_P(GsiChangeTest, NobodyObjectsToARemovalOnOurAccount) {
  open();
  std::string reason;
  EXPECT_EQ(w.remove(0, &reason), Status::Ok) << reason;
  w.run(100ms);
  EXPECT_FALSE(w.gsi->is_open(w.index(0)));
  EXPECT_EQ(changes(w.index(0), GsiPortChange::Closed), 1);
  EXPECT_EQ(w.ensure("node0"), Status::Ok) << "there is no HCA that could not be opened";
  ASSERT_EQ(w.plug_in(0), Status::Ok);
  w.run(100ms);
  EXPECT_EQ(ask(), Status::Ok);
}

TEST_P(GsiChangeTest, AVetoedRemovalLetsUsBackIn) {
  open();
  io::DriverObject driver("somebody");
  al::Al al(w.system, driver);
  al::Ca ca(al);
  Outcome steps[4];
  al.open("node0", "somebody", steps[0].start());
  ASSERT_TRUE(w.comes([&] { return steps[0].is_done(); }));
  ca.open("\\Device\\ibal", steps[1].start());
  ASSERT_TRUE(w.comes([&] { return steps[1].is_done(); }));
  std::string reason;
  EXPECT_EQ(w.remove(0, &reason), Status::DeviceBusy);
  EXPECT_NE(reason.find("somebody"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("services"), std::string::npos) << reason;
  w.run(100ms);
  EXPECT_TRUE(w.gsi->is_open(w.index(0)));
  EXPECT_EQ(ask(), Status::Ok);
  ca.close(steps[2].start());
  ASSERT_TRUE(w.comes([&] { return steps[2].is_done(); }));
  al.close(steps[3].start());
  ASSERT_TRUE(w.comes([&] { return steps[3].is_done(); }));
}

TEST_P(GsiChangeTest, AQueuePairThatIsBrokenIsMadeAgain) {
  open();
  drivers::Core& core = w.bench.core();
  const std::uint32_t broken = core.special_qps[1].at(w.index(1));
  drivers::test::sure(w.bench.arena().qp(broken)).id.state.store(verbs::QpState::Error);
  drivers::raise_qp(core, *core.qps.find(broken), verbs::EventType::QpFatal);
  w.run(100ms);
  EXPECT_TRUE(w.gsi->is_open(w.index(1)));
  EXPECT_EQ(changes(w.index(1), GsiPortChange::Closed), 1);
  EXPECT_EQ(changes(w.index(1), GsiPortChange::Opened), 2);
  EXPECT_EQ(ask(), Status::Ok);
}

TEST_P(GsiChangeTest, CloseEndsEachRequestOnceAndCallsNobodyAfterwards) {
  open();
  int calls = 0;
  int after_close = 0;
  Outcome closed;
  const mad::Mad mad = request();
  GsiAnswer answer;
  Outcome by_irp;
  w.gsi->remove_agent(server);
  w.set_port(1, false);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(w.gsi->request(client, {w.address(0, 1), mad, 1s, 10},
                               [&](Status s, std::string_view, const GsiMessage*) {
                                 EXPECT_EQ(s, Status::Cancelled);
                                 ++calls;
                                 if (closed.is_done()) ++after_close;
                               }));
  }
  w.gsi->request(client, {w.address(0, 1), mad, 1s, 10}, answer, by_irp.start());
  w.gsi->close(closed.start());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(w.gsi->request(client, {w.address(0, 1), mad, 1s, 10}, {}).error(),
            Status::InvalidState);
  w.run(1s);
  EXPECT_EQ(closed.times, 1);
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(after_close, 0);
  EXPECT_EQ(by_irp.irp.status, Status::Cancelled);
  EXPECT_EQ(by_irp.times, 1);
  Outcome again;
  w.gsi->close(again.start());
  EXPECT_EQ(again.irp.status, Status::InvalidState);
  w.gsi.reset();
}

// At each moment of opening a node, in steps of the executor.
TEST_P(GsiChangeTest, CloseInTheMiddleOfOpeningEndsBoth) {
  for (int steps = 0; steps < 60; ++steps) {
    ServicesWorld world(GetParam());
    Outcome opened;
    Outcome closed;
    world.gsi->ensure("node0", opened.start());
    const Instant until = world.bench.executor.now() + 1s;
    for (int i = 0; i < steps; ++i) (void)world.bench.executor.step(until);
    world.gsi->close(closed.start());
    world.run(100ms);
    EXPECT_EQ(opened.times, 1) << steps;
    EXPECT_EQ(closed.times, 1) << steps;
    world.gsi.reset();
  }
}

TEST_P(GsiChangeTest, CloseWhileTheNodeSleepsWaitsForNothing) {
  open();
  w.power(0, io::SystemPower::Sleep);
  Outcome opening;
  Outcome closed;
  w.gsi->close(closed.start());
  w.run(10ms);
  EXPECT_EQ(closed.times, 1);
  w.gsi.reset();
  w.power(0, io::SystemPower::Working);

  ServicesWorld other(GetParam());
  other.power(0, io::SystemPower::Sleep);
  other.gsi->ensure("node0", opening.start());
  other.run(10ms);
  Outcome closed_too;
  other.gsi->close(closed_too.start());
  other.run(10ms);
  EXPECT_EQ(opening.irp.status, Status::Cancelled);
  EXPECT_EQ(closed_too.times, 1);
  other.gsi.reset();
  other.power(0, io::SystemPower::Working);
}

}  // namespace
}  // namespace ib::services::test
