// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that owns queue pair 1 of its port and sends what it likes to the communication manager of
// another node: MADs of its own with wrong communication IDs and addresses, replays, floods of
// requests, any private data. A program of that node goes on connecting meanwhile, each time with
// success, and nothing is left in the end. SOFTIB_SEED=n repeats the choices.
#include "cm/messages/dreq.h"
#include "cm/messages/lap.h"
#include "cm/messages/rej.h"
#include "cm/messages/rep.h"
#include "cm/messages/req.h"
#include "cm/messages/sidr.h"
#include "raw_peer.h"
#include "services/cm/cm_service.h"
#include "services/rdma_cm/connector/cm_connector.h"
#include "services/rdma_cm/service/service.h"
#include "services/rdma_cm/test/direct_routes_test.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;
using namespace rdma_cm;
using ucma::Code;
using ucma::Event;

constexpr std::uint16_t kListenPort = 7471;
constexpr std::uint32_t kServerPid = 100, kClientPid = 101;
constexpr std::uint64_t kListenerUid = 1, kServerUid = 2, kClientUid = 3;

std::uint32_t seed() {
  const char* text = std::getenv("SOFTIB_SEED");
  return text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 0)) : 20261;
}

class HostilePeer : public ::testing::TestWithParam<verbs::LinkLayer> {
 protected:
  void SetUp() override {
    ASSERT_EQ(w.ensure("node0"), Status::Ok);
    cm_.emplace(w.bench.executor, w.bench.fabric, *w.gsi,
                [this] { return static_cast<std::uint32_t>(random_()); });
    connector_.emplace(*cm_);
    service_.emplace(w.bench.fabric, *connector_, routes_,
                     ServiceOptions{[this] { return static_cast<std::uint32_t>(random_()); },
                                    [](std::string, const File*, std::string_view) {}});
    server_ = service_->open({0, kServerPid, "server", nullptr});
    client_ = service_->open({0, kClientPid, "client", nullptr});
    listen();
    peer_.emplace(w, 1, [this](const mad::Mad& mad) { take_answer(mad); });
    if (HasFatalFailure()) return;
    connect_well();
    idle_ids_ = service_->id_count();
  }
  void TearDown() override {
    service_.reset();
    connector_.reset();
    cm_.reset();
    peer_.reset();
  }

  // --- programs of node 0

  template <class Body>
  Service::Answer write(std::uint32_t file, Code code, const Body& body) {
    const ucma::Header header{static_cast<std::uint32_t>(code), sizeof body, 1024};
    std::array<std::uint8_t, sizeof header + sizeof body> bytes;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
    const std::uint32_t pid = file == server_ ? kServerPid : kClientPid;
    return service_->command({file, pid, bytes, bytes.size(), {}, 0});
  }
  std::uint32_t create(std::uint32_t file, std::uint64_t uid) {
    ucma::CreateId in;
    in.uid = uid;
    in.ps = static_cast<std::uint16_t>(PortSpace::Tcp);
    const Service::Answer answer = write(file, Code::CreateId, in);
    EXPECT_EQ(answer.error, Error::None);
    ucma::IdOut out;
    std::memcpy(&out, answer.data.data(), sizeof out);
    return out.id;
  }
  void destroy(std::uint32_t file, std::uint32_t id) {
    ucma::DestroyId in;
    in.id = id;
    EXPECT_EQ(write(file, Code::DestroyId, in).error, Error::None);
  }
  EndpointAddress own_address() const {
    EndpointAddress address = any_address(Family::Ipv4, kListenPort);
    address.ip = w.bench.fabric.nodes()[0].addresses[0].ip;
    if (!verbs::is_ipv4(address.ip)) address.family = Family::Ipv6;
    return address;
  }
  void listen() {
    const std::uint32_t id = create(server_, kListenerUid);
    ucma::BindIp in;
    in.id = id;
    write_address(own_address(), in.addr);
    ASSERT_EQ(write(server_, Code::BindIp, in).error, Error::None);
    ASSERT_EQ(write(server_, Code::Listen, ucma::Listen{id, 1024}).error, Error::None);
  }
  static ucma::ConnParam parameters(std::uint32_t qpn) {
    ucma::ConnParam param;
    param.valid = 1;
    param.qp_num = qpn;
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = param.rnr_retry_count = 7;
    param.private_data_len = 4;
    std::memcpy(param.private_data.data(), "good", 4);
    return param;
  }
  std::optional<ucma::EventOut> next_event(std::uint32_t file) {
    const Service::Answer answer = write(file, Code::GetEvent, ucma::GetEvent{});
    if (answer.error != Error::None) return std::nullopt;
    ucma::EventOut out;
    std::memcpy(&out, answer.data.data(), sizeof out);
    return out;
  }
  // The server accepts the requests of good clients and rejects the others; it ends what has ended.
  void serve() {
    while (const auto event = next_event(server_)) {
      if (event->event == Event::ConnectRequest) {
        ucma::ConnParam param;
        std::memcpy(&param, event->param.data(), sizeof param);
        if (std::memcmp(param.private_data.data(), "good", 4) == 0) {
          ucma::Accept in;
          in.id = event->id;
          in.uid = kServerUid;
          in.conn_param = parameters(++qpn_);
          EXPECT_EQ(write(server_, Code::Accept, in).error, Error::None);
          continue;
        }
        ++strangers_;
        ucma::Reject in;
        in.id = event->id;
        static_cast<void>(write(server_, Code::Reject, in));
        destroy(server_, event->id);
      } else if (event->event == Event::Disconnected) {
        destroy(server_, event->id);
      }
    }
  }
  void expect_event(Event wanted) {
    std::optional<ucma::EventOut> event;
    ASSERT_TRUE(w.comes([&] {
      if (!server_sleeps_) serve();
      if (!event) event = next_event(client_);
      return event.has_value();
    })) << "no event "
        << static_cast<unsigned>(wanted);
    ASSERT_EQ(event->event, wanted) << "status " << event->status;
  }
  // A whole life of a connection, without an error, within a second for each step.
  void connect_well() {
    std::uint32_t id = 0;
    begin_to_connect(id);
    if (!HasFatalFailure()) connect_to_the_end(id);
  }
  // Until the REQ is sent.
  void begin_to_connect(std::uint32_t& id) {
    id = create(client_, kClientUid);
    ucma::ResolveIp to;
    to.id = id;
    write_address(own_address(), to.dst_addr);
    ASSERT_EQ(write(client_, Code::ResolveIp, to).error, Error::None);
    expect_event(Event::AddrResolved);
    ASSERT_EQ(write(client_, Code::ResolveRoute, ucma::ResolveRoute{id, 0}).error, Error::None);
    expect_event(Event::RouteResolved);
    ucma::Connect in;
    in.id = id;
    in.conn_param = parameters(++qpn_);
    ASSERT_EQ(write(client_, Code::Connect, in).error, Error::None);
  }
  void connect_to_the_end(std::uint32_t id) {
    expect_event(Event::ConnectResponse);
    if (HasFatalFailure()) return;
    ucma::Accept rtu;
    rtu.id = id;
    ASSERT_EQ(write(client_, Code::Accept, rtu).error, Error::None);
    w.run(1ms);
    ucma::Disconnect end;
    end.id = id;
    ASSERT_EQ(write(client_, Code::Disconnect, end).error, Error::None);
    expect_event(Event::Disconnected);
    destroy(client_, id);
    serve();
    ++connected_;
  }

  // --- the hostile peer: queue pair 1 of node 1

  void take_answer(const mad::Mad& mad) {
    ++answers_;
    const std::uint16_t attribute = header_of(mad).attribute;
    if (attribute == static_cast<std::uint16_t>(cm::Attribute::Rej)) {
      ++rejections_;
      const auto rej = cm::decode_rej(mad);
      ASSERT_TRUE(rej.has_value());
      reasons_.insert(static_cast<cm::RejectReason>(rej->reason));
    }
    remember(mad);
  }
  unsigned number(unsigned below) { return static_cast<unsigned>(random_() % below); }
  void remember(const mad::Mad& mad) {
    if (seen_.size() < 64) return seen_.push_back(mad);
    seen_[number(64)] = mad;
  }
  void send(const mad::Mad& mad) {
    remember(mad);
    peer_->send(w.address(1, 0).remote, mad);
  }
  cm::Path path() {
    cm::Path path;
    path.sgid = w.port(1).gid();
    path.dgid = w.port(0).gid();
    if (!w.port(0).is_ethernet()) {
      path.slid = w.port(1).lid;
      path.dlid = w.port(0).lid;
    } else {
      path.subnet_local = false;
      path.hop_limit = 64;
    }
    path.packet_lifetime = path.ack_timeout = 14;
    path.rate = 3;
    return path;
  }
  cm::Req request() {
    cm::Req req;
    req.transaction_id = random_();
    req.local_comm_id = static_cast<std::uint32_t>(random_());
    req.service_id = service_id(PortSpace::Tcp, kListenPort);
    req.ca_guid = w.hca(1).node_guid;
    req.qpn = 2 + number(0xfffff0);
    req.pkey = 0xffff;
    req.path_mtu = 5;
    req.local_cm_response_timeout = req.remote_cm_response_timeout = 10;
    req.max_cm_retries = 1;
    req.primary = path();
    std::array<std::uint8_t, cm::kReqPrivateBytes> data{};
    const EndpointAddress to = own_address();
    write_ip_header({to.family, 4000, to.ip, to.ip}, std::span(data).first<kIpHeaderBytes>());
    req.private_data = cm::Bytes<cm::kReqPrivateBytes>(data);
    return req;
  }
  template <std::size_t N>
  cm::Bytes<N> noise() {
    std::array<std::uint8_t, N> data;
    for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random_());
    return cm::Bytes<N>(std::span(data).first(number(N + 1)));
  }
  cm::Ids wrong_ids() {
    return {random_(), static_cast<std::uint32_t>(random_()),
            static_cast<std::uint32_t>(random_())};
  }
  void send_wrong_ids() {
    switch (number(7)) {
      case 0: {
        cm::Rep rep;
        rep.ids = wrong_ids();
        rep.qpn = 5;
        return send(encode(rep));
      }
      case 1: return send(encode(cm::Rtu{wrong_ids(), noise<cm::kRtuPrivateBytes>()}));
      case 2: return send(encode(cm::Rej{wrong_ids(), 0, 28, {}, noise<cm::kRejPrivateBytes>()}));
      case 3: return send(encode(cm::Mra{wrong_ids(), 0, 31, {}}));
      case 4: return send(encode(cm::Dreq{wrong_ids(), number(1 << 24), {}}));
      case 5: return send(encode(cm::Drep{wrong_ids(), {}}));
      default: return send(mad_of_noise());
    }
  }
  mad::Mad mad_of_noise() {
    mad::Mad mad = encode(request());
    for (std::size_t at = sizeof(mad::MadHeader); at < mad.size(); ++at) {
      if (number(3) == 0) mad[at] = static_cast<std::byte>(random_());
    }
    return mad;
  }
  void send_strange_request() {
    cm::Req req = request();
    switch (number(5)) {
      case 0: req.primary.slid = static_cast<std::uint16_t>(random_()); break;
      case 1: req.primary.sgid[15] ^= 0x5a; break;
      case 2: req.primary.dgid[9] ^= 0xff; break;
      case 3: req.private_data = noise<cm::kReqPrivateBytes>(); break;
      default:
        req.ca_guid = w.hca(0).node_guid;
        req.qpn = qpn_;
        break;
    }
    send(encode(req));
  }

  ServicesWorld w{GetParam()};
  std::mt19937_64 random_{seed()};
  DirectRoutes routes_;
  std::optional<CmService> cm_;
  std::optional<CmConnector> connector_;
  std::optional<Service> service_;
  std::uint32_t server_ = 0, client_ = 0, qpn_ = 0x100;
  std::size_t idle_ids_ = 0;
  bool server_sleeps_ = false;
  std::set<cm::RejectReason> reasons_;  // of rejections that the peer got
  unsigned connected_ = 0, strangers_ = 0, answers_ = 0, rejections_ = 0;
  std::vector<mad::Mad> seen_;
  std::optional<RawPeer> peer_;
};
INSTANTIATE_TEST_SUITE_P(LinkLayers, HostilePeer,
                         ::testing::Values(verbs::LinkLayer::InfiniBand,
                                           verbs::LinkLayer::Ethernet),
                         [](const auto& layer) {
                           return layer.param == verbs::LinkLayer::Ethernet ? "Ethernet"
                                                                            : "InfiniBand";
                         });

TEST_P(HostilePeer, OthersConnectWhileItSendsWrongIdsReplaysAndStaleAddresses) {
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    for (int i = 0; i < 60; ++i) {
      const unsigned kind = number(3);
      if (kind == 0) send_wrong_ids();
      if (kind == 1) send_strange_request();
      if (kind == 2 && !seen_.empty()) send(mad::Mad{seen_[random_() % seen_.size()]});
    }
    connect_well();
  }
  EXPECT_EQ(connected_, 101u);
  EXPECT_GT(rejections_, 100u) << "the peer is told";
  w.run(5min);
  serve();
  EXPECT_EQ(service_->id_count(), idle_ids_) << "ids of requests that nobody sent";
}

TEST_P(HostilePeer, AFloodOfRequestsIsRejectedWithAReasonAndStarvesNobody) {
  constexpr int kRequests = 20000;
  for (int i = 0; i < kRequests && !HasFailure(); ++i) {
    send(encode(request()));
    if (i % 100 == 99) connect_well();
  }
  EXPECT_EQ(connected_, 1u + kRequests / 100);
  EXPECT_GT(strangers_, 1000u) << "the server sees them, and rejects them";
  EXPECT_GT(rejections_, 1000u);
  w.run(5min);
  serve();
  EXPECT_EQ(service_->id_count(), idle_ids_);
}

// The server sees to nothing for a while: requests beyond its backlog are rejected, as those of a
// program are on Linux (the consumer has rejected), and memory does not grow with the flood. The
// backlog has a place for another port all the same.
TEST_P(HostilePeer, AFloodDuringWhichTheServerSleepsStopsAtItsBacklog) {
  for (int i = 0; i < 10000; ++i) {
    cm::Req req = request();
    req.primary.sgid[15] = static_cast<std::uint8_t>(i);  // what it says of itself does not count
    send(encode(req));
  }
  w.run(1ms);
  EXPECT_EQ(service_->id_count(), idle_ids_ + 1024);
  EXPECT_GT(rejections_, 1000u);
  EXPECT_EQ(reasons_, std::set{cm::RejectReason::ConsumerReject});
  server_sleeps_ = true;
  std::uint32_t id = 0;
  begin_to_connect(id);
  w.run(1ms);
  EXPECT_EQ(service_->id_count(), idle_ids_ + 1024 + 2) << "the client's id and its request";
  server_sleeps_ = false;
  connect_to_the_end(id);
  connect_well();
  w.run(5min);
  serve();
  EXPECT_EQ(service_->id_count(), idle_ids_);
}

}  // namespace
}  // namespace ib::services::test
