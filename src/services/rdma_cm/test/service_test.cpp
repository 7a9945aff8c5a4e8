// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/service.h"

#include "services/rdma_cm/test/programs_test.h"
#include "verbs/control_rdma_cm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

namespace ib::services::rdma_cm {
namespace {

class RdmaCm : public testing::TestWithParam<verbs::LinkLayer> {
 protected:
  World w{GetParam()};
  Program server{w, 0};
  Program client{w, 1};

  std::uint32_t listen(PortSpace space = PortSpace::Tcp, std::uint32_t backlog = 0) {
    const std::uint32_t id = server.create(space, 0x11);
    EXPECT_EQ(server.bind(id, verbs::ipv4_gid(0), 7471), Error::None);
    EXPECT_EQ(server.listen(id, backlog), Error::None);
    return id;
  }
  std::uint32_t route(PortSpace space = PortSpace::Tcp, std::uint16_t port = 7471) {
    const std::uint32_t id = client.create(space, 0x22);
    EXPECT_EQ(client.resolve(id, w.address(0), port), Error::None);
    EXPECT_EQ(client.expect(Event::AddrResolved).uid, 0x22u);
    EXPECT_EQ(client.write(Code::ResolveRoute, ucma::ResolveRoute{id, 0}).error, Error::None);
    client.expect(Event::RouteResolved);
    return id;
  }
};

TEST_P(RdmaCm, AConnectionGoesThroughAllItsEvents) {
  const std::uint32_t listener = listen();
  const std::uint32_t active = route();
  ASSERT_EQ(client.connect(active, 0x123, "hello"), Error::None);
  const ucma::EventOut request = server.expect(Event::ConnectRequest);
  EXPECT_EQ(request.uid, 0x11u) << "the listener's";
  EXPECT_NE(request.id, listener);
  const auto asked = param_of<ucma::ConnParam>(request);
  EXPECT_EQ(asked.qp_num, 0x123u);
  EXPECT_EQ(asked.responder_resources, 3) << "what the other side wants to initiate";
  EXPECT_EQ(asked.initiator_depth, 4);
  EXPECT_EQ(asked.private_data_len, 56) << "the whole field behind the IP header";
  EXPECT_EQ(text_of(asked, 5), "hello");

  const auto rtr = server.attributes(request.id, verbs::QpState::Rtr);
  EXPECT_EQ(rtr.dest_qp_num, 0x123u);
  EXPECT_EQ(rtr.qp_attr_mask, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x8000 | 0x20000);
  ASSERT_EQ(server.accept(request.id, 0x456, 0x33, "welcome"), Error::None);
  const auto answer = param_of<ucma::ConnParam>(client.expect(Event::ConnectResponse));
  EXPECT_EQ(answer.qp_num, 0x456u);
  EXPECT_EQ(answer.private_data_len, 196);
  EXPECT_EQ(text_of(answer, 7), "welcome");

  const auto active_rtr = client.attributes(active, verbs::QpState::Rtr);
  const auto active_rts = client.attributes(active, verbs::QpState::Rts);
  const auto passive_rts = server.attributes(request.id, verbs::QpState::Rts);
  EXPECT_EQ(active_rtr.rq_psn, passive_rts.sq_psn);
  EXPECT_EQ(active_rts.sq_psn, rtr.rq_psn);
  EXPECT_EQ(active_rtr.dest_qp_num, 0x456u);
  EXPECT_EQ(active_rtr.ah_attr.is_global, GetParam() == verbs::LinkLayer::Ethernet ? 1 : 0);
  EXPECT_EQ(active_rts.timeout, kPacketLifeTime + 1) << "there and back";
  ASSERT_EQ(client.make_ready(active), Error::None);
  EXPECT_EQ(server.expect(Event::Established).uid, 0x33u);

  EXPECT_EQ(client.write(Code::Disconnect, ucma::Disconnect{active}).error, Error::None);
  server.expect(Event::Disconnected);
  EXPECT_FALSE(client.event()) << "the other side has not answered yet";
  EXPECT_EQ(server.write(Code::Disconnect, ucma::Disconnect{request.id}).error, Error::None);
  client.expect(Event::Disconnected);
  EXPECT_EQ(client.destroy(active), 4u);
  EXPECT_EQ(server.destroy(request.id), 2u);
  EXPECT_EQ(server.destroy(listener), 1u);
}

// Takes the next event with the answers that come with it, and compares those with the answers to
// the same commands. Returns what was answered, as "code/option" each.
std::string answered_ahead(Program& program, Event kind) {
  program.world.executor.advance(std::chrono::milliseconds(1));
  program.takes_ahead = true;
  const Service::Answer answer = program.write(Code::GetEvent, ucma::GetEvent{});
  program.takes_ahead = false;
  ucma::EventOut event;
  EXPECT_EQ(answer.data.size(), sizeof event);
  std::memcpy(&event, answer.data.data(), answer.data.size());
  EXPECT_EQ(event.event, kind);
  std::string all;
  for (std::size_t at = 0; at < answer.ahead.size();) {
    verbs::control::RdmaCmAhead head;
    std::memcpy(&head, answer.ahead.data() + at, sizeof head);
    at += sizeof head;
    EXPECT_EQ(head.id, event.id);
    const ucma::InitQpAttr question{0, head.id, head.option};
    const Service::Answer asked = program.write(static_cast<Code>(head.code), question);
    EXPECT_EQ(asked.error, Error::None);
    const auto* from = answer.ahead.data() + at;
    EXPECT_TRUE(std::equal(asked.data.begin(), asked.data.end(), from, from + head.size));
    at += (head.size + 7) / 8 * 8;
    all += fmt::format("{}{}/{}", all.empty() ? "" : " ", head.code, head.option);
  }
  return all;
}

TEST_P(RdmaCm, AnswersThatComeWithAnEventAreThoseOfTheCommands) {
  listen();
  const std::uint32_t id = client.create(PortSpace::Tcp, 0x22);
  ASSERT_EQ(client.resolve(id, w.address(0), 7471), Error::None);
  EXPECT_EQ(answered_ahead(client, Event::AddrResolved), "19/0 19/2 11/1");
  ASSERT_EQ(client.write(Code::ResolveRoute, ucma::ResolveRoute{id, 0}).error, Error::None);
  EXPECT_EQ(answered_ahead(client, Event::RouteResolved), "19/1 11/1");
  ASSERT_EQ(client.connect(id, 0x123), Error::None);
  EXPECT_EQ(answered_ahead(server, Event::ConnectRequest), "19/0 19/2 19/1 11/1 11/2 11/3");
  ASSERT_EQ(client.destroy(id), 2u);
}

TEST_P(RdmaCm, TheAnswerToARequestComesWithTheAttributesOfTheQueuePair) {
  listen();
  const std::uint32_t id = route();
  ASSERT_EQ(client.connect(id, 0x123), Error::None);
  const ucma::EventOut request = server.expect(Event::ConnectRequest);
  ASSERT_EQ(server.accept(request.id, 0x456, 0x33), Error::None);
  EXPECT_EQ(answered_ahead(client, Event::ConnectResponse), "11/1 11/2 11/3");
  ASSERT_EQ(client.make_ready(id), Error::None);
  EXPECT_EQ(answered_ahead(server, Event::Established), "");
}

TEST_P(RdmaCm, AQueryTellsTheAddressesAndTheRoute) {
  const std::uint32_t id = route();
  const auto out = client.query<ucma::QueryRouteOut>(Code::QueryRoute, ucma::Query{0, id});
  EXPECT_EQ(read_address(out.dst_addr), Program::at(w.address(0), 7471));
  EXPECT_EQ(read_address(out.src_addr)->ip, w.address(1));
  EXPECT_GE(read_address(out.src_addr)->port, 32768);
  EXPECT_EQ(out.num_paths, 1u);
  EXPECT_EQ(out.port_num, 1);
  EXPECT_NE(out.node_guid, (std::array<std::uint8_t, 8>{}));
  EXPECT_EQ(out.ibdev_index, 0xffffffffu);
  const bool ethernet = GetParam() == verbs::LinkLayer::Ethernet;
  EXPECT_EQ(out.ib_route[0].dgid,
            ethernet ? w.address(0) : w.fabric.nodes()[0].hcas[0].ports[0].gid());
  EXPECT_EQ(out.ib_route[0].hop_limit > 1, ethernet);
}

TEST_P(RdmaCm, AWildcardHasNoDevice) {
  const std::uint32_t id = listen();
  const auto out = server.query<ucma::QueryRouteOut>(Code::QueryRoute, ucma::Query{0, id});
  EXPECT_EQ(out.node_guid, (std::array<std::uint8_t, 8>{}));
  EXPECT_EQ(out.port_num, 0);
}

TEST_P(RdmaCm, NobodyListensAndTheTraceSaysWhoDoes) {
  listen();
  const std::uint32_t id = route(PortSpace::Tcp, 7472);
  ASSERT_EQ(client.connect(id, 1), Error::None);
  const ucma::EventOut event = client.expect(Event::Rejected);
  EXPECT_EQ(event.status, 8u);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_NE(w.lines[0].find("no listener for TCP port 7472 on a (127.77.0.1)"), std::string::npos);
  EXPECT_NE(w.lines[0].find("listening there: 7471 (prog, pid 100)"), std::string::npos)
      << w.lines[0];
}

TEST_P(RdmaCm, ARejectionBringsTheProgramsData) {
  listen();
  const std::uint32_t id = route();
  ASSERT_EQ(client.connect(id, 1), Error::None);
  ucma::Reject reject;
  reject.id = server.expect(Event::ConnectRequest).id;
  reject.private_data_len = 2;
  reject.private_data[0] = 'n';
  reject.private_data[1] = 'o';
  EXPECT_EQ(server.write(Code::Reject, reject).error, Error::None);
  const ucma::EventOut event = client.expect(Event::Rejected);
  EXPECT_EQ(event.status, 28u);
  EXPECT_EQ(param_of<ucma::ConnParam>(event).private_data_len, 148);
  EXPECT_EQ(text_of(param_of<ucma::ConnParam>(event), 2), "no");
}

TEST_P(RdmaCm, AFullBacklogRefuses) {
  listen(PortSpace::Tcp, 1);
  const std::uint32_t first = route();
  const std::uint32_t second = route();
  ASSERT_EQ(client.connect(first, 1), Error::None);
  ASSERT_EQ(client.connect(second, 2), Error::None);
  client.expect(Event::Rejected);
  EXPECT_FALSE(w.lines.empty());
  server.expect(Event::ConnectRequest);
  const std::uint32_t third = route();
  ASSERT_EQ(client.connect(third, 3), Error::None);
  server.expect(Event::ConnectRequest);
}

TEST_P(RdmaCm, TheTraceTellsARejectionOnceAndByItsReason) {
  const std::uint32_t listener = listen();
  const std::uint32_t id = route();
  ASSERT_EQ(client.connect(id, 1), Error::None);
  ucma::Reject reject;
  reject.id = server.expect(Event::ConnectRequest).id;
  reject.reason = 28;
  EXPECT_EQ(server.write(Code::Reject, reject).error, Error::None);
  client.expect(Event::Rejected);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_EQ(w.lines[0],
            "prog (pid 101) on b: 127.77.0.1:7471 (a), where prog (pid 100) listens, refuses the "
            "connection: the program at the other side has refused the connection (reason 28, "
            "consumer reject); check the other program's log; it may be full, or of another "
            "version");
  EXPECT_EQ(server.destroy(listener), 1u);
}

TEST_P(RdmaCm, AFullBacklogIsToldOnceWithItsSize) {
  listen(PortSpace::Tcp, 1);
  const std::uint32_t first = route();
  const std::uint32_t second = route();
  ASSERT_EQ(client.connect(first, 1), Error::None);
  ASSERT_EQ(client.connect(second, 2), Error::None);
  EXPECT_EQ(client.expect(Event::Rejected).status, 28u);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_NE(w.lines[0].find("prog (pid 100) on a: the backlog of TCP port 7471 is full: 1 requests "
                            "wait until the program takes them; refused: 127.77.0.2:"),
            std::string::npos)
      << w.lines[0];
}

TEST_P(RdmaCm, NoAnswerNamesWhatStandsInTheWay) {
  listen();
  const std::uint32_t id = route();
  w.fabric.nodes()[0].hcas[0].ports[0].state = verbs::PortState::Down;
  ASSERT_EQ(client.connect(id, 1), Error::None);
  EXPECT_EQ(static_cast<std::int32_t>(client.expect(Event::Unreachable).status), -110);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_EQ(w.lines[0],
            "prog (pid 101) on b: 127.77.0.1:7471 (a) does not answer REQ (sent 1 time): port 1 of "
            "softib0 of a is down");
}

TEST_P(RdmaCm, ADatagramServiceThatIsRefusedHasItsStatus) {
  listen(PortSpace::Udp);
  const std::uint32_t id = route(PortSpace::Udp);
  ASSERT_EQ(client.connect(id, 7), Error::None);
  ucma::Reject reject;
  reject.id = server.expect(Event::ConnectRequest).id;
  EXPECT_EQ(server.write(Code::Reject, reject).error, Error::None);
  EXPECT_EQ(client.expect(Event::Unreachable).status, 2u);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_NE(w.lines[0].find("refuses the datagram service: the program at the other side has "
                            "refused the request (status 2, rejected); check"),
            std::string::npos)
      << w.lines[0];
}

TEST_P(RdmaCm, RefusedCallsAreToldToo) {
  listen();
  const std::uint32_t taken = server.create();
  EXPECT_EQ(server.bind(taken, w.address(0), 7471), Error::NoAddress);
  const std::uint32_t foreign = server.create();
  EXPECT_EQ(server.bind(foreign, w.address(1), 1), Error::NoAddress);
  const std::uint32_t id = route();
  EXPECT_EQ(client.connect(id, 1, std::string(57, 'x')), Error::Invalid);
  const std::uint32_t far = client.create();
  EXPECT_EQ(client.resolve(far, verbs::ipv4_gid(0x08080808), 1), Error::None);
  client.expect(Event::AddrError);
  ASSERT_EQ(w.lines.size(), 4u);
  EXPECT_EQ(
      w.lines[0],
      "prog (pid 100) on a: TCP port 7471 belongs to prog (pid 100) already, which listens on "
      "0.0.0.0:7471");
  EXPECT_EQ(w.lines[1],
            "prog (pid 100) on a: cannot bind: 127.77.0.2 is not an address of a, which has "
            "127.77.0.1");
  EXPECT_EQ(w.lines[2],
            "prog (pid 101) on b: rdma_connect has 57 bytes of private data, 56 is the most here "
            "(EINVAL)");
  EXPECT_EQ(w.lines[3],
            "prog (pid 101) on b: cannot reach 8.8.8.8:1: 8.8.8.8 belongs to no node of this "
            "fabric; nodes have 127.77.0.1 (a), 127.77.0.2 (b)");
}

TEST_P(RdmaCm, TheListShowsHowFarAConnectionIs) {
  const std::uint32_t listener = listen(PortSpace::Tcp, 5);
  const std::uint32_t active = route();
  const auto find = [this](std::uint32_t number) {
    std::vector<Listing> all = w.service.list();
    find_other_ends(all);
    const auto at = std::find_if(all.begin(), all.end(),
                                 [number](const Listing& one) { return one.id == number; });
    EXPECT_NE(at, all.end());
    return at == all.end() ? Listing() : *at;
  };
  ASSERT_EQ(client.connect(active, 0x123), Error::None);
  EXPECT_STREQ(find(active).state, "REQ sent");
  EXPECT_EQ(find(active).waits_for, "REQ (sent 1 time), no answer of the peer yet");
  EXPECT_EQ(find(active).qpn, 0x123u);
  EXPECT_EQ(find(active).service_id, 0x1061d2fu);
  w.executor.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(find(listener).backlog, 5u);
  EXPECT_EQ(find(listener).backlog_used, 1u);
  const std::optional<std::size_t> passive = find(active).other_end;
  ASSERT_TRUE(passive);
  const Listing waiting = w.service.list()[*passive];
  EXPECT_EQ(waiting.waits_for, "its program to take the request");
  const std::uint32_t accepted = server.expect(Event::ConnectRequest).id;
  EXPECT_EQ(waiting.id, accepted);
  EXPECT_EQ(find(listener).backlog_used, 0u);
  EXPECT_EQ(find(accepted).waits_for, "its program to accept or reject");
  ASSERT_EQ(server.accept(accepted, 0x456, 5), Error::None);
  client.expect(Event::ConnectResponse);
  EXPECT_EQ(find(active).waits_for, "its program to finish (rdma_accept)");
  ASSERT_EQ(client.make_ready(active), Error::None);
  server.expect(Event::Established);
  EXPECT_STREQ(find(accepted).state, "established");
  EXPECT_EQ(find(accepted).waits_for, "");
  EXPECT_EQ(find(accepted).peer_qpn, 0x123u);
  EXPECT_EQ(find(active).peer_qpn, 0x456u);
  EXPECT_EQ(find(accepted).service_id, 0x1061d2fu);
  EXPECT_FALSE(find(listener).other_end);
}

TEST_P(RdmaCm, AProgramThatEndsLeavesNobodyWaiting) {
  listen();
  const std::uint32_t connected = route();
  const std::uint32_t waiting = route();
  ASSERT_EQ(client.connect(connected, 1), Error::None);
  const std::uint32_t passive = server.expect(Event::ConnectRequest).id;
  ASSERT_EQ(server.accept(passive, 2, 5), Error::None);
  client.expect(Event::ConnectResponse);
  ASSERT_EQ(client.make_ready(connected), Error::None);
  server.expect(Event::Established);
  ASSERT_EQ(client.connect(waiting, 3), Error::None);
  w.executor.advance(std::chrono::milliseconds(1));
  w.service.close(server.file);
  client.expect(Event::Rejected);  // the listener ends first, with what waits there
  client.expect(Event::Disconnected);
  w.service.close(client.file);
  EXPECT_EQ(w.service.id_count(), 0u);
}

TEST_P(RdmaCm, DatagramsResolveTheirPeer) {
  listen(PortSpace::Udp);
  const std::uint32_t active = route(PortSpace::Udp);
  ASSERT_EQ(client.connect(active, 7, "hi"), Error::None);
  const ucma::EventOut request = server.expect(Event::ConnectRequest);
  EXPECT_EQ(param_of<ucma::UdParam>(request).private_data_len, 180);
  EXPECT_EQ(text_of(param_of<ucma::UdParam>(request), 2), "hi");
  ASSERT_EQ(server.accept(request.id, 9, 5), Error::None);
  const auto answer = param_of<ucma::UdParam>(client.expect(Event::Established));
  EXPECT_EQ(answer.qp_num, 9u);
  EXPECT_EQ(answer.qkey, kUdpQkey);
  const bool ethernet = GetParam() == verbs::LinkLayer::Ethernet;
  EXPECT_EQ(answer.ah_attr.is_global, ethernet ? 1 : 0);
  EXPECT_EQ(answer.ah_attr.dlid, ethernet ? 0 : w.fabric.nodes()[0].hcas[0].ports[0].lid);
  EXPECT_EQ(client.attributes(active, verbs::QpState::Init).qkey, kUdpQkey);
  const std::uint32_t nobody = route(PortSpace::Udp, 1);
  ASSERT_EQ(client.connect(nobody, 7), Error::None);
  EXPECT_EQ(client.expect(Event::Unreachable).status, 1u);
}

TEST_P(RdmaCm, MembersOfAGroupHaveItsAddress) {
  const auto join = [](Program& program, std::uint32_t id) {
    ucma::JoinIpMcast in;
    in.id = id;
    in.uid = 0x77;
    write_address(Program::at(verbs::ipv4_gid(0xef010203), 0), in.addr);
    return program.query<ucma::IdOut>(Code::JoinIpMcast, in).id;
  };
  std::array<ucma::AhAttr, 2> addresses;
  std::uint32_t number = 0;
  for (Program* program : {&server, &client}) {
    const std::uint32_t id = program->create(PortSpace::Udp);
    ASSERT_EQ(program->bind(id, w.address(program == &client ? 1 : 0), 0), Error::None);
    number = join(*program, id);
    const ucma::EventOut event = program->expect(Event::MulticastJoin);
    EXPECT_EQ(event.uid, 0x77u);
    EXPECT_EQ(event.id, number);
    const auto param = param_of<ucma::UdParam>(event);
    EXPECT_EQ(param.qp_num, 0xffffffu);
    addresses[program == &client ? 1 : 0] = param.ah_attr;
  }
  EXPECT_EQ(addresses[0].dgid, addresses[1].dgid);
  EXPECT_EQ(addresses[0].dlid, addresses[1].dlid);
  EXPECT_EQ(addresses[0].dlid >= 0xc000, GetParam() == verbs::LinkLayer::InfiniBand);
  ucma::DestroyId leave;
  leave.id = number;
  EXPECT_EQ(client.query<ucma::EventsOut>(Code::LeaveMcast, leave).events_reported, 1u);
  EXPECT_EQ(client.write(Code::LeaveMcast, leave).error, Error::NoEntry);
}

TEST_P(RdmaCm, AnIdMovesToAnotherFileWithItsEvents) {
  Program other(w, 1);
  const std::uint32_t id = client.create();
  ASSERT_EQ(client.resolve(id, w.address(0), 1), Error::None);
  EXPECT_EQ(client.notices, 1);
  ucma::MigrateId in;
  in.id = id;
  in.fd = 5;
  Service::Answer answer = other.write(Code::MigrateId, in);
  EXPECT_EQ(answer.need, Service::Answer::Need::File);
  EXPECT_EQ(answer.need_address, 5u);
  answer = other.write(Code::MigrateId, in, {}, client.file);
  EXPECT_EQ(answer.error, Error::None);
  EXPECT_TRUE(answer.is_old_file_drained);
  EXPECT_EQ(other.notices, 1);
  EXPECT_FALSE(client.event());
  other.expect(Event::AddrResolved);
  EXPECT_TRUE(other.is_drained);
  ucma::DestroyId destroy;
  destroy.id = id;
  EXPECT_EQ(client.write(Code::DestroyId, destroy).error, Error::Invalid) << "not its id any more";
  EXPECT_EQ(other.destroy(id), 1u);
}

// Between two files of a process; its program reads the event of the request afterwards.
TEST_P(RdmaCm, ARequestThatIsNotReadHasNoNameYet) {
  const std::uint32_t listener = listen();
  const std::uint32_t active = route();
  ASSERT_EQ(client.connect(active, 0x123), Error::None);
  w.executor.advance(std::chrono::milliseconds(1));
  const std::uint32_t request = active + 1;
  Program other(w, 0);
  ucma::MigrateId migrate;
  migrate.id = request;
  EXPECT_EQ(other.write(Code::MigrateId, migrate, {}, server.file).error, Error::NoEntry);
  ucma::DestroyId destroy;
  destroy.id = request;
  EXPECT_EQ(server.write(Code::DestroyId, destroy).error, Error::NoEntry);
  EXPECT_EQ(server.accept(request, 0x456, 0x33), Error::NoEntry);
  EXPECT_EQ(server.expect(Event::ConnectRequest).id, request);
  EXPECT_EQ(server.accept(request, 0x456, 0x33), Error::None);
  EXPECT_EQ(other.write(Code::MigrateId, migrate, {}, server.file).error, Error::None);
  EXPECT_EQ(other.destroy(request), 0u);
  EXPECT_EQ(server.destroy(listener), 1u);
}

TEST_P(RdmaCm, RequestsMoveWithTheirListener) {
  const std::uint32_t listener = listen();
  ASSERT_EQ(client.connect(route(), 0x123), Error::None);
  ASSERT_EQ(client.connect(route(), 0x124), Error::None);
  server.expect(Event::ConnectRequest);
  Program other(w, 0);
  ucma::MigrateId migrate;
  migrate.id = listener;
  EXPECT_EQ(other.write(Code::MigrateId, migrate, {}, server.file).error, Error::None);
  EXPECT_FALSE(server.event());
  const std::uint32_t request = other.expect(Event::ConnectRequest).id;
  EXPECT_EQ(other.destroy(request), 0u);
  EXPECT_EQ(other.destroy(listener), 2u) << "one was reported in the first file";
}

TEST_P(RdmaCm, AFileIsOfTheProcessThatHasOpenedIt) {
  const std::uint32_t listener = listen();
  Program child = server;
  child.pid += 50;
  ucma::DestroyId destroy;
  destroy.id = listener;
  EXPECT_EQ(child.write(Code::DestroyId, destroy).error, Error::Access);
  EXPECT_EQ(child.write(Code::GetEvent, ucma::GetEvent{}).error, Error::Access);
  ASSERT_EQ(w.lines.size(), 1u) << "once for each file";
  EXPECT_EQ(
      w.lines[0],
      "pid 150 has written to an rdma_cm descriptor that prog (pid 100) on a has opened: only "
      "the process that opens one may use it, on Linux neither may its children (EACCES)");
  Program thief(w, 0, 77);
  ucma::MigrateId migrate;
  migrate.id = listener;
  EXPECT_EQ(thief.write(Code::MigrateId, migrate, {}, server.file).error, Error::Invalid);
  EXPECT_EQ(server.destroy(listener), 0u);
}

TEST_P(RdmaCm, AQueuePairOfAnotherProcessIsNoOnesToConnect) {
  listen();
  w.owner = QueuePairOwner::Other;
  const std::uint32_t id = route();
  EXPECT_EQ(client.connect(id, 0x123), Error::Invalid);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_EQ(w.lines[0],
            "prog (pid 101) on b: rdma_connect names queue pair 0x123, which another process has "
            "(EINVAL)");
  w.owner = QueuePairOwner::Caller;
  ASSERT_EQ(client.connect(id, 0x124), Error::None);
  const std::uint32_t request = server.expect(Event::ConnectRequest).id;
  w.owner = QueuePairOwner::Other;
  EXPECT_EQ(server.accept(request, 0x456, 0x33), Error::Invalid);
}

TEST_P(RdmaCm, AConnectionMayBeDisconnectedMoreThanOnce) {
  listen();
  const std::uint32_t active = route();
  const auto disconnect = [](Program& program, std::uint32_t id) {
    return program.write(Code::Disconnect, ucma::Disconnect{id}).error;
  };
  EXPECT_EQ(disconnect(client, active), Error::Invalid) << "before rdma_connect";
  ASSERT_EQ(client.connect(active, 1), Error::None);
  EXPECT_EQ(disconnect(client, active), Error::None) << "there is nothing to end yet";
  const std::uint32_t passive = server.expect(Event::ConnectRequest).id;
  ASSERT_EQ(server.accept(passive, 2, 5), Error::None);
  client.expect(Event::ConnectResponse);
  ASSERT_EQ(client.make_ready(active), Error::None);
  server.expect(Event::Established);
  EXPECT_EQ(disconnect(client, active), Error::None);
  EXPECT_EQ(disconnect(client, active), Error::None);
  server.expect(Event::Disconnected);
  EXPECT_EQ(disconnect(server, passive), Error::None);
  client.expect(Event::Disconnected);
  w.executor.advance(std::chrono::seconds(2));
  client.expect(Event::TimewaitExit);
  EXPECT_EQ(disconnect(client, active), Error::None);
  server.expect(Event::TimewaitExit);
  EXPECT_EQ(disconnect(server, passive), Error::None);
  EXPECT_TRUE(w.lines.empty());
}

TEST_P(RdmaCm, AnEstablishedConnectionNeedsNoNotice) {
  constexpr auto kCommEst = static_cast<std::uint32_t>(verbs::EventType::CommEst);
  listen();
  const std::uint32_t active = route();
  ASSERT_EQ(client.connect(active, 1), Error::None);
  const std::uint32_t passive = server.expect(Event::ConnectRequest).id;
  const auto notify = [&](Program& program, std::uint32_t id) {
    return program.write(Code::Notify, ucma::Notify{id, kCommEst}).error;
  };
  EXPECT_EQ(notify(server, passive), Error::Invalid) << "before rdma_accept";
  ASSERT_EQ(server.accept(passive, 2, 5), Error::None);
  EXPECT_EQ(notify(server, passive), Error::None);
  EXPECT_EQ(notify(server, passive), Error::IsConnected);
  server.expect(Event::Established);
  EXPECT_EQ(notify(server, passive), Error::IsConnected);
}

TEST_P(RdmaCm, ALinkLocalAddressHasAScope) {
  EndpointAddress address = Program::at(verbs::make_gid(0xfe80'0000'0000'0000, 0x77), 1);
  const std::uint32_t id = client.create();
  EXPECT_EQ(client.bind(id, address), Error::Invalid);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_NE(w.lines[0].find("cannot bind to [fe80::77]:1: a link-local address needs its "
                            "sin6_scope_id"),
            std::string::npos)
      << w.lines[0];
  address.scope = 1;
  EXPECT_EQ(client.bind(id, address), Error::NoAddress) << "nobody has it";
  const bool ethernet = GetParam() == verbs::LinkLayer::Ethernet;
  if (!ethernet) return;
  address.ip = w.fabric.nodes()[1].hcas[0].ports[0].gids[0].gid;
  EXPECT_EQ(client.bind(id, address), Error::None);
}

// A line for each failure, with what has happened at the other side.
TEST_P(RdmaCm, AProgramThatEndsHasRefusedNothing) {
  listen();
  const std::uint32_t unread = route();
  ASSERT_EQ(client.connect(unread, 1), Error::None);
  w.executor.advance(std::chrono::milliseconds(1));
  w.service.close(server.file);
  client.expect(Event::Rejected);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_EQ(
      w.lines[0],
      "prog (pid 101) on b: 127.77.0.1:7471 (a) refuses the connection: prog (pid 100) ended, "
      "or closed its event channel, before the connection was established (reason 28, "
      "consumer reject)");
}

TEST_P(RdmaCm, AProgramThatEndsAfterItsAcceptHasRefusedNothing) {
  listen();
  const std::uint32_t active = route();
  ASSERT_EQ(client.connect(active, 1), Error::None);
  ASSERT_EQ(server.accept(server.expect(Event::ConnectRequest).id, 2, 5), Error::None);
  client.expect(Event::ConnectResponse);
  w.service.close(server.file);
  client.expect(Event::Rejected);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_NE(w.lines[0].find("prog (pid 100) ended, or closed its event channel"), std::string::npos)
      << w.lines[0];
}

TEST_P(RdmaCm, AClientThatEndsHasRefusedNothing) {
  listen();
  const std::uint32_t active = route();
  ASSERT_EQ(client.connect(active, 1), Error::None);
  ASSERT_EQ(server.accept(server.expect(Event::ConnectRequest).id, 2, 5), Error::None);
  w.executor.advance(std::chrono::milliseconds(1));
  w.service.close(client.file);
  server.expect(Event::Rejected);
  ASSERT_EQ(w.lines.size(), 1u);
  EXPECT_NE(w.lines[0].find("refuses the connection: its program has ended, or destroyed the id "
                            "(reason 28"),
            std::string::npos)
      << w.lines[0];
}

TEST_P(RdmaCm, AClientThatEndsBeforeItIsAcceptedLeavesNoLine) {
  listen();
  const std::uint32_t active = route();
  ASSERT_EQ(client.connect(active, 1), Error::None);
  const std::uint32_t passive = server.expect(Event::ConnectRequest).id;
  w.service.close(client.file);
  EXPECT_FALSE(server.event());
  server.destroy(passive);
  EXPECT_TRUE(w.lines.empty());
}

TEST_P(RdmaCm, AnIdThatIsDestroyedInsteadOfAcceptedIsNamed) {
  const std::uint32_t listener = listen();
  const std::uint32_t first = route();
  ASSERT_EQ(client.connect(first, 1), Error::None);
  server.destroy(server.expect(Event::ConnectRequest).id);
  client.expect(Event::Rejected);
  const std::uint32_t second = route();
  ASSERT_EQ(client.connect(second, 2), Error::None);
  w.executor.advance(std::chrono::milliseconds(1));
  server.destroy(listener);
  client.expect(Event::Rejected);
  ASSERT_EQ(w.lines.size(), 2u);
  EXPECT_NE(w.lines[0].find("prog (pid 100) destroyed the id of the request before"),
            std::string::npos)
      << w.lines[0];
  EXPECT_NE(w.lines[1].find("prog (pid 100) destroyed its listener before it took the request"),
            std::string::npos)
      << w.lines[1];
}

TEST_P(RdmaCm, AnAcceptThatFailsIsNoRefusal) {
  listen();
  const std::uint32_t active = route();
  ASSERT_EQ(client.connect(active, 1), Error::None);
  const std::uint32_t passive = server.expect(Event::ConnectRequest).id;
  EXPECT_EQ(server.accept(passive, 2, 5, std::string(197, 'x')), Error::Invalid);
  client.expect(Event::Rejected);
  ASSERT_EQ(w.lines.size(), 2u);
  EXPECT_NE(w.lines[0].find("rdma_accept has 197 bytes of private data"), std::string::npos);
  EXPECT_NE(w.lines[1].find("prog (pid 100) has called rdma_accept, which failed"),
            std::string::npos)
      << w.lines[1];
}

TEST_P(RdmaCm, EventsThatAreGoneNeedNoNotice) {
  client.is_late = true;
  ASSERT_EQ(client.resolve(client.create(), w.address(0), 1), Error::None);
  EXPECT_TRUE(client.event());
  EXPECT_FALSE(client.is_drained);
  client.notice();
  EXPECT_EQ(client.notices, 0);
  ASSERT_EQ(client.resolve(client.create(), w.address(0), 1), Error::None);
  client.notice();
  EXPECT_EQ(client.notices, 1);
  EXPECT_TRUE(client.event());
  EXPECT_TRUE(client.is_drained);
}

TEST_P(RdmaCm, WhoAwaitsAnEventIsToldInsteadOfTheOthers) {
  int told = 0;
  const auto tell = [&told] { ++told; };
  EXPECT_TRUE(w.service.await_event(client.file, tell));
  EXPECT_FALSE(w.service.await_event(client.file, tell)) << "one waits already";
  EXPECT_FALSE(w.service.await_event(client.file + 100, tell)) << "no such file";
  ASSERT_EQ(client.resolve(client.create(), w.address(0), 1), Error::None);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(client.notices, 0);
  EXPECT_FALSE(w.service.await_event(client.file, tell)) << "there is an event";
  EXPECT_TRUE(client.event());
  EXPECT_FALSE(client.is_drained) << "nobody was told of it";
  w.service.end_wait(client.file);
  EXPECT_EQ(client.notices, 0);
}

TEST_P(RdmaCm, TheOthersAreToldOfEventsThatWhoAwaitedOneHasNotTaken) {
  int told = 0;
  EXPECT_TRUE(w.service.await_event(client.file, [&told] { ++told; }));
  ASSERT_EQ(client.resolve(client.create(), w.address(0), 1), Error::None);
  w.service.end_wait(client.file);  // it has gone
  EXPECT_EQ(client.notices, 1);
  w.service.end_wait(client.file);
  EXPECT_EQ(client.notices, 1) << "they know";
  EXPECT_TRUE(client.event());
  EXPECT_TRUE(client.is_drained);
  EXPECT_EQ(told, 1);
}

TEST_P(RdmaCm, ASecondEventIsToldToTheOthersAtOnce) {
  EXPECT_TRUE(w.service.await_event(client.file, [] {}));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(client.resolve(client.create(), w.address(0), 1), Error::None);
  }
  EXPECT_EQ(client.notices, 1);
}

TEST_P(RdmaCm, AnEventThatMovesToAFileIsToldToWhoAwaitsOneThere) {
  Program other(w, 1);
  const std::uint32_t id = client.create();
  ASSERT_EQ(client.resolve(id, w.address(0), 1), Error::None);
  int told = 0;
  EXPECT_TRUE(w.service.await_event(other.file, [&told] { ++told; }));
  ucma::MigrateId in;
  in.id = id;
  EXPECT_EQ(other.write(Code::MigrateId, in, {}, client.file).error, Error::None);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(other.notices, 0);
}

TEST_P(RdmaCm, WhoAwaitsAnEventIsToldOfTheEndOfTheFile) {
  int told = 0;
  Program other(w, 1);
  EXPECT_TRUE(w.service.await_event(other.file, [&told] { ++told; }));
  w.service.close(other.file);
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(w.service.await_event(other.file, [] {}));
}

TEST_P(RdmaCm, EventsOfAnIdThatEndsAreNotReported) {
  const std::uint32_t id = client.create();
  ASSERT_EQ(client.resolve(id, w.address(0), 1), Error::None);
  ucma::DestroyId in;
  in.id = id;
  const Service::Answer answer = client.write(Code::DestroyId, in);
  EXPECT_TRUE(answer.is_drained) << "the descriptor is readable no more";
  EXPECT_FALSE(client.event());
}

TEST_P(RdmaCm, AddressesThatTheNodeDoesNotHaveCannotBeBound) {
  const std::uint32_t id = client.create();
  EXPECT_EQ(client.bind(id, w.address(0), 1), Error::NoAddress);
  EXPECT_EQ(client.bind(id, verbs::ipv4_gid(0x7f000001), 1), Error::None) << "loopback is the node";
  const auto out = client.query<ucma::QueryRouteOut>(Code::QueryRoute, ucma::Query{0, id});
  EXPECT_EQ(out.node_guid, (std::array<std::uint8_t, 8>{}))
      << "but on no device yet, as a wildcard";
  EXPECT_EQ(client.bind(id, w.address(1), 1), Error::Invalid) << "bound already";
  const std::uint32_t far = client.create();
  EXPECT_EQ(client.resolve(far, verbs::ipv4_gid(0x08080808), 1), Error::None);
  EXPECT_EQ(static_cast<std::int32_t>(client.expect(Event::AddrError).status), -101);
}

TEST_P(RdmaCm, UnreadEventsOfAnIdHaveALimit) {
  const std::uint32_t id = client.create();
  for (std::uint32_t i = 0; i < EventQueue::kMaxUnread; ++i) {
    ASSERT_EQ(client.resolve(id, verbs::ipv4_gid(0x08080808), 1), Error::None);
  }
  EXPECT_EQ(client.resolve(id, verbs::ipv4_gid(0x08080808), 1), Error::NoMemory);
  ucma::WriteCmEvent in;
  in.id = id;
  in.event = Event::User;
  EXPECT_EQ(client.write(Code::WriteCmEvent, in).error, Error::NoMemory);
  client.expect(Event::AddrError);
  EXPECT_EQ(client.resolve(id, verbs::ipv4_gid(0x08080808), 1), Error::None);
}

// The command of rdma_write_cm_event(), which rdma-core 57 and later have.
TEST_P(RdmaCm, AProgramWritesEventsToItself) {
  const std::uint32_t id = client.create(PortSpace::Tcp, 0x22);
  ucma::WriteCmEvent in;
  in.id = id;
  in.event = Event::User;
  in.status = 7;
  in.arg = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_EQ(client.write(Code::WriteCmEvent, in).error, Error::None);
  in.event = Event::Internal;
  ASSERT_EQ(client.write(Code::WriteCmEvent, in).error, Error::None);
  const ucma::EventOut event = client.expect(Event::User);
  EXPECT_EQ(event.uid, 0x22u);
  EXPECT_EQ(event.id, id);
  EXPECT_EQ(event.status, 7u);
  EXPECT_TRUE(std::equal(in.arg.begin(), in.arg.end(), event.param.begin()));
  client.expect(Event::Internal);
  EXPECT_FALSE(client.event());
  in.event = Event::AddrResolved;
  EXPECT_EQ(client.write(Code::WriteCmEvent, in).error, Error::Invalid) << "none of its own";
  in.event = Event::User;
  EXPECT_EQ(server.write(Code::WriteCmEvent, in).error, Error::Invalid) << "another file's id";
  in.id = 99;
  EXPECT_EQ(client.write(Code::WriteCmEvent, in).error, Error::NoEntry);
  EXPECT_EQ(client.destroy(id), 2u);
}

TEST_P(RdmaCm, OptionsHaveTheirSizes) {
  const std::uint32_t id = client.create();
  const auto set = [&](std::uint32_t name, std::vector<std::uint8_t> value) {
    ucma::SetOption in;
    in.id = id;
    in.optname = name;
    in.optlen = static_cast<std::uint32_t>(value.size());
    return client.write(Code::SetOption, in, value).error;
  };
  EXPECT_EQ(set(ucma::kOptionTos, {4}), Error::None);
  EXPECT_EQ(set(ucma::kOptionTos, {4, 0}), Error::Invalid);
  EXPECT_EQ(set(ucma::kOptionReuseAddr, {1, 0, 0, 0}), Error::None);
  EXPECT_EQ(set(ucma::kOptionAfOnly, {1, 0, 0, 0}), Error::None);
  EXPECT_EQ(set(ucma::kOptionAckTimeout, {19}), Error::None);
  EXPECT_EQ(set(99, {1}), Error::NotImplemented);
  ucma::SetOption in;
  in.id = id;
  in.optval = 0x1234;
  in.optlen = 1;
  const Service::Answer answer = client.write(Code::SetOption, in);
  EXPECT_EQ(answer.need, Service::Answer::Need::Option);
  EXPECT_EQ(answer.need_address, 0x1234u);
}

INSTANTIATE_TEST_SUITE_P(LinkLayers, RdmaCm,
                         testing::Values(verbs::LinkLayer::InfiniBand, verbs::LinkLayer::Ethernet),
                         [](const auto& layer) {
                           return layer.param == verbs::LinkLayer::Ethernet ? "Ethernet"
                                                                            : "InfiniBand";
                         });

}  // namespace
}  // namespace ib::services::rdma_cm
