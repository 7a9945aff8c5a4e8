// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/fabric_tree.h"

#include "drivers/diagnostics/status.h"
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/test/driver_bench_test.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace ib::drivers::test {
namespace {

using control::ChangeHcaIn;
using control::ChangePartitionIn;
using control::EventOut;
using control::HcaAction;
using control::PowerState;
using control::SetPowerIn;
using testing::HasSubstr;
using verbs::EventType;
using Json = nlohmann::json;

struct Tree : Bench {
  Tree() : a(*this, 11, "node0"), b(*this, 12, "node1"), tool(*this, 13, "", false) {}

  template <class In, class Out = Nothing>
  Reply<Out> ask(Code code, const In& in) {
    return tool.root_call<Out>(code, in);
  }
  Reply<control::CaName> hca(HcaAction action, const char* node = "node0",
                             const char* ca = "softib0") {
    ChangeHcaIn in;
    put_text(in.node, node);
    put_text(in.ca, ca);
    in.action = action;
    return ask<ChangeHcaIn, control::CaName>(Code::ChangeHca, in);
  }
  Reply<Nothing> power(PowerState state, const char* node = "node0") {
    SetPowerIn in;
    put_text(in.node, node);
    in.state = state;
    return ask(Code::SetPower, in);
  }
  Reply<Nothing> partition(std::uint16_t pkey, bool remove, const char* name = "ione") {
    ChangePartitionIn in;
    put_text(in.ca, "softib0");
    in.port = 1;
    in.pkey = pkey;
    in.remove = remove ? 1 : 0;
    put_text(in.name, name);
    return ask(Code::ChangePartition, in);
  }
  Json devices() {
    EXPECT_EQ(tool.root_call(Code::Devices).status, Status::Ok);
    return Json::parse(host.last_text);
  }
  Json hca_json(std::size_t node = 0) { return devices()["tree"]["children"][node]["children"][0]; }
  // The next event of a process, or CqErr with file 99 if there is none.
  EventOut event(Process& of) {
    auto request = of.start(of.zero(), Code::WaitEvent, Nothing{});
    executor.advance(std::chrono::milliseconds(1));
    if (!request->done) {
      request->irp.cancel();
      return {EventType::CqErr, control::EventObject::Cq, 99, 0, 0};
    }
    return of.finish<EventOut>(*request).out;
  }
  verbs::PortState port_state(std::uint32_t port) { return arena().port(port)->state.load(); }

  Process a;
  Process b;
  Process tool;
};

TEST(FabricTree, HasTheShapeOfTheFabric) {
  Tree t;
  const Json json = t.devices();
  EXPECT_EQ(json["tree"]["id"], "ROOT\\SOFTIB\\0");
  const Json host = json["tree"]["children"][1];
  EXPECT_EQ(host["id"], "SOFTIB\\HOST\\node1");
  EXPECT_EQ(host["state"], "started");
  const Json hca = host["children"][0];
  EXPECT_EQ(hca["driver"], "soft_hca");
  EXPECT_EQ(hca["filters"], Json::array({"ib_bus"}));
  EXPECT_EQ(hca["open_files"], Json::array({12}));
  ASSERT_EQ(hca["children"].size(), 2u);
  EXPECT_EQ(hca["children"][1]["id"], "IBA\\IPoIB\\0253460000010002-ffff-ipoib");
  EXPECT_EQ(hca["children"][1]["state"], "no driver");
  EXPECT_EQ(hca["children"][1]["compatible_ids"][0], "IBA\\SID_1000066a00020000");
  EXPECT_EQ(json["drivers"][0]["references"], "2 devices, 1 dependent driver");
}

TEST(FabricTree, RemovingAnHcaInUseIsVetoedWithTheNamesOfItsUsers) {
  Tree t;
  const auto refused = t.hca(HcaAction::Remove);
  EXPECT_EQ(refused.status, Status::DeviceBusy);
  EXPECT_EQ(refused.reason, "HCA softib0 is in use by pid 11 (test) on node0");
  EXPECT_EQ(t.hca_json()["state"], "started");
  t.a.pd();  // nothing has changed
  t.a.exit();
  EXPECT_EQ(t.hca(HcaAction::Remove).status, Status::Ok);
  EXPECT_EQ(t.devices()["tree"]["children"][0]["children"], Json::array());
  EXPECT_EQ(t.port_state(0), verbs::PortState::Down);
  EXPECT_EQ(t.hca(HcaAction::Remove).status, Status::NotFound);
  std::string reason;
  EXPECT_EQ(t.tree->resolve("node0", "\\Device\\ibal", reason).error(), Status::NotFound);

  const auto added = t.hca(HcaAction::Add, "node0", "");
  EXPECT_EQ(added.status, Status::Ok) << added.reason;
  EXPECT_STREQ(added.out.name.data(), "softib0");
  EXPECT_EQ(t.port_state(0), verbs::PortState::Active);
  Process again(t, 21, "node0");
  again.pd();
}

TEST(FabricTree, ANewHcaGetsANameAndPorts) {
  Tree t;
  EXPECT_EQ(t.hca(HcaAction::Add).status, Status::AlreadyExists);
  EXPECT_EQ(t.hca(HcaAction::Add, "node0", "mlx5_0").status, Status::NotFound);
  const auto added = t.hca(HcaAction::Add, "node1", "softib1");
  EXPECT_EQ(added.status, Status::Ok) << added.reason;
  EXPECT_EQ(added.out.node_guid, 0x0253460000010100u);
  Process late(t, 22, "node1", false);
  AttachIn in;
  put_text(in.node, "node1");
  EXPECT_EQ(late.root_call<AttachOut>(Code::Attach, in).out.ca_count, 2u);
  EXPECT_EQ(t.hca(HcaAction::Add, "nowhere").status, Status::NotFound);
}

TEST(FabricTree, EjectKillsFilesButLetsProgramsCleanUp) {
  Tree t;
  const std::uint32_t pd = t.a.pd();
  const std::uint32_t cq = t.a.cq();
  const auto qp = t.a.qp(verbs::QpType::Rc, pd, cq);
  const auto peer = t.b.qp(verbs::QpType::Rc, t.b.pd(), t.b.cq());
  t.a.connect(qp.handle, peer.out.qpn, 3);
  t.b.connect(peer.handle, qp.out.qpn, 1);
  EXPECT_EQ(t.hca(HcaAction::Eject).status, Status::Ok);

  const EventOut event = t.event(t.a);
  EXPECT_EQ(event.type, EventType::DeviceFatal);
  EXPECT_EQ(event.object, control::EventObject::Device);
  EXPECT_EQ(event.file, 1u);
  EXPECT_EQ(t.event(t.b).file, 99u);
  EXPECT_EQ(t.arena().qp(qp.out.qpn & (hca::kMaxQps - 1))->id.state.load(), verbs::QpState::Error);
  // The peer's retries end.
  t.executor.advance(std::chrono::seconds(5));
  EXPECT_EQ(t.arena().qp(peer.out.qpn & (hca::kMaxQps - 1))->id.state.load(),
            verbs::QpState::Error);
  EXPECT_THAT(t.trace(), HasSubstr("the HCA of its peer"));

  const auto refused = t.a.call(Code::AllocPd);
  EXPECT_EQ(refused.status, Status::DeviceRemoved);
  EXPECT_EQ(refused.reason, "HCA softib0 was pulled out; close it");
  EXPECT_EQ(t.devices()["leaving"][0]["state"], "surprise-removed");
  // A new HCA in the same place is another device.
  EXPECT_EQ(t.hca(HcaAction::Add).status, Status::Ok);
  EXPECT_EQ(t.a.call(Code::AllocPd).status, Status::DeviceRemoved);
  {
    Process fresh(t, 23, "node0");
    fresh.pd();
  }
  EXPECT_EQ(t.a.call(Code::DestroyQp, control::IndexIn{qp.handle, 0}).status, Status::Ok);
  EXPECT_EQ(t.a.call(Code::DestroyCq, control::IndexIn{cq, 0}).status, Status::Ok);
  EXPECT_EQ(t.a.call(Code::DeallocPd, control::IndexIn{pd, 0}).status, Status::Ok);
  t.a.exit();
  t.b.exit();
  t.executor.advance(std::chrono::seconds(1));
  EXPECT_EQ(t.devices()["leaving"], Json::array());
  EXPECT_EQ(t.objects(), 0u);
}

TEST(FabricTree, AnHcaInThePlaceOfAnotherHasItsCablesInAndNoTrafficYet) {
  Tree t;
  const auto qp = t.a.qp(verbs::QpType::Rc, t.a.pd(), t.a.cq());
  t.arena().qp(qp.out.qpn & (hca::kMaxQps - 1))->requester.messages.store(7);
  t.core().port_totals[0].sent_bytes = 4096;
  const auto port = [&] {
    return Json::parse(status_json(t.core()))["nodes"][0]["hcas"][0]["ports"][0];
  };
  EXPECT_EQ(port()["counters"]["sent_messages"], 7);
  const fabric::Port& model = t.core().fabric.nodes()[0].hcas[0].ports[0];
  const std::uint32_t capabilities = model.capability_mask;
  EXPECT_NE(capabilities, 0u);
  control::SetPortIn down;
  put_text(down.node, "node0");
  put_text(down.ca, "softib0");
  down.port = 1;
  EXPECT_EQ(t.tool.root_call(Code::SetPort, down).status, Status::Ok);
  EXPECT_EQ(port()["state"], "down");
  EXPECT_EQ(t.hca(HcaAction::Eject).status, Status::Ok);
  EXPECT_EQ(t.hca(HcaAction::Add).status, Status::Ok);
  EXPECT_EQ(port()["state"], "active");
  EXPECT_EQ(port()["counters"]["sent_messages"], 0);
  EXPECT_EQ(port()["counters"]["sent_bytes"], 0);
  EXPECT_EQ(model.capability_mask, capabilities);
  // Nor does it get what the old one's queue pairs had counted when they are destroyed at last.
  EXPECT_EQ(t.a.call(Code::DestroyQp, control::IndexIn{qp.handle, 0}).status, Status::Ok);
  EXPECT_EQ(port()["counters"]["sent_messages"], 0);
}

TEST(FabricTree, AnHcaThatIsAddedAsItsHostFallsAsleepIsRefused) {
  Tree t;
  SetPowerIn sleep;
  put_text(sleep.node, "node0");
  sleep.state = PowerState::Sleep;
  const auto asleep = t.tool.start(t.tool.zero(), Code::SetPower, sleep);
  ChangeHcaIn add;
  put_text(add.node, "node0");
  add.action = HcaAction::Add;
  const auto added = t.tool.start(t.tool.zero(), Code::ChangeHca, add);
  EXPECT_EQ(t.tool.finish<Nothing>(*asleep).status, Status::Ok);
  const auto refused = t.tool.finish<control::CaName>(*added);
  EXPECT_EQ(refused.status, Status::InvalidState);
  EXPECT_THAT(refused.reason, HasSubstr("sleeps"));
  EXPECT_EQ(t.devices()["tree"]["children"][0]["children"].size(), 1u);
  EXPECT_EQ(t.power(PowerState::Working).status, Status::Ok);
  EXPECT_EQ(t.hca(HcaAction::Add, "node0", "softib1").status, Status::Ok);
}

TEST(FabricTree, RequestsWaitWhileTheHcaSleepsAndEndAfterwards) {
  Tree t;
  EXPECT_EQ(t.power(PowerState::Sleep).status, Status::Ok);
  EXPECT_EQ(t.port_state(0), hca::kPortAsleep);
  EXPECT_EQ(t.event(t.a).type, EventType::PortErr);
  EXPECT_EQ(t.hca_json()["power"], "D3");
  const auto waiting = t.a.begin(Code::AllocPd, Nothing{});
  const auto cancelled = t.a.begin(Code::AllocPd, Nothing{});
  t.executor.advance(std::chrono::seconds(10));
  EXPECT_FALSE(waiting->done);
  cancelled->irp.cancel();
  EXPECT_EQ(t.a.finish<Nothing>(*cancelled).status, Status::Cancelled);
  t.b.pd();  // another host is awake
  EXPECT_EQ(t.power(PowerState::Hibernate).status, Status::InvalidState);
  EXPECT_EQ(t.hca(HcaAction::Add, "node0", "softib1").status, Status::InvalidState);
  EXPECT_EQ(t.power(PowerState::Working).status, Status::Ok);
  EXPECT_EQ(t.a.finish<Nothing>(*waiting).status, Status::Ok);
  EXPECT_EQ(t.event(t.a).type, EventType::PortErr);  // of port 2
  EXPECT_EQ(t.event(t.a).type, EventType::PortActive);
  EXPECT_EQ(t.port_state(0), verbs::PortState::Active);
}

TEST(FabricTree, WhatWaitsForASleepingHcaFailsWhenThatIsEjected) {
  Tree t;
  const control::IndexIn pd{t.a.pd(), 0};
  EXPECT_EQ(t.power(PowerState::Sleep, "").status, Status::Ok);
  const auto waiting = t.a.begin(Code::AllocPd, Nothing{});
  const auto destroys = t.a.begin(Code::DeallocPd, pd);
  EXPECT_EQ(t.hca(HcaAction::Eject).status, Status::Ok);
  EXPECT_EQ(t.a.finish<Nothing>(*destroys).status, Status::Ok);
  EXPECT_EQ(t.a.finish<Nothing>(*waiting).status, Status::DeviceRemoved);
  // A process may die in its sleep.
  t.b.exit();
  EXPECT_EQ(t.power(PowerState::Working, "").status, Status::Ok);
  EXPECT_EQ(t.objects(), 0u);
}

TEST(FabricTree, APortThatGoesDownWhileItSleepsIsDownAfterwards) {
  Tree t;
  EXPECT_EQ(t.power(PowerState::Sleep).status, Status::Ok);
  control::SetPortIn in;
  put_text(in.ca, "softib0");
  in.port = 1;
  EXPECT_EQ(t.ask(Code::SetPort, in).status, Status::Ok);
  EXPECT_EQ(t.port_state(0), hca::kPortAsleep);
  EXPECT_EQ(t.power(PowerState::Working).status, Status::Ok);
  EXPECT_EQ(t.port_state(0), verbs::PortState::Down);
}

TEST(FabricTree, PartitionsAreEntriesEventsAndChildren) {
  Tree t;
  EXPECT_EQ(t.partition(0x8001, false).status, Status::Ok);
  EXPECT_EQ(t.event(t.a).type, EventType::PkeyChange);
  EXPECT_EQ(t.a.call<control::PkeyOut>(Code::QueryPkey, control::TableIn{1, 1}).out.pkey, 0x8001);
  const Json children = t.hca_json()["children"];
  ASSERT_EQ(children.size(), 3u);
  EXPECT_EQ(children[2]["id"], "IBA\\IPoIBP\\0253460000000001-8001-ione");
  EXPECT_EQ(t.partition(0x0001, false, "itwo").status, Status::AlreadyExists);
  EXPECT_EQ(t.partition(0x8002, false, "ione").status, Status::AlreadyExists);
  EXPECT_EQ(t.partition(0x8002, false, "x").status, Status::InvalidParameter);
  EXPECT_EQ(t.partition(0x8000, false, "izero").status, Status::InvalidParameter);
  EXPECT_EQ(t.partition(0x8003, false, "eth").status, Status::Ok);
  EXPECT_EQ(t.hca_json()["children"][3]["hardware_ids"][0], "IBA\\EoIB");

  const std::uint32_t cq = t.a.cq();
  const auto qp = t.a.qp(verbs::QpType::Ud, t.a.pd(), cq);
  QpAttr attr;
  attr.port = 1;
  attr.pkey_index = 1;
  namespace m = verbs::qp_attr;
  t.a.good(t.a.modify(qp.handle, verbs::QpState::Init, m::kPort | m::kPkeyIndex | m::kQkey, attr));
  const auto busy = t.partition(0x8001, true);
  EXPECT_EQ(busy.status, Status::DeviceBusy);
  EXPECT_EQ(busy.reason, "queue pairs use P_Key 0x8001: pid 11 (test) on node0");
  t.a.good(t.a.call(Code::DestroyQp, control::IndexIn{qp.handle, 0}));
  EXPECT_EQ(t.partition(0x8001, true).status, Status::Ok);
  EXPECT_EQ(t.partition(0x8001, true).status, Status::NotFound);
  EXPECT_EQ(t.hca_json()["children"].size(), 3u);
  // The table keeps the place of those behind it.
  EXPECT_EQ(t.a.call<control::PkeyOut>(Code::QueryPkey, control::TableIn{1, 1}).out.pkey, 0);
  EXPECT_EQ(t.a.call<control::PkeyOut>(Code::QueryPkey, control::TableIn{1, 2}).out.pkey, 0x8003);
}

// On hardware nobody has a veto. Here programs have, but a driver follows the table at the event.
TEST(FabricTree, AQueuePairOfADriverDoesNotKeepItsPartition) {
  Tree t;
  Process driver(t, 14, "node0", true, control::attach_flag::kCaEvents);
  ASSERT_EQ(t.partition(0x8001, false).status, Status::Ok);
  EXPECT_EQ(t.event(driver).type, EventType::PkeyChange);
  const auto qp = driver.qp(verbs::QpType::Ud, driver.pd(), driver.cq());
  QpAttr attr;
  attr.port = 1;
  attr.pkey_index = 1;
  namespace m = verbs::qp_attr;
  driver.good(
      driver.modify(qp.handle, verbs::QpState::Init, m::kPort | m::kPkeyIndex | m::kQkey, attr));
  EXPECT_EQ(t.partition(0x8001, true).status, Status::Ok);
  EXPECT_EQ(t.event(driver).type, EventType::PkeyChange);
  EXPECT_EQ(t.partition(0x8001, false).status, Status::Ok);
}

// Each port has a table of its own: a queue pair keeps the partition of its port and no other.
TEST(FabricTree, AQueuePairKeepsThePartitionOfItsOwnPort) {
  Tree t;
  const auto change = [&t](std::uint8_t port, bool remove) {
    ChangePartitionIn in;
    put_text(in.ca, "softib0");
    in.port = port;
    in.pkey = 0x8001;
    in.remove = remove ? 1 : 0;
    put_text(in.name, "ione");
    return t.ask(Code::ChangePartition, in).status;
  };
  for (const std::uint8_t port : {std::uint8_t{1}, std::uint8_t{2}}) {
    SCOPED_TRACE(int{port});
    const auto other = static_cast<std::uint8_t>(3 - port);
    ASSERT_EQ(change(1, false), Status::Ok);
    ASSERT_EQ(change(2, false), Status::Ok);
    const auto qp = t.a.qp(verbs::QpType::Ud, t.a.pd(), t.a.cq());
    QpAttr attr;
    attr.port = port;
    attr.pkey_index = 1;
    namespace m = verbs::qp_attr;
    t.a.good(
        t.a.modify(qp.handle, verbs::QpState::Init, m::kPort | m::kPkeyIndex | m::kQkey, attr));
    EXPECT_EQ(change(port, true), Status::DeviceBusy);
    EXPECT_EQ(change(other, true), Status::Ok);
    t.a.good(t.a.call(Code::DestroyQp, control::IndexIn{qp.handle, 0}));
    EXPECT_EQ(change(port, true), Status::Ok);
  }
}

TEST(FabricTree, APartitionThatIsAddedWhileItsHcaGoesIsThereWhenItIsBack) {
  Tree t;
  t.a.exit();
  ChangeHcaIn remove;
  put_text(remove.ca, "softib0");
  remove.action = HcaAction::Remove;
  const auto removal = t.tool.start(t.tool.zero(), Code::ChangeHca, remove);
  EXPECT_EQ(t.partition(0x8001, false).status, Status::Ok);
  EXPECT_EQ(t.tool.finish<Nothing>(*removal).status, Status::Ok);
  EXPECT_EQ(t.hca(HcaAction::Add).status, Status::Ok);
  EXPECT_EQ(t.hca_json()["children"].size(), 3u);
}

TEST(FabricTree, DriversInUseStay) {
  Tree t;
  control::ChangeDriverIn in;
  put_text(in.name, "ib_bus");
  in.unload = 1;
  const auto busy = t.ask(Code::ChangeDriver, in);
  EXPECT_EQ(busy.status, Status::DeviceBusy);
  EXPECT_THAT(busy.reason, HasSubstr("is in use by pid 1"));
  put_text(in.name, "soft_hca");
  EXPECT_THAT(t.ask(Code::ChangeDriver, in).reason, HasSubstr("ib_bus is loaded and depends on"));
  t.a.exit();
  t.b.exit();
  t.executor.advance(std::chrono::milliseconds(10));
  put_text(in.name, "ib_bus");
  EXPECT_EQ(t.ask(Code::ChangeDriver, in).status, Status::Ok);
  EXPECT_EQ(t.hca_json()["filters"], Json::array());
  put_text(in.name, "nothing");
  in.unload = 0;
  EXPECT_EQ(t.ask(Code::ChangeDriver, in).status, Status::NotFound);
}

TEST(FabricTree, ADeviceThatStartsWhileItsDriverIsUnloadedLosesItToo) {
  Tree t;
  t.a.exit();
  t.b.exit();
  t.executor.advance(std::chrono::milliseconds(10));
  ChangeHcaIn add;
  put_text(add.node, "node0");
  add.action = HcaAction::Add;
  control::ChangeDriverIn unload;
  put_text(unload.name, "ib_bus");
  unload.unload = 1;
  const auto added = t.tool.start(t.tool.zero(), Code::ChangeHca, add);
  const auto unloaded = t.tool.start(t.tool.zero(), Code::ChangeDriver, unload);
  const auto reply = t.tool.finish<Nothing>(*unloaded);
  EXPECT_EQ(reply.status, Status::Ok) << reply.reason;
  EXPECT_EQ(t.tool.finish<control::CaName>(*added).status, Status::Ok);
  const Json hcas = t.devices()["tree"]["children"][0]["children"];
  for (const Json& hca : hcas) {
    EXPECT_EQ(hca["state"], "started");
    EXPECT_EQ(hca["filters"], Json::array());
  }
  EXPECT_EQ(hcas.size(), 2u);
}

TEST(FabricTree, NamesCanBeListed) {
  Tree t;
  control::ViewIn in;
  put_text(in.path, "\\Device\\ibal");
  EXPECT_EQ(t.ask(Code::ListNames, in).status, Status::Ok);
  const Json names = Json::parse(t.host.last_text);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0]["name"], "0253460000000000");
  EXPECT_EQ(names[0]["target"], "\\Device\\softib0");
  put_text(in.path, "\\Nothing");
  EXPECT_EQ(t.ask(Code::ListNames, in).status, Status::NotFound);
}

TEST(FabricTree, ShutsDownOnce) {
  Tree t;
  EXPECT_EQ(t.power(PowerState::Shutdown).status, Status::InvalidParameter);
  EXPECT_EQ(t.power(PowerState::Shutdown, "").status, Status::Ok);
  EXPECT_EQ(t.hca_json()["system_power"], "shutdown");
  bool done = false;
  t.tree->shut_down([&] { done = true; });
  t.executor.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(done);
}

// Only those of the same node, and only those that have subscribed.
TEST(FabricTree, ProcessesThatAskHearOfHcasThatComeAndGo) {
  Tree t;
  Process watcher(t, 14, "node0", true, control::attach_flag::kCaEvents);
  Process elsewhere(t, 15, "node1", true, control::attach_flag::kCaEvents);
  const auto added = t.hca(HcaAction::Add, "node0", "");
  ASSERT_EQ(added.status, Status::Ok);
  const EventOut came = t.event(watcher);
  EXPECT_EQ(came.type, EventType::CaAdded);
  EXPECT_EQ(came.object, control::EventObject::Device);
  EXPECT_EQ(came.cookie, added.out.node_guid);
  ASSERT_EQ(t.hca(HcaAction::Eject, "node0", "softib1").status, Status::Ok);
  const EventOut left = t.event(watcher);
  EXPECT_EQ(left.type, EventType::CaRemoved);
  EXPECT_EQ(left.cookie, added.out.node_guid);
  EXPECT_EQ(t.event(watcher).file, 99u);
  EXPECT_EQ(t.event(elsewhere).file, 99u);
  EXPECT_EQ(t.event(t.a).file, 99u);
}

// Nothing is lost in silence: in the place of what did not fit stands how much it was.
TEST(FabricTree, AQueueOfEventsThatRunsOverSaysSo) {
  Tree t;
  Session& session = *session_of_slot(t.core(), t.a.attach.slot);
  const auto push = [&](std::uint32_t index) {
    push_event(t.core(), session, {EventType::PortErr, control::EventObject::Port, 1, index, 0});
  };
  for (std::uint32_t i = 0; i < kMaxEvents + 5; ++i) push(i);
  for (std::uint32_t i = 0; i < kMaxEvents; ++i) ASSERT_EQ(t.event(t.a).index, i);
  push(77);
  const EventOut gap = t.event(t.a);
  EXPECT_EQ(gap.type, EventType::EventsLost);
  EXPECT_EQ(gap.index, 5u);
  EXPECT_EQ(t.event(t.a).index, 77u);
  EXPECT_EQ(t.event(t.a).file, 99u);
}

}  // namespace
}  // namespace ib::drivers::test
