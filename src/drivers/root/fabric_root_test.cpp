// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// File 0: processes, events, views, status, trace.
#include "drivers/test/driver_bench_test.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using verbs::EventType;
using verbs::QpType;

TEST(FabricRoot, AttachGivesASlotAndTheHcasOfTheNode) {
  Bench b;
  Process p(b, 11, "node1");
  EXPECT_EQ(p.attach.ca_count, 1u);
  EXPECT_EQ(text_in(p.attach.cas[0].name), "softib0");
  EXPECT_EQ(text_in(p.attach.node), "node1");
  const hca::ProcessSlot& slot = *b.arena().slot(p.attach.slot);
  EXPECT_EQ(slot.live.load(), 1u);
  EXPECT_EQ(slot.generation.load(), p.attach.slot_generation);
  EXPECT_EQ(slot.pid, 11u);
  EXPECT_STREQ(slot.program.data(), "test");
  EXPECT_EQ(b.arena().header().slots_used.load(), 1u);
  EXPECT_EQ(p.root_call<AttachOut>(Code::Attach, AttachIn{}).status, Status::InvalidState);
}

TEST(FabricRoot, AttachThatCannotWorkIsRefused) {
  Bench b;
  Process p(b, 11, "", false);
  AttachIn in;
  in.abi = 99;
  EXPECT_EQ(p.root_call<AttachOut>(Code::Attach, in).status, Status::NotSupported);
  in.abi = kAbiVersion;
  put_text(in.node, "nowhere");
  EXPECT_EQ(p.root_call<AttachOut>(Code::Attach, in).status, Status::NotFound);
  EXPECT_EQ(p.root_call(Code::CreateChannel).status, Status::InvalidState);
}

TEST(FabricRoot, AnEventGoesToAnyConnectionOfTheProcess) {
  Bench b;
  Process p(b, 11, "node0");
  Process poster(b, 12, "node1");
  Process events(b, 11, "", false);  // a second connection of the same process
  const auto made = p.qp(QpType::Rc, p.pd(), p.cq());
  const GenerationIn who{p.attach.slot, p.attach.slot_generation};
  const auto foreign = poster.start(poster.zero(), Code::WaitEvent, who);
  ASSERT_TRUE(foreign->done);
  EXPECT_EQ(poster.finish<EventOut>(*foreign).status, Status::AccessDenied);
  const auto waiting = events.start(events.zero(), Code::WaitEvent, who);
  EXPECT_FALSE(waiting->done);
  RaiseEventIn in{EventObject::Qp, control::index_of(made.handle), made.out.generation,
                  EventType::CommEst};
  poster.good(poster.root_call(Code::RaiseEvent, in));
  const auto event = events.finish<EventOut>(*waiting);
  EXPECT_EQ(event.out.type, EventType::CommEst);
  EXPECT_EQ(event.out.file, 1u);
  EXPECT_EQ(event.out.index, control::index_of(made.handle));
  EXPECT_EQ(event.out.cookie, 99u);

  in.generation ^= 1;  // an object that is no more: dropped, no error
  poster.good(poster.root_call(Code::RaiseEvent, in));
  in.type = EventType::DeviceFatal;
  EXPECT_EQ(poster.root_call(Code::RaiseEvent, in).status, Status::InvalidParameter);
  const auto last = events.start(events.zero(), Code::WaitEvent, who);
  p.exit();
  EXPECT_EQ(events.finish<EventOut>(*last).status, Status::Disconnected);
}

// It is the same error, whoever finds it.
TEST(FabricRoot, ACompletionQueueInErrorBreaksItsQueuePairsOnce) {
  Bench b;
  Process p(b, 11, "node0");
  Process poster(b, 12, "node1");
  const std::uint32_t pd = p.pd();
  const auto lost = p.call<CqOut>(Code::CreateCq, CreateCqIn{20, kNoIndex, 0, 0, 77});
  CreateQpIn in = p.qp_in(QpType::Rc, pd, p.cq());
  in.recv_cq = lost.handle;
  const auto receiver = p.call<QpOut>(Code::CreateQp, in);
  const auto bystander = p.qp(QpType::Rc, pd, p.cq());
  p.connect(receiver.handle, bystander.out.qpn, 1);
  p.connect(bystander.handle, receiver.out.qpn, 1);
  const auto unconnected = p.qp(QpType::Rc, pd, lost.handle);
  const std::uint32_t index = control::index_of(lost.handle);
  const RaiseEventIn error{EventObject::Cq, index, b.arena().cq(index)->id.generation.load(),
                           EventType::CqErr};
  for (int i = 0; i < 2; ++i) poster.good(poster.root_call(Code::RaiseEvent, error));
  const auto& events = b.core().by_slot[p.attach.slot]->events;
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].type, EventType::CqErr);
  EXPECT_EQ(events[0].cookie, 77u);
  EXPECT_EQ(events[1].type, EventType::QpFatal);
  EXPECT_EQ(events[1].index, control::index_of(receiver.handle));
  const auto state = [&](const auto& qp) {
    return b.arena().qp(control::index_of(qp.handle))->id.state.load();
  };
  EXPECT_EQ(state(receiver), verbs::QpState::Error);
  EXPECT_EQ(state(bystander), verbs::QpState::Rts);
  EXPECT_EQ(state(unconnected), verbs::QpState::Reset);
  EXPECT_NE(b.trace().find("ran over"), std::string::npos);
}

TEST(FabricRoot, EventsThatNobodyTakesAreBounded) {
  Bench b;
  Process p(b, 11, "node0");
  const auto made = p.qp(QpType::Rc, p.pd(), p.cq());
  const RaiseEventIn in{EventObject::Qp, control::index_of(made.handle), made.out.generation,
                        EventType::QpFatal};
  for (int i = 0; i < 5000; ++i) p.good(p.root_call(Code::RaiseEvent, in));
  EXPECT_EQ(b.core().by_slot[p.attach.slot]->events.size(), 4097u)
      << "one says how many are missing";
  EXPECT_NE(b.trace().find("does not take its asynchronous events"), std::string::npos);
}

TEST(FabricRoot, APortGoesDownAndUpWithEvents) {
  Bench b;
  Process p(b, 11, "node0");
  Process other(b, 12, "node1");
  SetPortIn in;
  put_text(in.node, "node0");
  put_text(in.ca, "softib0");
  in.port = 2;
  p.good(other.root_call(Code::SetPort, in));
  const std::uint32_t index = b.fabric.nodes()[0].hcas[0].first_port + 1;
  EXPECT_EQ(b.arena().port(index)->state.load(), verbs::PortState::Down);
  const auto event = p.root_call<EventOut>(Code::WaitEvent);
  EXPECT_EQ(event.out.type, EventType::PortErr);
  EXPECT_EQ(event.out.index, 2u);
  EXPECT_EQ(p.call<PortAttr>(Code::QueryPort, PortIn{2, 0}).out.state, verbs::PortState::Down);
  in.up = 1;
  p.good(other.root_call(Code::SetPort, in));
  EXPECT_EQ(p.root_call<EventOut>(Code::WaitEvent).out.type, EventType::PortActive);
  in.port = 3;
  EXPECT_EQ(other.root_call(Code::SetPort, in).status, Status::NotFound);
}

TEST(FabricRoot, OnlyAnInfiniBandPortGoesDownWithALid) {
  for (const auto link_layer : {verbs::LinkLayer::InfiniBand, verbs::LinkLayer::Ethernet}) {
    Bench b(0, {}, link_layer);
    Process tool(b, 11, "", false);
    SetPortIn in;
    put_text(in.node, "node0");
    put_text(in.ca, "softib0");
    in.port = 2;
    tool.good(tool.root_call(Code::SetPort, in));
    const bool is_ethernet = link_layer == verbs::LinkLayer::Ethernet;
    EXPECT_NE(b.trace().find(is_ethernet ? "of node0 is down" : "of node0 (LID 2) is down"),
              std::string::npos)
        << b.trace();
  }
}

TEST(FabricRoot, StatusIsJsonWithStableKeys) {
  Bench b;
  Process p(b, 11, "node0");
  const auto qp = p.qp(QpType::Rc, p.pd(), p.cq());
  b.arena().qp(control::index_of(qp.handle))->requester.messages.store(5);
  b.arena().qp(control::index_of(qp.handle))->requester.bytes.store(500);
  b.arena().qp(control::index_of(qp.handle))->requester.blocked.store(Cause::NoReceive);
  p.good(p.root_call(Code::Status));
  const auto json = nlohmann::json::parse(b.host.last_text);
  EXPECT_EQ(json["nodes"][0]["hcas"][0]["ports"][0]["counters"]["sent_bytes"], 500);
  EXPECT_EQ(json["nodes"][0]["hcas"][0]["objects"]["qp"], 1);
  EXPECT_EQ(json["clients"][0]["pid"], 11);
  EXPECT_EQ(json["clients"][0]["objects"]["cq"], 1);
  EXPECT_EQ(json["objects"]["pd"], 1);
  EXPECT_EQ(json["blocked"][0]["cause"], "no_receive");
  EXPECT_GT(json["memory"]["used"], 0);
  // The messages of a queue pair stay counted when it is gone.
  p.good(p.call(Code::DestroyQp, IndexIn{qp.handle, 0}));
  const auto later = b.root->status();
  EXPECT_EQ(later["nodes"][0]["hcas"][0]["ports"][0]["counters"]["sent_messages"], 5);
}

TEST(FabricRoot, QuestionsAboutProgramsThatHaveEndedLeaveNoLine) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint64_t before = b.core().trace.last();
  EXPECT_EQ(p.root_call(Code::GetChannel, GenerationIn{77, 1}).status, Status::NotFound);
  EXPECT_EQ(p.root_call<BackingOut>(Code::GetBacking, GenerationIn{77, 1}).status,
            Status::NotFound);
  EXPECT_EQ(p.root_call<EventOut>(Code::WaitEvent, GenerationIn{77, 1}).status,
            Status::Disconnected);
  TraceErrorIn in;
  in.qp_index = 5000;
  EXPECT_EQ(p.root_call(Code::TraceError, in).status, Status::InvalidParameter);
  EXPECT_EQ(b.core().trace.last(), before) << b.trace();
}

TEST(FabricRoot, AKeyThatDoesNotCoverTheRequestIsNamedWithItsRange) {
  Bench b;
  Process p(b, 11, "node0");
  const auto qp = p.qp(QpType::Rc, p.pd(), p.cq());
  const auto region = p.mr(p.pd());
  TraceErrorIn in;
  in.qp_index = control::index_of(qp.handle);
  in.status = verbs::WcStatus::RemAccessErr;
  in.opcode = verbs::WrOpcode::RdmaRead;
  in.cause = Cause::RemoteKeyRange;
  in.key = region.out.rkey;
  in.address = 0x10800;
  in.length = 4096;
  p.good(p.root_call(Code::TraceError, in));
  EXPECT_NE(b.trace().find("bytes 0x10800 to 0x117ff are not all inside the memory of rkey"),
            std::string::npos)
      << b.trace();
  EXPECT_NE(b.trace().find("which is 0x10000 to 0x10fff (4096 bytes)"), std::string::npos);
}

TEST(FabricRoot, ResourcesHaveBothEndsOfAConnectionAndTheLevelsOfQueues) {
  Bench b;
  Process p(b, 11, "node0");
  Process z(b, 12, "node1");
  const auto cq = p.cq();
  const auto qp = p.qp(QpType::Rc, p.pd(), cq);
  const auto peer = z.qp(QpType::Rc, z.pd(), z.cq());
  p.connect(qp.handle, peer.out.qpn, 2);
  hca::CqEntry& ring = *b.arena().cq(control::index_of(cq));
  ring.producer.producer.store(7);
  ring.consumer.consumer.store(5);
  ring.arm.used.store(1);
  ring.arm.armed.store(2);
  b.arena().slot(0)->unacknowledged.store(3);
  p.good(p.root_call(Code::Resources));
  const auto programs = nlohmann::json::parse(b.host.last_text)["programs"];
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0]["pid"], 11);
  EXPECT_EQ(programs[0]["unacknowledged_events"], 3);
  const auto& mine = programs[0]["qp"][0];
  EXPECT_EQ(mine["peer_qpn"], programs[1]["qp"][0]["qpn"]);
  EXPECT_EQ(mine["peer"]["pid"], 12);
  EXPECT_EQ(mine["peer"]["node"], "node1");
  EXPECT_EQ(mine["receives_posted"], 0);
  const auto& queue = programs[0]["cq"][0];
  EXPECT_EQ(queue["unpolled"], 2);
  EXPECT_EQ(queue["armed"], "solicited");
  EXPECT_EQ(queue["was_armed"], true);
  ring.consumer.consumer.store(9);  // a level that is impossible
  p.good(p.root_call(Code::Resources));
  const auto later = nlohmann::json::parse(b.host.last_text)["programs"][0]["cq"][0];
  EXPECT_EQ(later["unpolled"], ring.id.slots) << "as in a full ring";
}

TEST(FabricRoot, AFailedRequestIsExplainedInTheTrace) {
  Bench b;
  Process p(b, 11, "node0");
  Process z(b, 12, "node1");
  const auto qp = p.qp(QpType::Rc, p.pd(), p.cq());
  const auto peer = z.qp(QpType::Rc, z.pd(), z.cq());
  TraceErrorIn in;
  in.qp_index = control::index_of(qp.handle);
  in.peer_qpn = peer.out.qpn;
  in.status = verbs::WcStatus::RemAccessErr;
  in.opcode = verbs::WrOpcode::RdmaRead;
  in.cause = Cause::RemoteKeyUnknown;
  p.good(p.root_call(Code::TraceError, in));
  EXPECT_NE(b.trace().find("test (pid 11, node0, softib0, QP "), std::string::npos) << b.trace();
  EXPECT_NE(b.trace().find("to test (pid 12, node1, softib0, QP "), std::string::npos);
  in.qp_index = 5000;
  EXPECT_EQ(p.root_call(Code::TraceError, in).status, Status::InvalidParameter);
  p.good(p.root_call(Code::TraceRead, TraceReadIn{0}));
  EXPECT_EQ(b.host.last_text.substr(0, 2), "{\"") << b.host.last_text;
  EXPECT_TRUE(b.core().trace.text_after(b.core().trace.last()).empty());
}

TEST(FabricRoot, APeerThatIsNotThereIsSoughtByGidOverEthernet) {
  Bench b(0, {}, verbs::LinkLayer::Ethernet);
  Process p(b, 11, "node0");
  const auto qp = p.qp(QpType::Rc, p.pd(), p.cq());
  p.connect(qp.handle, 0x4242, verbs::ipv4_gid(127u << 24 | 77 << 16 | 2));  // of node1
  TraceErrorIn in;
  in.qp_index = control::index_of(qp.handle);
  in.peer_qpn = 0x4242;
  in.status = verbs::WcStatus::RetryExcErr;
  in.cause = Cause::PeerUnknown;
  p.good(p.root_call(Code::TraceError, in));
  EXPECT_NE(b.trace().find("there is no queue pair 0x4242 at GID 127.77.0.2 that is connected"),
            std::string::npos)
      << b.trace();
  // The address belongs to no node any more.
  ASSERT_EQ(b.fabric.set_addresses(b.fabric.nodes()[1], {}), Status::Ok);
  p.good(p.root_call(Code::TraceError, in));
  EXPECT_NE(b.trace().find("no port of the fabric has GID 127.77.0.2;"), std::string::npos);
  EXPECT_NE(b.trace().find("the fabric has 127.77.0.1 (node0, softib0, port 1), 127.78.0.1 (node0, "
                           "softib0, port 2), fe80::53:46ff:fe00:101 (node1, softib0, port 1)"),
            std::string::npos)
      << b.trace();
  EXPECT_EQ(b.trace().find("LID"), std::string::npos) << b.trace();
}

TEST(FabricRoot, ViewsAnswerForEveryNode) {
  Bench b;
  Process tool(b, 11, "", false);
  ViewIn in;
  put_text(in.path, "/sys/class/infiniband/softib0/node_guid");
  const auto stat = tool.root_call<ViewStatOut>(Code::ViewOpen, in);
  EXPECT_EQ(stat.status, Status::Ok) << stat.reason;
  EXPECT_EQ(stat.out.kind, ViewKind::File);
  EXPECT_FALSE(b.host.last_text.empty());
  put_text(in.path, "/sys/class/infiniband");
  tool.good(tool.root_call(Code::ViewList, in));
  EXPECT_EQ(b.host.last_text, "softib0\n");
  put_text(in.path, "/sys/class/nothing");
  EXPECT_EQ(tool.root_call<ViewStatOut>(Code::ViewStat, in).status, Status::NotFound);
  // There is a file for the type of each GID; that of a free entry has no content.
  put_text(in.path, "/sys/class/infiniband/softib0/ports/1/gid_attrs/types/9");
  EXPECT_EQ(tool.root_call<ViewStatOut>(Code::ViewStat, in).status, Status::Ok);
  EXPECT_EQ(tool.root_call<ViewStatOut>(Code::ViewOpen, in).status, Status::InvalidParameter);
}

TEST(FabricRoot, PeersGetChannelsAndBackingsByGeneration) {
  Bench b;
  Process p(b, 11, "node0");
  Process z(b, 12, "node1");
  const std::uint32_t channel = p.good(p.root_call(Code::CreateChannel));
  const auto backing = p.root_call<BackingOut>(Code::CreateBacking, BackingIn{8192});
  const std::uint32_t cq = p.cq(10, channel);
  const std::uint32_t generation = b.arena().cq(control::index_of(cq))->id.channel_generation;
  const auto got =
      z.start(z.zero(), Code::GetChannel, GenerationIn{control::index_of(channel), generation});
  z.good(z.finish<Nothing>(*got));
  EXPECT_TRUE(got->irp.out_handles[1].valid());
  EXPECT_EQ(z.root_call(Code::GetChannel, GenerationIn{control::index_of(channel), generation + 1})
                .status,
            Status::NotFound);
  const auto size = z.root_call<BackingOut>(
      Code::GetBacking, GenerationIn{control::index_of(backing.handle), backing.out.generation});
  EXPECT_EQ(size.out.size, 8192u);
  EXPECT_EQ(p.root_call<BackingOut>(Code::CreateBacking, BackingIn{100}).status,
            Status::InvalidParameter);
  EXPECT_EQ(p.root_call<BackingOut>(Code::CreateBacking, BackingIn{4 << 20}).status,
            Status::InvalidParameter);
  EXPECT_EQ(z.root_call(Code::DestroyBacking, IndexIn{backing.handle, 0}).status,
            Status::InvalidParameter);
}

TEST(FabricRoot, AnOrderlyShutdownIsAnnounced) {
  Bench b;
  Process p(b, 11, "node0");
  EXPECT_EQ(b.root->attached_processes(), 1u);
  const int wakes = b.host.wakes;
  b.root->announce_shutdown();
  EXPECT_EQ(b.arena().header().closed.load(), 1u);
  EXPECT_GT(b.host.wakes, wakes);
}

}  // namespace
}  // namespace ib::drivers::test
