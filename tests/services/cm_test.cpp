// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Kernel clients that connect: each operation of al/cm.h, between two nodes.
#include "cm/messages/dreq.h"
#include "cm/messages/rej.h"
#include "cm_world.h"
#include "services/rdma_cm/addresses/ip_cm.h"
#include "services/rdma_cm/addresses/kernel_ports.h"
#include "services/rdma_cm/connector/cm_connector.h"
#include "services/rdma_cm/service/driver_listing.h"

#include <algorithm>

namespace ib::services::test {
namespace {

using al::CmEventKind;
using verbs::QpState;

bool starts_with(const al::CmData& data, std::initializer_list<std::uint8_t> bytes) {
  return data.size >= bytes.size() && std::equal(bytes.begin(), bytes.end(), data.bytes.begin());
}
constexpr std::array<std::uint8_t, 3> kHello{'h', 'i', '!'};

class KernelCm : public testing::TestWithParam<verbs::LinkLayer> {};
INSTANTIATE_TEST_SUITE_P(Each, KernelCm,
                         testing::Values(verbs::LinkLayer::InfiniBand, verbs::LinkLayer::Ethernet),
                         [](const auto& each) {
                           return each.param == verbs::LinkLayer::Ethernet ? "Ethernet"
                                                                           : "InfiniBand";
                         });

// A queue pair with what it needs.
struct Qp {
  explicit Qp(CmClient& c) : client(c) {
    EXPECT_EQ(c.run([&](io::IrpRef irp) { al::alloc_pd(c.ca, pd, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(c.run([&](io::IrpRef irp) { al::create_cq(c.ca, 8, cq, std::move(irp)); }),
              Status::Ok);
    const verbs::control::QpCaps caps{4, 4, 1, 1, 16, 0};
    EXPECT_EQ(c.run([&](io::IrpRef irp) {
      al::create_qp(pd, verbs::QpType::Rc, caps, cq, cq, qp, std::move(irp));
    }),
              Status::Ok);
  }
  ~Qp() {
    EXPECT_EQ(client.run([&](io::IrpRef irp) { al::destroy(qp, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(client.run([&](io::IrpRef irp) { al::destroy(cq, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(client.run([&](io::IrpRef irp) { al::destroy(pd, std::move(irp)); }), Status::Ok);
  }
  void go(al::CmHandle connection, QpState state) {
    const al::CmQueryOut to = client.query(connection, state, 0x654321);  // if it is to accept
    EXPECT_EQ(
        client.run([&](io::IrpRef irp) { al::modify_qp(qp, to.mask, to.attr, std::move(irp)); }),
        Status::Ok)
        << client.last_reason;
  }
  std::uint32_t number() const { return qp.made.qpn; }

  CmClient& client;
  al::Pd pd;
  al::Cq cq;
  al::Qp qp;
};

TEST_P(KernelCm, ConnectionFromListenToTimeWait) {
  CmWorld w(GetParam());
  CmClient server(w, 1);
  CmClient client(w, 0);
  Qp theirs(server);
  Qp ours(client);
  const al::CmHandle listener = server.listen(kService);
  GetRequest request;
  request.begin(server, listener);
  Connect connect;
  connect.in = connect_in(w, 0, 1, ours.number());
  connect.in.data.put(kHello);
  connect.begin(client);
  ASSERT_TRUE(w.comes([&] { return request.is_done(); }));
  ASSERT_EQ(request.status(), Status::Ok);
  EXPECT_FALSE(connect.is_done());
  EXPECT_EQ(request.out.remote_qpn, ours.number());
  EXPECT_EQ(request.out.starting_psn, 0x123456u);
  EXPECT_EQ(request.out.service_id, kService);
  EXPECT_EQ(request.out.remote_ca_guid, w.hca(0).node_guid);
  EXPECT_EQ(request.out.path.dgid, w.port(0).gid());
  EXPECT_EQ(request.out.data.size, al::cm_room::kConnect);
  EXPECT_TRUE(starts_with(request.out.data, {'h', 'i', '!'}));

  for (const QpState state : {QpState::Init, QpState::Rtr}) theirs.go(request.out.handle, state);
  Accept accept;
  accept.in.handle = request.out.handle;
  accept.in.qpn = theirs.number();
  accept.in.starting_psn = 0x654321;
  accept.in.responder_resources = 2;
  accept.in.initiator_depth = 3;
  accept.in.data.put(kHello);
  accept.begin(server);
  ASSERT_TRUE(w.comes([&] { return connect.is_done(); }));
  ASSERT_EQ(connect.status(), Status::Ok) << connect.reason();
  EXPECT_FALSE(accept.is_done()) << "it waits for the RTU";
  EXPECT_EQ(connect.out.remote_qpn, theirs.number());
  EXPECT_EQ(connect.out.starting_psn, 0x654321u);
  EXPECT_TRUE(starts_with(connect.out.data, {'h', 'i', '!'}));
  for (const QpState state : {QpState::Init, QpState::Rtr, QpState::Rts}) {
    ours.go(connect.out.handle, state);
  }
  // The starting PSN of a message is the one with which its receiver begins to send, as in Linux.
  EXPECT_EQ(client.query(connect.out.handle, QpState::Rtr).attr.rq_psn, 0x123456u);
  EXPECT_EQ(client.query(connect.out.handle, QpState::Rts).attr.sq_psn, 0x654321u);
  EXPECT_EQ(server.query(request.out.handle, QpState::Rts).attr.sq_psn, 0x123456u);
  EXPECT_EQ(client.establish(connect.out.handle), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return accept.is_done(); }));
  EXPECT_EQ(accept.status(), Status::Ok);
  EXPECT_EQ(accept.out.kind, CmEventKind::Established);
  theirs.go(request.out.handle, QpState::Rts);
  EXPECT_TRUE(client.query(connect.out.handle, QpState::Rts).is_established);

  // Each sends a message to the other.
  const auto send = [&](Qp& from, Qp& to) {
    EXPECT_EQ(al::post_recv(to.qp, 7, {}), Status::Ok);
    hca::SendWqe wqe;
    wqe.opcode = verbs::WrOpcode::Send;
    wqe.flags = verbs::send_flag::kSignaled;
    EXPECT_EQ(al::post_send(from.qp, wqe), Status::Ok);
    std::array<hca::Completion, 2> got;
    ASSERT_EQ(al::poll(to.cq, got), 1u);
    EXPECT_EQ(got[0].status, verbs::WcStatus::Success);
    EXPECT_EQ(got[0].wr_id, 7u);
    ASSERT_EQ(al::poll(from.cq, got), 1u);
    EXPECT_EQ(got[0].status, verbs::WcStatus::Success);
  };
  send(ours, theirs);
  send(theirs, ours);

  WaitEvent event;
  event.begin(server, request.out.handle);
  Disconnect disconnect;
  disconnect.begin(client, connect.out.handle);
  ASSERT_TRUE(w.comes([&] { return event.is_done(); }));
  EXPECT_EQ(event.out.kind, CmEventKind::Disconnecting);
  EXPECT_FALSE(disconnect.is_done());
  EXPECT_EQ(server.confirm(request.out.handle), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return disconnect.is_done(); }));
  EXPECT_EQ(disconnect.status(), Status::Ok);
  EXPECT_EQ(disconnect.out.by, al::CmEndedBy::Answer);
  WaitEvent over;
  over.begin(client, connect.out.handle);
  ASSERT_TRUE(w.comes([&] { return over.is_done(); }));
  EXPECT_EQ(over.out.kind, CmEventKind::TimeWaitEnded);
  EXPECT_EQ(client.destroy(connect.out.handle), Status::Ok);
  EXPECT_EQ(server.destroy(request.out.handle), Status::Ok);
  EXPECT_TRUE(w.comes([&] { return w.is_over(); }));
}

// A server, and a client whose request it has got.
struct Asked {
  explicit Asked(verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand) : w(link_layer) {
    request.begin(server, server.listen(kService));
    connect.in = connect_in(w, 0, 1);
    connect.begin(client);
    EXPECT_TRUE(w.comes([this] { return request.is_done(); }));
  }

  CmWorld w;
  CmClient server{w, 1};
  CmClient client{w, 0};
  GetRequest request;
  Connect connect;
};

TEST_P(KernelCm, RejectionBringsItsReasonAndData) {
  Asked a(GetParam());
  al::CmRejectIn reject;
  reject.handle = a.request.out.handle;
  reject.data.put(kHello);
  EXPECT_EQ(a.server.run([&](io::IrpRef irp) { a.server.cm.reject(reject, std::move(irp)); }),
            Status::Ok);
  ASSERT_TRUE(a.w.comes([&] { return a.connect.is_done(); }));
  EXPECT_EQ(a.connect.status(), Status::Disconnected);
  EXPECT_EQ(a.connect.out.reject_reason, 28u);
  EXPECT_EQ(a.connect.out.handle, 0u);
  EXPECT_TRUE(starts_with(a.connect.out.data, {'h', 'i', '!'}));
  EXPECT_NE(a.connect.reason().find("rejected"), std::string::npos) << a.connect.reason();
  EXPECT_EQ(a.server.destroy(a.request.out.handle), Status::Ok);
  EXPECT_TRUE(a.w.comes([&] { return a.w.is_over(); }));
}

TEST_P(KernelCm, NobodyListens) {
  CmWorld w(GetParam());
  CmClient client(w, 0);
  Connect connect;
  connect.in = connect_in(w, 0, 1);
  connect.begin(client);
  ASSERT_TRUE(w.comes([&] { return connect.is_done(); }));
  EXPECT_EQ(connect.status(), Status::Disconnected);
  EXPECT_EQ(connect.out.reject_reason, 8u);
  EXPECT_TRUE(w.comes([&] { return w.is_over(); }));
}

TEST(KernelCmConnect, EndsWhenNobodyAnswers) {
  CmWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  GetRequest request;
  request.begin(server, server.listen(kService));
  w.set_port(1, false);
  Connect connect;
  connect.in = connect_in(w, 0, 1);
  connect.begin(client);
  ASSERT_TRUE(w.comes([&] { return connect.is_done(); }));
  EXPECT_EQ(connect.status(), Status::Timeout);
  EXPECT_FALSE(request.is_done());
  EXPECT_TRUE(w.comes([&] { return w.is_over(); }));
  // A path to nowhere.
  connect.in.path.dlid = 0x2345;
  connect.begin(client);
  ASSERT_TRUE(w.comes([&] { return connect.is_done(); }));
  EXPECT_EQ(connect.status(), Status::NotFound);
  request.cancel();
}

TEST(KernelCmConnect, CancelledTellsTheOtherSide) {
  Asked a;
  WaitEvent event;
  event.begin(a.server, a.request.out.handle);
  a.connect.cancel();
  EXPECT_EQ(a.connect.status(), Status::Cancelled);
  EXPECT_EQ(a.connect.outcome.times, 1);
  ASSERT_TRUE(a.w.comes([&] { return event.is_done(); }));
  EXPECT_EQ(event.out.kind, CmEventKind::Rejected);
  EXPECT_EQ(a.server.destroy(a.request.out.handle), Status::Ok);
  EXPECT_TRUE(a.w.comes([&] { return a.w.is_over(); }));
}

TEST(KernelCmConnect, OneQueuePairHasOneConnection) {
  CmWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  const Pair pair = connect(client, server, 0, 1);
  Connect again;
  again.in = connect_in(w, 0, 1);
  again.begin(client);
  ASSERT_TRUE(w.comes([&] { return again.is_done(); }));
  EXPECT_EQ(again.status(), Status::DeviceBusy);
  EXPECT_EQ(client.destroy(pair.active), Status::Ok);
  EXPECT_EQ(client.destroy(pair.active), Status::NotFound);
}

TEST(KernelCmConnect, BothSidesToEachOther) {
  CmWorld w;
  CmClient one(w, 0);
  CmClient two(w, 1);
  Connect from_one;
  from_one.in = connect_in(w, 0, 1, 0x100);
  from_one.in.peer_to_peer = true;
  Connect from_two;
  from_two.in = connect_in(w, 1, 0, 0x200);
  from_two.in.peer_to_peer = true;
  from_one.begin(one);
  from_two.begin(two);
  ASSERT_TRUE(w.comes([&] { return from_one.is_done() || from_two.is_done(); }));
  const bool one_is_passive = from_one.is_done();
  CmClient& passive = one_is_passive ? one : two;
  Connect& met = one_is_passive ? from_one : from_two;
  Connect& other = one_is_passive ? from_two : from_one;
  ASSERT_EQ(met.status(), Status::Ok);
  EXPECT_TRUE(met.out.is_request);
  Accept accept;
  accept.in.handle = met.out.handle;
  accept.in.qpn = met.in.qpn;
  accept.begin(passive);
  ASSERT_TRUE(w.comes([&] { return other.is_done(); }));
  ASSERT_EQ(other.status(), Status::Ok) << other.reason();
  EXPECT_FALSE(other.out.is_request);
  EXPECT_EQ((one_is_passive ? two : one).establish(other.out.handle), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return accept.is_done(); }));
  EXPECT_EQ(accept.status(), Status::Ok);
}

TEST(KernelCmConnect, PrivateDataThatDoesNotFitIsRefused) {
  CmWorld w;
  CmClient client(w, 0);
  Connect connect;
  connect.in = connect_in(w, 0, 1);
  connect.in.data.size = al::cm_room::kConnect + 1;
  connect.begin(client);
  EXPECT_EQ(connect.status(), Status::InvalidParameter);
  connect.in.data.size = 0xffff'ffff;
  connect.begin(client);
  EXPECT_EQ(connect.status(), Status::InvalidParameter);
  EXPECT_TRUE(w.is_over());
}

TEST(KernelCmDelay, IsAnEventOfTheOtherSide) {
  Asked a;
  // The server needs longer than all retries of the client.
  al::CmMessageIn delay;
  delay.handle = a.request.out.handle;
  delay.service_timeout = 18;  // 1.07 s
  EXPECT_EQ(a.server.run([&](io::IrpRef irp) { a.server.cm.delay(delay, std::move(irp)); }),
            Status::Ok);
  a.w.run(std::chrono::milliseconds(500));
  EXPECT_FALSE(a.connect.is_done());
  Accept accept;
  accept.in.handle = a.request.out.handle;
  accept.in.qpn = 0x200;
  accept.begin(a.server);
  ASSERT_TRUE(a.w.comes([&] { return a.connect.is_done(); }));
  WaitEvent event;
  event.begin(a.server, a.request.out.handle);
  delay.handle = a.connect.out.handle;
  EXPECT_EQ(a.client.run([&](io::IrpRef irp) { a.client.cm.delay(delay, std::move(irp)); }),
            Status::Ok);
  ASSERT_TRUE(a.w.comes([&] { return event.is_done(); }));
  EXPECT_EQ(event.out.kind, CmEventKind::Delayed);
  EXPECT_EQ(event.out.service_timeout, 18u);
  EXPECT_EQ(a.client.establish(a.connect.out.handle), Status::Ok);
  ASSERT_TRUE(a.w.comes([&] { return accept.is_done(); }));
  EXPECT_EQ(accept.status(), Status::Ok);
}

TEST(KernelCmPaths, AnAlternatePathIsLoadedAndUsed) {
  CmWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  const Pair pair = connect(client, server, 0, 1);
  WaitEvent offer;
  offer.begin(server, pair.passive);
  LoadPath load;
  load.in.handle = pair.active;
  load.in.path = w.path(0, 1);
  load.in.path.sgid = w.hca(0).ports[1].gid();
  load.in.path.slid = w.hca(0).ports[1].lid;
  load.in.path.port = 2;
  load.in.path.dgid = w.hca(1).ports[1].gid();
  load.in.path.dlid = w.hca(1).ports[1].lid;
  load.begin(client);
  ASSERT_TRUE(w.comes([&] { return offer.is_done(); }));
  EXPECT_EQ(offer.out.kind, CmEventKind::PathOffered);
  EXPECT_EQ(offer.out.path.port, 2);
  EXPECT_EQ(offer.out.path.dlid, w.hca(0).ports[1].lid);
  EXPECT_FALSE(load.is_done());
  al::CmAnswerPathIn answer;
  answer.handle = pair.passive;
  EXPECT_EQ(server.run([&](io::IrpRef irp) { server.cm.answer_path(answer, std::move(irp)); }),
            Status::Ok);
  ASSERT_TRUE(w.comes([&] { return load.is_done(); }));
  EXPECT_EQ(load.status(), Status::Ok);
  EXPECT_EQ(load.out.status, 0u);
  const al::CmQueryOut to = client.query(pair.active, QpState::Rts);
  EXPECT_EQ(to.mask,
            verbs::qp_attr::kState | verbs::qp_attr::kAltPath | verbs::qp_attr::kPathMigState);
  EXPECT_EQ(to.attr.alt_port, 2);
  EXPECT_EQ(to.attr.mig_state, verbs::MigState::Rearm);
  const al::CmHandleIn active{pair.active};
  EXPECT_EQ(client.run([&](io::IrpRef irp) { client.cm.path_migrated(active, std::move(irp)); }),
            Status::Ok);
  EXPECT_EQ(client.query(pair.active, QpState::Init).attr.port, 2);
}

TEST_P(KernelCm, DatagramServiceIsResolved) {
  CmWorld w(GetParam());
  CmClient server(w, 1);
  CmClient client(w, 0);
  GetRequest request;
  request.begin(server, server.listen(kService, al::CmServices::Datagrams));
  Resolve resolve;
  resolve.in.service_id = kService;
  resolve.in.path = w.path(0, 1);
  resolve.in.response_timeout = 10;
  resolve.in.max_retries = 3;
  resolve.in.data.put(kHello);
  resolve.begin(client);
  ASSERT_TRUE(w.comes([&] { return request.is_done(); }));
  EXPECT_TRUE(request.out.is_datagram);
  EXPECT_TRUE(starts_with(request.out.data, {'h', 'i', '!'}));
  al::CmRespondIn respond;
  respond.handle = request.out.handle;
  respond.qpn = 0x77;
  respond.qkey = 0x1234;
  EXPECT_EQ(server.run([&](io::IrpRef irp) { server.cm.respond(respond, std::move(irp)); }),
            Status::Ok);
  ASSERT_TRUE(w.comes([&] { return resolve.is_done(); }));
  ASSERT_EQ(resolve.status(), Status::Ok) << resolve.reason();
  EXPECT_EQ(resolve.out.qpn, 0x77u);
  EXPECT_EQ(resolve.out.qkey, 0x1234u);
  // One that nobody offers, and one that is not answered.
  resolve.in.service_id = kService + 1;
  resolve.begin(client);
  ASSERT_TRUE(w.comes([&] { return resolve.is_done(); }));
  EXPECT_EQ(resolve.status(), Status::Disconnected);
  EXPECT_NE(resolve.out.status, 0u);
  resolve.in.service_id = kService;
  resolve.begin(client);
  ASSERT_TRUE(w.comes([&] { return resolve.is_done(); }));
  EXPECT_EQ(resolve.status(), Status::Timeout);
}

TEST(KernelCmListen, ServiceIdsAreSharedByAllClientsOfAnHca) {
  CmWorld w;
  CmClient one(w, 1);
  CmClient two(w, 1);
  const al::CmHandle listener = one.listen(kService);
  al::CmListenIn in;
  in.service_id = kService;
  const auto listen = [&] {
    return two.run([&](io::IrpRef irp) { two.cm.listen(in, std::move(irp)); });
  };
  EXPECT_EQ(listen(), Status::AlreadyExists);
  EXPECT_NE(two.last_reason.find("0x1000ce0000000001"), std::string::npos) << two.last_reason;
  in.service_mask = ~std::uint64_t{0xff};
  EXPECT_EQ(listen(), Status::AlreadyExists);
  in.service_mask = ~std::uint64_t{0};
  in.compare_size = 1;  // it compares, so it goes first
  in.value[0] = 'x';
  in.mask[0] = 0xff;
  EXPECT_EQ(listen(), Status::Ok);
  in.compare_size = 65;
  EXPECT_EQ(listen(), Status::InvalidParameter);
  in.compare_size = 0;
  in.port = 3;
  EXPECT_EQ(listen(), Status::InvalidParameter);
  in.port = 0;
  EXPECT_EQ(one.destroy(listener), Status::Ok);
  EXPECT_EQ(listen(), Status::Ok);
  // A handle is of its Cm only, and of its kind.
  const al::CmHandleIn foreign{static_cast<al::CmHandle>(two.last_information)};
  EXPECT_EQ(one.run([&](io::IrpRef irp) { one.cm.destroy(foreign, std::move(irp)); }),
            Status::NotFound);
  al::CmEvent event;
  EXPECT_EQ(two.run([&](io::IrpRef irp) { two.cm.wait_event(foreign, event, std::move(irp)); }),
            Status::NotFound);
}

// Stands for the rdma_cm service: it has all ports, but for those that a kernel client takes.
struct Programs : CmConsumer, CmPorts {
  void on_manager(HcaCm& manager) override {
    cm::Listen listen;
    listen.service_id = 0x0106'0000;
    listen.service_mask = ~std::uint64_t{0xffff};
    listen.is_fallback = true;
    EXPECT_TRUE(manager.listen(*this, listen).has_value());
  }
  void on_event(HcaCm& manager, const cm::Event& event) override {
    if (const auto* request = std::get_if<cm::RequestReceived>(&event)) {
      ++requests;
      manager.destroy(request->id);
    }
  }
  void on_hca_gone(const fabric::Hca&) override {}
  bool take(const fabric::Node&, std::uint64_t service_id) override {
    if (service_id == taken) return false;
    ++ports;
    return true;
  }
  void give_back(const fabric::Node&, std::uint64_t) override { --ports; }

  int requests = 0;
  int ports = 0;
  std::uint64_t taken = 0x0106'0050;
};

TEST(KernelCmListen, PortsAreSharedWithPrograms) {
  CmWorld w;
  Programs programs;
  w.service.add(programs);
  w.service.set_ports(&programs);
  {
    CmClient server(w, 1);
    CmClient client(w, 0);
    const al::CmHandle listener = server.listen(0x0106'0051);
    EXPECT_EQ(programs.ports, 1);
    GetRequest request;
    request.begin(server, listener);
    Connect to_kernel;
    to_kernel.in = connect_in(w, 0, 1, 0x100, 0x0106'0051);
    to_kernel.begin(client);
    ASSERT_TRUE(w.comes([&] { return request.is_done(); }));
    Connect to_program;
    to_program.in = connect_in(w, 0, 1, 0x101, 0x0106'0052);
    to_program.begin(client);
    ASSERT_TRUE(w.comes([&] { return to_program.is_done(); }));
    EXPECT_EQ(programs.requests, 1);

    al::CmListenIn in;
    in.service_id = 0x0106'0050;
    const auto listen = [&] {
      return server.run([&](io::IrpRef irp) { server.cm.listen(in, std::move(irp)); });
    };
    EXPECT_EQ(listen(), Status::AlreadyExists);
    EXPECT_NE(server.last_reason.find("TCP port 80"), std::string::npos) << server.last_reason;
    in.service_id = 0x0106'0060;
    in.service_mask = ~std::uint64_t{0xf};
    EXPECT_EQ(listen(), Status::AlreadyExists) << "more than one port";
    EXPECT_EQ(programs.ports, 1);
    EXPECT_EQ(server.destroy(listener), Status::Ok);
    EXPECT_EQ(programs.ports, 0);
    server.listen(0x0106'0051);
    to_kernel.cancel();
  }
  EXPECT_EQ(programs.ports, 0) << "a closed client gives its ports back";
  w.service.set_ports(nullptr);
  w.service.remove(programs);
}

// A connection of two drivers as `softib connections` shows it.
TEST(KernelCmListing, ShowsListenersAndBothEndsWithTheirDrivers) {
  CmWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  const auto list = [&w] {
    std::vector<rdma_cm::Listing> all;
    rdma_cm::list_drivers(w.device, w.service.executor().now(), all);
    rdma_cm::find_other_ends(all);
    return all;
  };
  EXPECT_TRUE(list().empty());
  al::CmListenIn in;
  in.service_id = 0x0106'0000 + 7471;
  in.backlog = 5;
  const al::CmHandle echo = server.listen(in);
  const Pair pair = test::connect(client, server, 0, 1);
  GetRequest request;
  request.begin(server, server.listen(kService + 1));
  Connect waiting;
  waiting.in = connect_in(w, 0, 1, 0x200, kService + 1);
  waiting.in.remote_response_timeout = 20;
  waiting.begin(client);
  ASSERT_TRUE(w.comes([&] { return request.is_done(); }));
  w.run(std::chrono::seconds(2));

  std::vector<std::string> texts;
  for (const rdma_cm::Listing& one : list()) {
    EXPECT_TRUE(one.is_driver);
    EXPECT_EQ(one.pid, 0u);
    EXPECT_EQ(one.program, "test");
    EXPECT_EQ(w.node(one.node).name, one.node == 0 ? "node0" : "node1");
    EXPECT_GE(one.age, std::chrono::seconds(2));
    texts.push_back(fmt::format("{} {} {:#x} {:#x}-{:#x} {}{}", one.node, one.state, one.service_id,
                                one.qpn, one.peer_qpn, one.other_end ? "with its peer " : "",
                                one.waits_for));
    if (one.state == std::string_view("listening") && one.service_id == in.service_id) {
      EXPECT_STREQ(one.space, "TCP");
      EXPECT_EQ(one.local.port, 7471);
      EXPECT_EQ(one.backlog, 5u);
    }
  }
  std::ranges::sort(texts);
  EXPECT_EQ(texts,
            (std::vector<std::string>{
                "0 REQ sent 0x1000ce0000000002 0x200-0x0 an answer of its peer",
                "0 established 0x1000ce0000000001 0x100-0x1100 with its peer ",
                "1 REQ received 0x1000ce0000000002 0x0-0x200 its driver to accept or reject",
                "1 established 0x1000ce0000000001 0x1100-0x100 with its peer ",
                "1 listening 0x1000ce0000000002 0x0-0x0 ", "1 listening 0x1061d2f 0x0-0x0 "}));
  EXPECT_EQ(server.destroy(echo), Status::Ok);
  EXPECT_EQ(client.destroy(pair.active), Status::Ok);
  client.close();
  for (const rdma_cm::Listing& one : list()) EXPECT_EQ(one.node, 1u);
}

// One that its peer has ended, or that was made up, names no connection; one that comes too early
// does not fit.
TEST(KernelCmDrops, HaveALineThatSaysWhoSentWhatAndWhy) {
  CmWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  const Pair pair = test::connect(client, server, 0, 1);
  const al::CmQueryOut end = server.query(pair.passive, QpState::Rts);
  ASSERT_TRUE(w.drops.empty()) << w.drops.front();
  const HcaCm& manager = w.service.manager_of(w.hca(1));
  const cm::Counters before = manager.engine().counters();
  std::string reason;
  GsiAgent agent;
  agent.name = "hostile";
  agent.mgmt_class = cm::kCmClass;
  agent.class_version = cm::kCmClassVersion;
  const auto sender = w.gsi->add_agent(agent, reason);
  ASSERT_TRUE(sender.has_value()) << reason;
  const auto send = [&](const mad::Mad& mad) {
    EXPECT_EQ(w.gsi->send(*sender, w.address(0, 1), mad), Status::Ok);
    w.run();
  };
  cm::Rej malformed;
  mad::Mad bytes = encode(malformed);
  bytes[24 + 9] = std::byte{0xff};
  send(bytes);
  ASSERT_EQ(w.drops.size(), 1u);
  const std::string sender_text =
      fmt::format(", from LID {} (port 1 of softib0 of node0)", w.port(0).lid);
  EXPECT_EQ(w.drops[0],
            "port 1 of softib0 of node1 dropped a REJ that is malformed: method 0x03, "
            "attribute 0x0012" +
                sender_text);
  send(encode(cm::Drep{{1, 0x1111, 0x2222}, {}}));
  ASSERT_EQ(w.drops.size(), 2u);
  EXPECT_EQ(w.drops[1],
            "port 1 of softib0 of node1 dropped a DREP that names no connection of its "
            "sender: communication IDs 0x1111 of the sender, 0x2222 of the receiver" +
                sender_text);
  send(encode(cm::Drep{{1, end.remote_comm_id, end.local_comm_id}, {}}));
  ASSERT_EQ(w.drops.size(), 3u);
  EXPECT_NE(w.drops[2].find("a DREP that does not fit the state of its connection: "),
            std::string::npos)
      << w.drops[2];
  // A DREQ that is answered has no line. (The answer has: no DREQ of node 0 waits for it.)
  send(encode(cm::Dreq{{1, 0x1111, 0x2222}, 5, {}}));
  ASSERT_EQ(w.drops.size(), 4u);
  EXPECT_TRUE(w.drops[3].starts_with("port 1 of softib0 of node0 dropped a DREP that names"))
      << w.drops[3];
  // Of one kind the first eight have a line, then those that double their number.
  for (int i = 2; i < 40; ++i) send(encode(cm::Drep{{1, 0x1111, 0x2222}, {}}));
  EXPECT_EQ(w.drops.size(), 4u + 6u + 2u);
  EXPECT_EQ(manager.engine().counters().malformed, before.malformed + 1);
  w.gsi->remove_agent(*sender);
}

TEST(KernelCmListen, RequestsBeyondTheBacklogAreRejected) {
  CmWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  al::CmListenIn in;
  in.service_id = kService;
  in.backlog = 2;
  const al::CmHandle listener = server.listen(in);
  std::array<Connect, 3> all;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    all[i].in = connect_in(w, 0, 1, 0x100 + i);
    all[i].in.max_retries = 15;
    all[i].begin(client);
    w.run();
  }
  ASSERT_TRUE(w.comes([&] { return all[2].is_done(); }));
  EXPECT_EQ(all[2].status(), Status::Disconnected);
  EXPECT_EQ(all[2].out.reject_reason, 3u);
  EXPECT_FALSE(all[0].is_done());
  // Those that the server has not fetched are rejected with the listener.
  EXPECT_EQ(server.destroy(listener), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return all[0].is_done() && all[1].is_done(); }));
  EXPECT_EQ(all[0].status(), Status::Disconnected);
  EXPECT_TRUE(w.comes([&] { return w.is_over(); }));
}

// The rdma_cm service's side of a connection.
struct Program final : rdma_cm::Connector::Handler {
  void on_request(rdma_cm::Endpoint, const fabric::Port&, const rdma_cm::ConnectRequest&) override {
    ++requests;
  }
  void on_datagram_request(rdma_cm::Endpoint, const fabric::Port&,
                           const rdma_cm::DatagramRequest&) override {}
  void on_reply(rdma_cm::Endpoint, const rdma_cm::ConnectReply& reply) override { qpn = reply.qpn; }
  void on_datagram_reply(rdma_cm::Endpoint, const rdma_cm::DatagramReply&) override {}
  void on_ready(rdma_cm::Endpoint) override {}
  void on_rejected(rdma_cm::Endpoint, std::uint16_t why, const rdma_cm::Bytes&) override {
    reason = why;
  }
  void on_unreachable(rdma_cm::Endpoint, const rdma_cm::Unanswered&) override { reason = 4; }
  void on_disconnected(rdma_cm::Endpoint, bool) override { is_disconnected = true; }
  void on_timewait_over(rdma_cm::Endpoint) override {}
  void on_hca_gone(const fabric::Hca&) override {}
  void on_ports_changed(const fabric::Hca&) override {}

  int requests = 0;
  std::uint32_t qpn = 0;
  std::uint32_t reason = 0;
  bool is_disconnected = false;
};

TEST(KernelCmAndPrograms, AProgramConnectsToAKernelClient) {
  CmWorld w;
  Program program;
  rdma_cm::CmConnector connector(w.service);
  connector.set_handler(&program);
  rdma_cm::PortTable table({}, [] { return 7u; });
  rdma_cm::KernelPorts ports(w.bench.fabric, table);
  w.service.set_ports(&ports);
  {
    GetRequest request;
    Accept accept;
    CmClient server(w, 1);
    const std::uint64_t service = rdma_cm::service_id(rdma_cm::PortSpace::Tcp, 7471);
    request.begin(server, server.listen(service));
    rdma_cm::PortOwner owner;
    owner.id = 1;
    owner.address.family = rdma_cm::Family::Ipv4;
    owner.address.port = 7471;
    EXPECT_NE(table.bind(1, rdma_cm::PortSpace::Tcp, owner), rdma_cm::Error::None);
    EXPECT_EQ(table.bind(0, rdma_cm::PortSpace::Tcp, owner), rdma_cm::Error::None)
        << "the ports of another node";

    rdma_cm::ConnectRequest in;
    in.service_id = service;
    in.path.sgid = w.port(0).gid();
    in.path.dgid = w.port(1).gid();
    in.path.slid = w.port(0).lid;
    in.path.dlid = w.port(1).lid;
    in.qpn = 0x123;
    in.private_data.assign(rdma_cm::kIpHeaderBytes, 0);
    const auto endpoint = connector.connect(w.port(0), in);
    ASSERT_TRUE(endpoint);
    ASSERT_TRUE(w.comes([&] { return request.is_done(); }));
    EXPECT_EQ(request.out.remote_qpn, 0x123u);
    EXPECT_EQ(program.requests, 0);
    accept.in.handle = request.out.handle;
    accept.in.qpn = 0x456;
    accept.begin(server);
    ASSERT_TRUE(w.comes([&] { return program.qpn != 0; }));
    EXPECT_EQ(program.qpn, 0x456u);
    EXPECT_EQ(connector.make_ready(*endpoint), Status::Ok);
    ASSERT_TRUE(w.comes([&] { return accept.is_done(); }));
    EXPECT_EQ(accept.status(), Status::Ok);
    server.close();
    ASSERT_TRUE(w.comes([&] { return program.is_disconnected; }));
    connector.drop(*endpoint);
    EXPECT_EQ(table.bind(1, rdma_cm::PortSpace::Tcp, owner), rdma_cm::Error::None)
        << "the port is free again";

    // Another port is the programs'.
    CmClient client(w, 0);
    Connect connect;
    connect.in = connect_in(w, 0, 1, 0x300, service + 1);
    connect.begin(client);
    ASSERT_TRUE(w.comes([&] { return program.requests == 1; }));
    connect.cancel();
  }
  w.service.set_ports(nullptr);
}

}  // namespace
}  // namespace ib::services::test
