// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Softib's own services between two nodes: every request of the client, every record that a
// requester can read, the life of connections.
#include "administration.h"
#include "emitted_scenarios.h"
#include "sa/records/inform_info.h"
#include "sa/records/multi_path_record.h"
#include "sa/records/node_record.h"
#include "sa/records/subnet_records.h"
#include "sa/records/table_records.h"
#include "services/cm/cm_service.h"
#include "services/sa/sa_message.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <utility>
#include <variant>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kService = 0x1000'0000'0106'1d2f;
// So many records of each attribute need three packets.
constexpr std::size_t kMany = 8;

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

class Services {
 public:
  explicit Services(std::vector<mad::Mad>& log) {
    w_.emitted.log_to(log);
    sa_.emplace(*w_.gsi, w_.bench.fabric, w_.bench.executor, SaService::Options{});
    client_ = make_sa_client(w_, *sa_);
    cm_.emplace(w_.bench.executor, w_.bench.fabric, *w_.gsi,
                [this] { return static_cast<std::uint32_t>(random_()); });
    for (const char* node : {"node0", "node1"}) EXPECT_EQ(w_.ensure(node), Status::Ok);
  }
  ~Services() {
    w_.run();
    cm_.reset();
    client_.reset();
    sa_.reset();
  }

  void add_hcas();
  void hold_records();
  void read_a_group();
  void read_records_one_by_one();
  void read_tables_of_ports();
  void read_tables();
  void connect_and_migrate();
  void resolve_a_service();
  void refuse_a_connection();

 private:
  verbs::Gid gid(std::size_t node) { return w_.port(node).gid(); }

  static constexpr std::uint32_t kNoAnswer = 0x10000;
  // A request of another requester, such as saquery. Returns the status of the answer.
  std::uint32_t request(std::uint8_t method, std::uint16_t attribute, std::uint64_t components,
                        std::span<const std::byte> record) {
    const AgentId id = add_sa_requester(w_);
    sa::Outgoing outgoing;
    outgoing.method = method;
    outgoing.attribute = attribute;
    outgoing.components = components;
    outgoing.record.assign(record.begin(), record.end());
    const mad::Mad mad = sa_request(outgoing);
    std::optional<std::uint32_t> status;
    const auto sent = w_.gsi->request(
        id, {w_.address(1, 0), mad, 1s, 1},
        [&](Status, std::string_view, const GsiMessage* answer) {
          status = answer != nullptr ? std::uint16_t{answer->header.status} : kNoAnswer;
        });
    EXPECT_TRUE(sent.has_value());
    EXPECT_TRUE(w_.comes([&] { return status.has_value(); }));
    w_.gsi->remove_agent(id);
    return status.value_or(kNoAnswer);
  }
  template <class Record>
  void read(std::uint16_t attribute, std::uint64_t components, const Record& record) {
    const auto bytes = sa::encode(record);
    for (const std::uint8_t method : {sa::method::kGet, sa::method::kGetTable}) {
      EXPECT_EQ(request(method, attribute, components, bytes), 0) << attribute;
    }
  }

  cm::Path path(std::size_t from, std::size_t to) {
    cm::Path path;
    path.sgid = gid(from);
    path.dgid = gid(to);
    path.slid = w_.port(from).lid;
    path.dlid = w_.port(to).lid;
    path.subnet_local = true;
    path.ack_timeout = 14;
    path.packet_lifetime = 4;
    return path;
  }
  static verbs::Gid mgid(std::size_t number) {
    return {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0,
            0,    0,    0,    0,    0,    0,    0, static_cast<std::uint8_t>(number)};
  }

  ServicesWorld w_;
  std::mt19937 random_{11};
  std::optional<SaService> sa_;
  std::unique_ptr<SaClient> client_;
  std::optional<CmService> cm_;
  std::vector<std::unique_ptr<SaClient::Membership>> members_;
  std::vector<std::unique_ptr<SaClient::Registration>> registrations_;
  std::vector<std::unique_ptr<SaClient::Request>> subscriptions_;
};

// Eight ports have PathRecords and PortInfoRecords for three packets.
void Services::add_hcas() {
  for (const std::size_t i : {0u, 1u}) {
    bool done = false;
    std::string reason;
    const auto added =
        w_.bench.tree->add_hca(w_.node(i), "", reason, [&](Status status, const std::string& why) {
          EXPECT_EQ(status, Status::Ok) << why;
          done = true;
        });
    ASSERT_TRUE(added.has_value()) << reason;
    ASSERT_TRUE(w_.comes([&] { return done; }));
  }
  w_.run(100ms);
}

// Groups, services and subscriptions, by the client that all services use.
void Services::hold_records() {
  std::size_t answers = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    SaClient::JoinRequest group;
    group.components = sa::mc_component::kToCreate;
    group.record.mgid = mgid(i);
    group.record.port_gid = gid(1);
    group.record.join_state = sa::join_state::kFullMember;
    group.record.pkey = 0xffff;
    group.record.qkey = 0x1234567;
    members_.push_back(client_->join(group, [&](const auto&, const auto&) { ++answers; }));
    sa::ServiceRecord service;
    service.id = kService + i;
    service.gid = gid(1);
    service.pkey = 0xffff;
    service.lease_seconds = sa::kLeaseWithoutEnd;
    registrations_.push_back(
        client_->register_service(service, [&](const auto&, const auto&) { ++answers; }));
    const std::uint16_t trap = i == 0 ? sa::kAllTraps : static_cast<std::uint16_t>(0x100 + i);
    subscriptions_.push_back(client_->subscribe(
        gid(1), trap, [](const sa::Notice&) {}, [&](const auto&) { ++answers; }));
  }
  ASSERT_TRUE(w_.comes([&] { return answers == 3 * kMany; }));
  w_.run(1s);  // Report, ReportResp
}

void Services::read_a_group() {
  int answers = 0;
  const auto group =
      client_->query_group(gid(1), mgid(1), [&](const auto&, const auto&) { ++answers; });
  SaClient::PathQuery query;
  query.sgid = gid(1);
  query.dgid = gid(0);
  const auto path = client_->query_path(query, [&](const auto&, const auto&) { ++answers; });
  EXPECT_TRUE(w_.comes([&] { return answers == 2; }));
}

// One record of each attribute, by Get and as a table of one packet.
void Services::read_records_one_by_one() {
  EXPECT_EQ(request(sa::method::kGet, sa::attribute::kClassPortInfo, 0, {}), 0);
  sa::NodeRecord node;
  node.lid = w_.port(0).lid;
  read(sa::attribute::kNodeRecord, sa::node_component::kLid, node);
  sa::PortInfoRecord port;
  port.lid = w_.port(0).lid;
  read(sa::attribute::kPortInfoRecord, sa::port_info_component::kLid, port);
  sa::ServiceRecord service;
  service.id = kService;
  read(sa::attribute::kServiceRecord, sa::service_component::kId, service);
  sa::PathRecord path;
  path.sgid = gid(1);
  path.dgid = gid(0);
  read(sa::attribute::kPathRecord, sa::path_component::kSgid | sa::path_component::kDgid, path);
  sa::McMemberRecord member;
  member.mgid = mgid(1);
  read(sa::attribute::kMcMemberRecord, sa::mc_component::kMgid, member);
  sa::InformInfoRecord inform;
  inform.number = 1;
  constexpr std::uint64_t kNumber = 1u << 1;
  read(sa::attribute::kInformInfoRecord, kNumber, inform);
}

// Tables of ports, and those of switches, of which there are none here; several paths.
void Services::read_tables_of_ports() {
  const std::uint16_t lid = w_.port(0).lid;
  read(sa::attribute::kSlToVlRecord, sa::sl_to_vl_component::kLid, sa::SlToVlRecord{lid, 0, 0, {}});
  read(sa::attribute::kSmInfoRecord, 0, sa::SmInfoRecord{});
  read(sa::attribute::kGuidInfoRecord,
       sa::guid_info_component::kLid | sa::guid_info_component::kBlock,
       sa::GuidInfoRecord{lid, 0, {}});
  read(sa::attribute::kVlArbitrationRecord,
       sa::arbitration_component::kLid | sa::arbitration_component::kBlock,
       sa::VlArbitrationRecord{lid, 0, 1, {}});
  for (const std::uint16_t attribute :
       {sa::attribute::kSwitchInfoRecord, sa::attribute::kLinearForwardingRecord,
        sa::attribute::kMulticastForwardingRecord, sa::attribute::kLinkRecord}) {
    EXPECT_EQ(request(sa::method::kGetTable, attribute, 0, {}), 0) << attribute;
  }
  sa::MultiPathRecord paths;
  paths.sgid_count = paths.dgid_count = 1;
  paths.gids = {gid(1), gid(0)};
  EXPECT_EQ(request(sa::method::kGetMulti, sa::attribute::kMultiPathRecord,
                    sa::multi_path_component::kSgidCount | sa::multi_path_component::kDgidCount,
                    sa::encode(paths)),
            0);
}

// Tables of three packets and more of each attribute, and one without records.
void Services::read_tables() {
  const auto read_table = [this](std::uint16_t attribute, std::uint64_t components,
                                 std::span<const std::byte> record) {
    EXPECT_EQ(request(sa::method::kGetTable, attribute, components, record), 0) << attribute;
  };
  sa::PathRecord path;
  path.sgid = gid(1);
  read_table(sa::attribute::kPathRecord, sa::path_component::kSgid, sa::encode(path));
  for (const std::uint16_t attribute :
       {sa::attribute::kNodeRecord, sa::attribute::kPortInfoRecord, sa::attribute::kServiceRecord,
        sa::attribute::kMcMemberRecord, sa::attribute::kInformInfoRecord}) {
    read_table(attribute, 0, {});
  }
  sa::ServiceRecord none;
  none.id = 1;
  read_table(sa::attribute::kServiceRecord, sa::service_component::kId, sa::encode(none));
  members_.clear();
  registrations_.clear();
  subscriptions_.clear();
  w_.run(1s);
}

// REQ, MRA, REP, RTU, LAP, APR, DREQ, DREP.
void Services::connect_and_migrate() {
  Consumer active(w_), passive(w_);
  cm_->add(active);
  cm_->add(passive);
  HcaCm& a = cm_->manager_of(w_.hca(0));
  HcaCm& z = cm_->manager_of(w_.hca(1));
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
  cm_->remove(active);
  w_.run(1s);
  cm_->remove(passive);
  w_.run(1s);
}

// SIDR_REQ and SIDR_REP.
void Services::resolve_a_service() {
  Consumer consumer(w_);
  cm_->add(consumer);
  cm::SidrRequest request;
  request.service_id = kService + 1;
  request.path = path(0, 1);
  ASSERT_TRUE(cm_->manager_of(w_.hca(0)).resolve_sidr(consumer, request).has_value());
  consumer.take<cm::SidrAnswered>();
  cm_->remove(consumer);
  w_.run(1s);
}

// REJ.
void Services::refuse_a_connection() {
  Consumer consumer(w_);
  cm_->add(consumer);
  cm::ConnectRequest request;
  request.service_id = kService + 2;
  request.primary = path(0, 1);
  request.qpn = 0x12;
  ASSERT_TRUE(cm_->manager_of(w_.hca(0)).connect(consumer, request).has_value());
  EXPECT_EQ(consumer.take<cm::Rejected>().reason, cm::RejectReason::InvalidServiceId);
  cm_->remove(consumer);
  w_.run(1s);
}

}  // namespace

void run_services(std::vector<mad::Mad>& log) {
  Services services(log);
  services.add_hcas();
  services.hold_records();
  services.read_a_group();
  services.read_records_one_by_one();
  services.read_tables_of_ports();
  services.read_tables();
  services.connect_and_migrate();
  services.resolve_a_service();
  services.refuse_a_connection();
}

}  // namespace ib::services::test
