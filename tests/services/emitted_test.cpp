// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every kind of MAD that softib sends from queue pairs 1 (emitted_mads.h), sent once between two
// nodes by the services themselves, and read by tshark without a complaint.
#include "mad/class_port_info.h"
#include "mad/test/erf_capture_test.h"
#include "sa/records/inform_info.h"
#include "services/cm/cm_service.h"
#include "services/sa/gsi_sa_client.h"
#include "services/sa/sa_message.h"
#include "services/sa/sa_service.h"
#include "services_world.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>
#include <utility>
#include <variant>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kService = 0x1000'0000'0106'1d2f;

// Keeps its events.
class Consumer final : public CmConsumer {
 public:
  explicit Consumer(ServicesWorld& world) : w_(world) {}
  void on_manager(HcaCm&) override {}
  void on_event(HcaCm& manager, const cm::Event& event) override {
    events_.emplace_back(&manager, event);
  }
  void on_hca_gone(const fabric::Hca&) override {}
  // The next event of that kind; others before it are dropped.
  template <class Event>
  Event take() {
    const auto is_it = [](const auto& one) { return std::holds_alternative<Event>(one.second); };
    EXPECT_TRUE(w_.comes([&] { return std::ranges::any_of(events_, is_it); }, 10s));
    const auto at = std::ranges::find_if(events_, is_it);
    if (at == events_.end()) return {};
    const Event event = std::get<Event>(at->second);
    events_.erase(events_.begin(), std::next(at));
    return event;
  }

 private:
  ServicesWorld& w_;
  std::deque<std::pair<HcaCm*, cm::Event>> events_;
};

class EmittedMadsTest : public testing::Test {
 protected:
  EmittedMadsTest() {
    sa.emplace(*w.gsi, w.bench.fabric, w.bench.executor, SaService::Options{});
    std::string reason;
    auto made = GsiSaClient::create(*w.gsi, *sa, w.bench.fabric, w.bench.executor, {}, reason);
    EXPECT_TRUE(made.has_value()) << reason;
    client = *std::move(made);
    cm.emplace(w.bench.executor, w.bench.fabric, *w.gsi,
               [this] { return static_cast<std::uint32_t>(random()); });
    for (const char* node : {"node0", "node1"}) EXPECT_EQ(w.ensure(node), Status::Ok);
  }
  ~EmittedMadsTest() override {
    w.run();
    cm.reset();
    client.reset();
    sa.reset();
  }

  verbs::Gid gid(std::size_t node) { return w.port(node).gid(); }

  // A request of another requester, such as saquery: the answers are what counts here.
  void request(std::uint8_t mgmt_class, std::uint8_t method, std::uint16_t attribute,
               const mad::Mad& message) {
    std::string reason;
    GsiAgent agent;
    agent.name = "requester";
    agent.mgmt_class = mgmt_class;
    agent.class_version = 2;
    const auto id = w.gsi->add_agent(agent, reason);
    ASSERT_TRUE(id.has_value()) << reason;
    mad::Mad mad = message;
    mad::MadHeader header = header_of(mad);
    header.base_version = mad::kBaseVersion;
    header.mgmt_class = mgmt_class;
    header.class_version = 2;
    header.method = method;
    header.attribute = attribute;
    header.transaction_id = 0x7777;
    std::memcpy(mad.data(), &header, sizeof header);
    bool done = false;
    const auto sent = w.gsi->request(*id, {w.address(1, 0), mad, 100ms, 1},
                                     [&](Status, std::string_view, const auto*) { done = true; });
    EXPECT_TRUE(sent.has_value());
    EXPECT_TRUE(w.comes([&] { return done; }));
    w.gsi->remove_agent(*id);
  }
  void get(std::uint8_t mgmt_class, std::uint16_t attribute) {
    request(mgmt_class, mad::method::kGet, attribute, {});
  }

  void use_the_subnet_administrator();
  void read_its_records();
  void connect_and_migrate();
  void resolve_a_service();
  void refuse_a_connection();

  cm::Path path(std::size_t from, std::size_t to) {
    cm::Path path;
    path.sgid = gid(from);
    path.dgid = gid(to);
    path.slid = w.port(from).lid;
    path.dlid = w.port(to).lid;
    path.subnet_local = true;
    path.ack_timeout = 14;
    path.packet_lifetime = 4;
    return path;
  }

  ServicesWorld w;
  std::mt19937 random{11};
  std::optional<SaService> sa;
  std::unique_ptr<SaClient> client;
  std::optional<CmService> cm;
};

// Paths, groups, services and subscriptions, by the client that all services use.
void EmittedMadsTest::use_the_subnet_administrator() {
  int answers = 0;
  SaClient::PathQuery query;
  query.sgid = gid(1);
  query.dgid = gid(0);
  const auto path = client->query_path(query, [&](const auto&, const auto&) { ++answers; });
  SaClient::JoinRequest group;
  group.components = sa::mc_component::kToCreate;
  group.record.mgid = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  group.record.port_gid = gid(1);
  group.record.join_state = sa::join_state::kFullMember;
  group.record.pkey = 0xffff;
  group.record.qkey = 0x1234567;
  auto subscription = client->subscribe(
      gid(1), sa::kAllTraps, [](const sa::Notice&) {}, [&](const auto&) { ++answers; });
  ASSERT_TRUE(w.comes([&] { return answers == 2; }));
  auto member = client->join(group, [&](const auto&, const auto&) { ++answers; });
  sa::ServiceRecord service;
  service.id = kService;
  service.gid = gid(1);
  service.pkey = 0xffff;
  service.lease_seconds = 60;
  auto registration =
      client->register_service(service, [&](const auto&, const auto&) { ++answers; });
  ASSERT_TRUE(w.comes([&] { return answers == 4; }));
  w.run(1s);  // Report, ReportResp
  member.reset();
  registration.reset();
  subscription.reset();
  w.run(1s);
}

// All attributes by Get and GetTable, a request that is refused, and the ends of RMPP.
void EmittedMadsTest::read_its_records() {
  for (const std::uint16_t attribute :
       {sa::attribute::kClassPortInfo, sa::attribute::kNodeRecord, sa::attribute::kPortInfoRecord,
        sa::attribute::kServiceRecord, sa::attribute::kPathRecord, sa::attribute::kMcMemberRecord,
        sa::attribute::kInformInfoRecord}) {
    get(sa::kMgmtClass, attribute);
    if (attribute != sa::attribute::kClassPortInfo) {
      request(sa::kMgmtClass, mad::method::kGetTable, attribute, {});
    }
  }
}

// REQ, MRA, REP, RTU, LAP, APR, DREQ, DREP.
void EmittedMadsTest::connect_and_migrate() {
  Consumer active(w), passive(w);
  cm->add(active);
  cm->add(passive);
  HcaCm& a = cm->manager_of(w.hca(0));
  HcaCm& z = cm->manager_of(w.hca(1));
  ASSERT_TRUE(z.listen(passive, {.service_id = kService}).has_value());
  cm::ConnectRequest request;
  request.service_id = kService;
  request.primary = path(0, 1);
  request.qpn = 0x11;
  const auto made = a.connect(active, request);
  ASSERT_TRUE(made.has_value());
  const cm::ConnectionId other = passive.take<cm::RequestReceived>().id;
  EXPECT_EQ(z.act([&](cm::Engine& e, Instant now) { return e.delay(other, 10, {}, now); }),
            Status::Ok);
  cm::Reply reply;
  reply.qpn = 0x22;
  EXPECT_EQ(z.act([&](cm::Engine& e, Instant now) { return e.accept(other, reply, now); }),
            Status::Ok);
  active.take<cm::ReplyReceived>();
  EXPECT_EQ(a.act([&](cm::Engine& e, Instant now) { return e.establish(*made, {}, now); }),
            Status::Ok);
  passive.take<cm::Established>();
  cm::Path alternate = path(0, 1);
  alternate.sgid = verbs::make_gid(0xfe80'0000'0000'0000, 0x77);  // another port of this side
  alternate.slid = 0x77;
  EXPECT_EQ(a.act([&](cm::Engine& e, Instant now) {
    return e.load_alternate_path(*made, alternate, {}, now);
  }),
            Status::Ok);
  passive.take<cm::AlternatePathOffered>();
  EXPECT_EQ(
      z.act([&](cm::Engine& e, Instant now) { return e.answer_alternate_path(other, {}, now); }),
      Status::Ok);
  active.take<cm::AlternatePathAnswered>();
  cm->remove(active);
  w.run(1s);
  cm->remove(passive);
  w.run(1s);
}

// SIDR_REQ and SIDR_REP.
void EmittedMadsTest::resolve_a_service() {
  Consumer consumer(w);
  cm->add(consumer);
  cm::SidrRequest request;
  request.service_id = kService + 1;
  request.path = path(0, 1);
  ASSERT_TRUE(cm->manager_of(w.hca(0)).resolve_sidr(consumer, request).has_value());
  consumer.take<cm::SidrAnswered>();
  cm->remove(consumer);
  w.run(1s);
}

// REJ.
void EmittedMadsTest::refuse_a_connection() {
  Consumer consumer(w);
  cm->add(consumer);
  cm::ConnectRequest request;
  request.service_id = kService + 2;
  request.primary = path(0, 1);
  request.qpn = 0x12;
  ASSERT_TRUE(cm->manager_of(w.hca(0)).connect(consumer, request).has_value());
  EXPECT_EQ(consumer.take<cm::Rejected>().reason, cm::RejectReason::InvalidServiceId);
  cm->remove(consumer);
  w.run(1s);
}

TEST_F(EmittedMadsTest, EachKindIsSentAndReadByTshark) {
  use_the_subnet_administrator();
  read_its_records();
  connect_and_migrate();
  resolve_a_service();
  refuse_a_connection();
  get(0x07, mad::kClassPortInfo);
  get(0x04, mad::kClassPortInfo);  // nobody has performance management: refused

  std::set<MadKind> seen;
  mad::ErfCapture capture;
  for (const auto& [kind, mad] : w.emitted.all()) {
    seen.insert(kind);
    capture.add(mad);
  }
  for (const MadKind& kind : w.emitted.unknown()) {
    ADD_FAILURE() << text_of(kind) << " is not in the table";
  }
  for (const MadKind& kind : kEmittedKinds) {
    EXPECT_TRUE(seen.contains(kind)) << text_of(kind) << " was not sent";
  }
  const auto rows = capture.dissect("emitted", {"infiniband.mad.mgmtclass"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  std::size_t i = 0;
  for (const auto& [kind, mad] : w.emitted.all()) {
    EXPECT_EQ((*rows)[i].back(), "") << text_of(kind);
    ++i;
  }
}

}  // namespace
}  // namespace ib::services::test
