// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream service over the real drivers, communication managers and subnet administration: what
// programs request, and what is left when they are gone.
#include "streams_world.h"
#include "ulp/sdp/stream.h"

namespace ib::services::test {
namespace {

using verbs::QpState;

class Streams : public testing::TestWithParam<verbs::LinkLayer> {
 protected:
  StreamsWorld w_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Links, Streams,
                         testing::Values(verbs::LinkLayer::InfiniBand, verbs::LinkLayer::Ethernet),
                         [](const auto& one) {
                           return std::string(
                               verbs::LinkLayer::Ethernet == one.param ? "Ethernet" : "InfiniBand");
                         });

TEST_P(Streams, ConnectAndAcceptGetTheTwoEndsOfAStream) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  EXPECT_EQ(pair.connect.out.stream, pair.accept.out.stream);
  EXPECT_EQ(pair.connect.out.end, 0u);
  EXPECT_EQ(pair.accept.out.end, 1u);
  EXPECT_EQ(pair.connect.out.remote, address_of(w_.at(1)));
  EXPECT_EQ(pair.connect.out.local, pair.accept.out.remote);
  EXPECT_EQ(pair.connect.out.local.address, w_.at(0).address) << "the address of the client's node";
  EXPECT_EQ(w_.host.resets, 1) << "the TCP connection is gone";
  for (std::uint32_t i = 0; i < 2; ++i) {
    const streams::SharedEnd& end = pair.end(w_, i);
    EXPECT_EQ(end.stream.load(), pair.connect.out.stream);
    EXPECT_EQ(end.end, i);
    EXPECT_EQ(end.state.state, sdp::State::Established);
    const hca::QpEntry& qp = *w_.bench.arena().qp(end.qp);
    EXPECT_EQ(qp.id.state.load(), QpState::Rts);
    EXPECT_EQ(hca::qp_index(qp.connection.dest_qpn), pair.end(w_, 1 - i).qp);
    const hca::CqEntry& cq = *w_.bench.arena().cq(end.cq);
    EXPECT_EQ(cq.id.shared_producers.load(), 0u) << "its only producer takes no lock";
    EXPECT_EQ(qp.id.recv_cq, end.cq);
  }
}

TEST_P(Streams, AWildcardListenerTakesConnectionsToItsNodeOnly) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(kAnyIpv4), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  ConnectRequest own;
  EXPECT_EQ(client.connect(own, w_.at(0)), Status::NotFound);
  ASSERT_EQ(w_.refusals.size(), 1u);
  EXPECT_NE(w_.refusals[0].text.find("node0"), std::string::npos) << w_.refusals[0].text;
  EXPECT_EQ(w_.refusals[0].node, "node0");
  ConnectRequest loopback;
  EXPECT_EQ(client.connect(loopback, tcp_name(verbs::ipv4_gid(0x7f000001), kPort)),
            Status::NotFound)
      << "127.0.0.1 is the client's own node";
  ConnectRequest outside;
  EXPECT_EQ(client.connect(outside, tcp_name(verbs::ipv4_gid(0x08080808), kPort)),
            Status::NotFound);
  EXPECT_EQ(w_.refusals.size(), 2u) << "other networks are nobody's business";
}

TEST_P(Streams, LoopbackIsTheOwnNode) {
  Program server(w_, 0);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(kAnyIpv4), Status::Ok);
  const TcpName loopback = tcp_name(verbs::ipv4_gid(0x7f000001), kPort);
  const Connected pair(client, server, loopback);
  EXPECT_EQ(pair.connect.out.local.address, loopback.address);
  EXPECT_EQ(pair.connect.out.remote, address_of(loopback));
}

TEST_P(Streams, AnAcceptWaitsForTheStreamOfItsConnection) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  { const Connected first(client, server, w_.at(1)); }  // HCAs are open
  ConnectRequest connect;
  client.begin_connect(connect, w_.at(1));
  ASSERT_FALSE(connect.is_done()) << "the handshake takes messages";
  AcceptRequest accept;
  server.begin_accept(accept, w_.at(0, 40002), w_.at(1));
  EXPECT_FALSE(accept.is_done());
  EXPECT_TRUE(client.wait(connect));
  EXPECT_TRUE(server.wait(accept));
  EXPECT_EQ(connect.status(), Status::Ok);
  EXPECT_EQ(accept.status(), Status::Ok);
  EXPECT_TRUE(accept.take_link().valid());
  AcceptRequest again;
  EXPECT_EQ(server.accept(again, connect), Status::NotFound) << "its link was given out";
  connect.take_link().reset();
}

TEST_P(Streams, AnAcceptOfAnotherConnectionStaysTcp) {
  Program server(w_, 1);
  AcceptRequest accept;
  server.begin_accept(accept, w_.at(0, 1234), w_.at(1));
  EXPECT_TRUE(server.wait(accept));
  EXPECT_EQ(accept.status(), Status::NotFound);
}

TEST_P(Streams, TcpThatIsRefusedEndsTheListener) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  w_.host.next.status = Status::IoError;
  w_.host.next.is_refused = true;
  ConnectRequest connect;
  EXPECT_EQ(client.connect(connect, w_.at(1)), Status::IoError);
  w_.host.next = {};
  ConnectRequest again;
  EXPECT_EQ(client.connect(again, w_.at(1)), Status::NotFound);
  w_.run(std::chrono::milliseconds(100));
  EXPECT_EQ(w_.streams->size(), 0u);
}

TEST_P(Streams, TcpThatTakesLongerStaysTcp) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  w_.host.next.status = Status::DeviceBusy;
  ConnectRequest connect;
  EXPECT_EQ(client.connect(connect, w_.at(1)), Status::DeviceBusy);
  EXPECT_TRUE(w_.refusals.empty());
}

TEST_P(Streams, WithoutDescriptorsAConnectionStaysTcp) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  w_.host.has_no_descriptors = true;
  ConnectRequest connect;
  EXPECT_EQ(client.connect(connect, w_.at(1)), Status::TooManyHandles);
  ASSERT_EQ(w_.refusals.size(), 1u);
  EXPECT_NE(w_.refusals[0].text.find("no descriptors"), std::string::npos);
}

TEST_P(Streams, WithoutAPortAConnectionStaysTcp) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  for (fabric::Port& port : w_.hca(0).ports) drivers::set_port_state(w_.bench.core(), port, false);
  w_.run();
  ConnectRequest connect;
  EXPECT_EQ(client.connect(connect, w_.at(1)), Status::InvalidState);
  ASSERT_EQ(w_.refusals.size(), 1u);
  EXPECT_NE(w_.refusals[0].text.find("port"), std::string::npos) << w_.refusals[0].text;
}

TEST_P(Streams, AListenerEndsWithItsLastSocket) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);  // SO_REUSEPORT
  ASSERT_EQ(server.unlisten(w_.at(1)), Status::Ok);
  { const Connected pair(client, server, w_.at(1)); }
  ASSERT_EQ(server.unlisten(w_.at(1)), Status::Ok);
  ASSERT_EQ(server.unlisten(w_.at(1)), Status::Ok) << "nobody listened";
  ConnectRequest connect;
  EXPECT_EQ(client.connect(connect, w_.at(1)), Status::NotFound);
}

// A server that forks: the parent ends, the child goes on to accept.
TEST_P(Streams, AListenerIsThatOfWhoeverAcceptsThere) {
  Program client(w_, 0);
  Program child(w_, 1);
  {
    Program parent(w_, 1);
    ASSERT_EQ(parent.listen(w_.at(1)), Status::Ok);
  }
  ConnectRequest first;
  EXPECT_EQ(client.connect(first, w_.at(1)), Status::NotFound) << "nobody is left, as it seems";
  AcceptRequest tcp;
  child.begin_accept(tcp, w_.at(0, 1234), w_.at(1));
  EXPECT_TRUE(child.wait(tcp));
  EXPECT_EQ(tcp.status(), Status::NotFound);
  const Connected pair(client, child, w_.at(1));
}

TEST_P(Streams, AChildThatClosesItsCopyOfAListenerEndsNothing) {
  Program client(w_, 0);
  Program parent(w_, 1);
  Program child(w_, 1);
  ASSERT_EQ(parent.listen(w_.at(1)), Status::Ok);
  ASSERT_EQ(child.unlisten(w_.at(1)), Status::Ok);
  const Connected pair(client, parent, w_.at(1));
}

TEST_P(Streams, AProcessThatInheritsALinkOpensItsEnd) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  Program child(w_, 0);
  OpenRequest open;
  open.in = {pair.connect.out.stream, 0, 0};
  EXPECT_EQ(child.run(StreamCode::Open, open), Status::Ok);
  EXPECT_EQ(open.out.offset, pair.connect.out.offset);
  EXPECT_EQ(open.out.local, pair.connect.out.local);
  EXPECT_FALSE(open.take_link().valid()) << "it has it";
  for (const auto& in : {verbs::control::StreamNameIn{pair.connect.out.stream + 1, 0, 0},
                         verbs::control::StreamNameIn{pair.connect.out.stream, 2, 0}}) {
    OpenRequest other;
    other.in = in;
    EXPECT_EQ(child.run(StreamCode::Open, other), Status::NotFound);
  }
}

TEST_P(Streams, ALargeRingIsTheSameForAll) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  std::vector<std::uint64_t> offsets;
  for (const std::uint32_t end : {0u, 0u, 1u}) {
    GrowRequest grow;
    grow.in = {pair.connect.out.stream, end, 0};
    ASSERT_EQ(client.run(StreamCode::Grow, grow), Status::Ok) << grow.reason();
    EXPECT_EQ(grow.out.length, verbs::control::kStreamLargeRing);
    EXPECT_NE(w_.bench.arena().heap(grow.out.offset, grow.out.length), nullptr);
    offsets.push_back(grow.out.offset);
  }
  EXPECT_EQ(offsets[0], offsets[1]);
  EXPECT_NE(offsets[0], offsets[2]);
  GrowRequest none;
  none.in = {pair.connect.out.stream + 1, 0, 0};
  EXPECT_EQ(client.run(StreamCode::Grow, none), Status::NotFound);
}

TEST_P(Streams, WhenBothLinksAreClosedNothingIsLeft) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  { const Connected first(client, server, w_.at(1)); }
  ASSERT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
  const std::size_t before = w_.bench.objects();
  Connected pair(client, server, w_.at(1));
  GrowRequest grow;
  grow.in = {pair.connect.out.stream, 0, 0};
  ASSERT_EQ(client.run(StreamCode::Grow, grow), Status::Ok);
  EXPECT_GT(w_.bench.objects(), before);
  streams::SharedEnd& end = pair.end(w_, 0);
  pair.client_link.reset();
  end.close_hint.store(1);
  w_.run(std::chrono::seconds(1));
  EXPECT_EQ(w_.streams->size(), 1u) << "the peer buries it";
  EXPECT_EQ(end.stream.load(), pair.connect.out.stream);
  pair.server_link.reset();
  pair.end(w_, 1).close_hint.store(1);
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }));
  EXPECT_EQ(end.stream.load(), 0u);
  w_.run(std::chrono::seconds(1));
  EXPECT_LE(w_.bench.objects(), before + 2) << "a slab of rings stays for the next one";
  EXPECT_TRUE(w_.comes([&] { return w_.is_over(); }, std::chrono::minutes(1))) << "DREQ, DREP";
}

TEST_P(Streams, LinksThatCloseWithoutAHintAreFoundSlowly) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  {
    const Connected one(client, server, w_.at(1));
    const Connected two(client, server, w_.at(1));
  }
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
}

TEST_P(Streams, TheLinksOfADeadProcessAreLookedAtSoon) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  std::vector<std::unique_ptr<Connected>> pairs;
  for (int i = 0; i < 20; ++i)
    pairs.push_back(std::make_unique<Connected>(client, server, w_.at(1)));
  client.end();
  server.end();
  w_.run(std::chrono::milliseconds(50));
  EXPECT_EQ(w_.streams->size(), 20u) << "others may have the links";
  pairs.clear();
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::milliseconds(400)));
}

TEST_P(Streams, AProcessThatDiesWithALockBreaksTheStream) {
  Program server(w_, 1);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  Program client(w_, 0);
  const Connected pair(client, server, w_.at(1));
  const Connected other(client, server, w_.at(1));
  // It was working for the peer.
  pair.end(w_, 1).lock.store(hca::lock_owner(client.slot));
  client.end();
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.end(w_, i).broken.load(), 1u);
    EXPECT_EQ(pair.end(w_, i).lock.load(), 0u);
    EXPECT_EQ(other.end(w_, i).broken.load(), 0u);
  }
}

TEST_P(Streams, AProcessInTheMiddleOfACallHoldsUpTheEndOfItsStreamOnly) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  Connected pair(client, server, w_.at(1));
  Connected other(client, server, w_.at(1));
  pair.end(w_, 1).lock.store(hca::lock_owner(client.slot));
  pair.close();
  other.close();
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 1; }, std::chrono::seconds(20)));
  w_.run(std::chrono::seconds(5));
  EXPECT_EQ(w_.streams->size(), 1u);
  hca::unlock(pair.end(w_, 1).lock);
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }));
}

TEST_P(Streams, AListenerThatClosesResetsWhatItHasNotAccepted) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  ConnectRequest connect;
  ASSERT_EQ(client.connect(connect, w_.at(1)), Status::Ok);
  NativeHandle link = connect.take_link();
  streams::SharedEnd& end = *streams::find_end(w_.bench.arena(), connect.out.offset);
  w_.host.end_tcp();
  EXPECT_EQ(end.broken.load(), 1u);
  EXPECT_FALSE(w_.host.is_link_open(connect.out.stream, 1)) << "the client's link hangs up";
  AcceptRequest accept;
  EXPECT_EQ(server.accept(accept, connect), Status::NotFound);
  link.reset();
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
}

TEST_P(Streams, AConnectionThatAnotherProgramAcceptsIsReset) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  ConnectRequest waiting;
  ConnectRequest foreign;
  ASSERT_EQ(client.connect(waiting, w_.at(1)), Status::Ok);
  ASSERT_EQ(client.connect(foreign, w_.at(1)), Status::Ok);
  const auto end_of = [&](const ConnectRequest& one) -> streams::SharedEnd& {
    return *streams::find_end(w_.bench.arena(), one.out.offset);
  };
  w_.host.foreign_ports.insert(foreign.out.local.port);
  const auto begin = w_.bench.executor.now();
  EXPECT_TRUE(
      w_.comes([&] { return end_of(foreign).broken.load() != 0; }, std::chrono::seconds(5)));
  EXPECT_GE(w_.bench.executor.now() - begin, ForeignAccepts::kInterval * 3 / 2)
      << "a program with the switch gets a second to claim what it has accepted";
  EXPECT_FALSE(w_.host.is_link_open(foreign.out.stream, 1)) << "the client's link hangs up";
  EXPECT_EQ(w_.host.resets, 1) << "of TCP";
  EXPECT_EQ(end_of(waiting).broken.load(), 0u) << "that one waits in the backlog";
  ASSERT_EQ(w_.refusals.size(), 1u);
  EXPECT_NE(w_.refusals[0].text.find("on port 5000 does not use the socket switch"),
            std::string::npos)
      << w_.refusals[0].text;
  EXPECT_EQ(w_.refusals[0].node, "node0");
  EXPECT_EQ(w_.refusals[0].peer, "node1");
  AcceptRequest accept;
  EXPECT_EQ(server.accept(accept, foreign), Status::NotFound);
  AcceptRequest late;
  EXPECT_EQ(server.accept(late, waiting), Status::Ok) << late.reason();
}

TEST_P(Streams, TheTableOfTcpIsReadWhileAConnectionWaitsLongOnly) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  w_.run(std::chrono::seconds(5));
  EXPECT_EQ(w_.host.table_reads, 0);
  ConnectRequest waiting;
  ASSERT_EQ(client.connect(waiting, w_.at(1)), Status::Ok);
  w_.run(std::chrono::milliseconds(900));
  EXPECT_EQ(w_.host.table_reads, 0);
  // A process that is slow: it has accepted, and claims a moment later.
  w_.host.foreign_ports.insert(waiting.out.local.port);
  w_.run(std::chrono::milliseconds(600));
  EXPECT_EQ(w_.host.table_reads, 1);
  AcceptRequest accept;
  EXPECT_EQ(server.accept(accept, waiting), Status::Ok) << accept.reason();
  w_.run(std::chrono::seconds(5));
  EXPECT_EQ(w_.host.table_reads, 1);
}

TEST_P(Streams, AClientMayBeGoneBeforeItIsAccepted) {
  Program server(w_, 1);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  ConnectRequest connect;
  {
    Program client(w_, 0);
    ASSERT_EQ(client.connect(connect, w_.at(1)), Status::Ok);
    connect.take_link().reset();
  }
  w_.run(std::chrono::seconds(2));
  AcceptRequest accept;
  EXPECT_EQ(server.accept(accept, connect), Status::Ok) << "what it has written is there";
  accept.take_link().reset();
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
}

TEST_P(Streams, AProcessThatEndsWhileItConnectsLeavesNothing) {
  Program server(w_, 1);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  ConnectRequest connect;
  {
    Program client(w_, 0);
    client.begin_connect(connect, w_.at(1));
    EXPECT_TRUE(client.wait(connect));
  }
  connect.take_link().reset();
  w_.host.end_tcp();
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
}

TEST_P(Streams, AnHcaWithStreamsIsNotRemoved) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  Connected pair(client, server, w_.at(1));
  std::string reason;
  EXPECT_EQ(w_.remove(0, &reason), Status::DeviceBusy);
  EXPECT_EQ(pair.end(w_, 0).broken.load(), 0u);
  pair.close();
  ASSERT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
  EXPECT_EQ(w_.remove(0, &reason), Status::Ok) << reason;
  ASSERT_EQ(w_.plug_in(0), Status::Ok);
  w_.run(std::chrono::seconds(1));
  const Connected again(client, server, w_.at(1));
}

TEST_P(Streams, AnHcaThatIsPulledOutBreaksItsStreams) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  streams::SharedEnd& end = pair.end(w_, 1);
  ASSERT_EQ(w_.eject(0), Status::Ok);
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(5)));
  EXPECT_EQ(end.stream.load(), 0u);
  EXPECT_EQ(end.broken.load(), 1u);
  OpenRequest open;
  open.in = {pair.connect.out.stream, 0, 0};
  EXPECT_EQ(client.run(StreamCode::Open, open), Status::NotFound);
  ASSERT_EQ(w_.plug_in(0), Status::Ok);
  w_.run(std::chrono::seconds(1));
  const Connected again(client, server, w_.at(1));
}

TEST_P(Streams, AStreamThatIsBeingMadeWhenItsHcaGoesStaysTcp) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  { const Connected first(client, server, w_.at(1)); }
  ConnectRequest connect;
  client.begin_connect(connect, w_.at(1));
  ASSERT_FALSE(connect.is_done());
  ASSERT_EQ(w_.eject(1), Status::Ok);
  EXPECT_TRUE(client.wait(connect));
  EXPECT_NE(connect.status(), Status::Ok);
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
}

TEST_P(Streams, TheEndOfSoftibdEndsAllOfThem) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  ConnectRequest connect;
  client.begin_connect(connect, w_.at(1));
  AcceptRequest accept;
  server.begin_accept(accept, w_.at(0, 40002), w_.at(1));
  w_.close_streams();
  EXPECT_TRUE(client.wait(connect));
  EXPECT_TRUE(server.wait(accept));
  EXPECT_NE(connect.status(), Status::Ok);
  EXPECT_EQ(accept.status(), Status::NotFound);
}

TEST_P(Streams, SoftibdMayEndWhileHcasAreBeingOpened) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  ConnectRequest connect;
  client.begin_connect(connect, w_.at(1));
  w_.close_streams();
  EXPECT_TRUE(client.wait(connect));
  EXPECT_NE(connect.status(), Status::Ok);
}

TEST_P(Streams, ARequestOfSomebodyElseIsRejected) {
  Program server(w_, 1);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  CmClient stranger(w_, 0);
  Connect request;
  request.in = connect_in(w_, 0, 1, 0x300, sdp::service_id(kPort));
  request.begin(stranger);
  ASSERT_TRUE(w_.comes([&] { return request.is_done(); }));
  EXPECT_EQ(request.status(), Status::Disconnected);
  EXPECT_EQ(request.out.reject_reason, 8u) << "no such service";
  EXPECT_EQ(w_.streams->size(), 0u);
}

// Its listener is more exact than that of the service.
TEST_P(Streams, ADriverThatSpeaksSdpKeepsItsConnections) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  CmClient driver(w_, 1);
  driver.listen(sdp::service_id(kPort));
  ConnectRequest connect;
  EXPECT_EQ(client.connect(connect, w_.at(1)), Status::Timeout) << "the driver does not answer";
  EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(20)));
}

TEST_P(Streams, RequestsThatMakeNoSenseAreRefused) {
  Program client(w_, 0);
  StreamRequest<Nothing, Nothing> empty;
  EXPECT_EQ(client.run(StreamCode::Listen, empty), Status::InvalidParameter);
  EXPECT_EQ(client.listen(tcp_name({}, 0)), Status::InvalidParameter);
  ConnectRequest connect;
  connect.in.remote = address_of(w_.at(1));
  EXPECT_EQ(client.run(StreamCode::Connect, connect), Status::InvalidParameter) << "no socket";
  StreamRequest<Nothing, Nothing> accept;
  EXPECT_EQ(client.run(StreamCode::Accept, accept), Status::InvalidParameter);
  StreamRequest<Nothing, Nothing> open;
  EXPECT_EQ(client.run(StreamCode::Open, open), Status::InvalidParameter);
  StreamRequest<Nothing, Nothing> grow;
  EXPECT_EQ(client.run(StreamCode::Grow, grow), Status::InvalidParameter);
}

TEST_P(Streams, PlacesAreUsedAgain) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  std::vector<std::unique_ptr<Connected>> pairs;
  const auto connect_some = [&] {
    for (int i = 0; i < 30; ++i) {
      pairs.push_back(std::make_unique<Connected>(client, server, w_.at(1)));
    }
    const std::size_t most = w_.bench.objects();
    pairs.clear();
    EXPECT_TRUE(w_.comes([&] { return w_.streams->size() == 0; }, std::chrono::seconds(60)));
    w_.run(std::chrono::seconds(1));
    return most;
  };
  const std::size_t first = connect_some();
  const std::size_t left = w_.bench.objects();
  EXPECT_EQ(connect_some(), first);
  EXPECT_EQ(w_.bench.objects(), left);
  EXPECT_LT(left, first / 4);
}

TEST_P(Streams, TheListShowsListenersAndStreams) {
  Program server(w_, 1);
  Program client(w_, 0);
  ASSERT_EQ(server.listen(w_.at(1)), Status::Ok);
  const Connected pair(client, server, w_.at(1));
  pair.end(w_, 0).bytes_sent = 17;
  const std::vector<StreamListing> all = w_.streams->list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].is_listener);
  EXPECT_EQ(all[0].ends[0].node, 1u);
  EXPECT_EQ(all[0].ends[0].name, w_.at(1));
  EXPECT_STREQ(all[1].state, "established");
  EXPECT_EQ(all[1].ends[0].node, 0u);
  EXPECT_EQ(all[1].ends[1].node, 1u);
  EXPECT_EQ(all[1].ends[0].bytes_sent, 17u);
  EXPECT_NE(all[1].ends[0].pid, all[1].ends[1].pid);
  EXPECT_NE(all[1].ends[1].qpn, 0u);
}

}  // namespace
}  // namespace ib::services::test
