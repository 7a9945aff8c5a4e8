// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that requests everything of a node: each method and attribute of subnet administration,
// each mistake that has a status, and each class of general management.
#include "administration.h"
#include "emitted_scenarios.h"
#include "raw_peer.h"
#include "sa/records/inform_info.h"
#include "services/cm/cm_service.h"
#include "services/gsi/element_agents.h"
#include "services/sa/sa_message.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;
namespace m = sa::method;
namespace a = sa::attribute;
namespace s = sa::sa_status;

// Of subnet administration [IBA1 15.2.5, table 198], and one that nobody defines.
constexpr std::uint16_t kSaAttributes[] = {
    0x0001, 0x0002, 0x0003, 0x0011, 0x0012, 0x0013, 0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x0019,
    0x0020, 0x0030, 0x0031, 0x0033, 0x0035, 0x0036, 0x0038, 0x0039, 0x003a, 0x003b, 0x00f3, 0x7777};

// Room for one service of a port, and for tables of two NodeRecords.
SaService::Options small() {
  SaService::Options options;
  options.server.limits.answer_bytes = 300;
  options.server.limits.services.services_of_port = 1;
  return options;
}

class Refusals {
 public:
  explicit Refusals(std::vector<mad::Mad>& log) {
    w_.emitted.log_to(log);
    sa_.emplace(*w_.gsi, w_.bench.fabric, w_.bench.executor, small());
    client_ = make_sa_client(w_, *sa_);
    cm_.emplace(w_.bench.executor, w_.bench.fabric, *w_.gsi, [] { return 1u; });
    std::string reason;
    agents_ = *ElementAgents::create(*w_.gsi, w_.bench.fabric, w_.bench.core().gmp_agents, reason);
    EXPECT_EQ(w_.ensure("node0"), Status::Ok);
    peer_.emplace(w_, 1, [this](const mad::Mad& mad) { answers_.push_back(header_of(mad)); });
  }
  ~Refusals() {
    w_.run();
    peer_.reset();
    cm_.reset();
    agents_.reset();
    client_.reset();
    sa_.reset();
  }

  void request_before_there_is_an_administrator();
  void request_every_method_and_attribute();
  void make_every_mistake();
  void vanish();
  void request_of_every_class();

 private:
  void send(const mad::MadHeader& header) { send(mad_of(header)); }
  void send(mad::Mad mad) {
    const Be64 tid = ++tid_;
    std::memcpy(mad.data() + offsetof(mad::MadHeader, transaction_id), &tid, sizeof tid);
    peer_->send(w_.address(1, 0).remote, mad);
  }
  template <class Record>
  static mad::Mad sa_mad(std::uint8_t method, std::uint16_t attribute, std::uint64_t components,
                         const Record& record) {
    const auto bytes = sa::encode(record);
    sa::Outgoing outgoing;
    outgoing.method = method;
    outgoing.attribute = attribute;
    outgoing.components = components;
    outgoing.record.assign(bytes.begin(), bytes.end());
    return sa_request(outgoing);
  }
  // The only answer has this status.
  template <class Record>
  void expect(std::uint16_t status, std::uint8_t method, std::uint16_t attribute,
              std::uint64_t components, const Record& record) {
    answers_.clear();
    send(sa_mad(method, attribute, components, record));
    w_.run(1ms);
    ASSERT_EQ(answers_.size(), 1u);
    EXPECT_EQ(answers_[0].status, status) << "method " << unsigned{method};
  }
  sa::ServiceRecord service(std::uint64_t id, std::size_t node) {
    sa::ServiceRecord record;
    record.id = id;
    record.gid = w_.port(node).gid();
    record.pkey = 0xffff;
    record.lease_seconds = sa::kLeaseWithoutEnd;
    return record;
  }

  ServicesWorld w_;
  std::optional<SaService> sa_;
  std::unique_ptr<SaClient> client_;
  std::optional<CmService> cm_;
  std::unique_ptr<ElementAgents> agents_;
  std::optional<RawPeer> peer_;
  std::vector<mad::MadHeader> answers_;
  std::uint64_t tid_ = 0x1000;
};

// An agent takes Reports of the class, and no agent takes requests.
void Refusals::request_before_there_is_an_administrator() {
  expect(mad::mad_status::kMethodNotSupported, m::kGet, a::kPathRecord, 0, sa::PathRecord{});
  std::string reason;
  EXPECT_EQ(sa_->start(reason), Status::Ok) << reason;
}

// Requests of six methods are answered, each with a method that the class defines.
void Refusals::request_every_method_and_attribute() {
  answers_.clear();
  for (unsigned method = 0; method < mad::method::kResponseBit; ++method) {
    for (const std::uint16_t attribute : kSaAttributes) {
      send({1, sa::kMgmtClass, sa::kClassVersion, static_cast<std::uint8_t>(method), 0, 0, 0,
            attribute, 0, 0});
    }
    w_.run(1ms);
  }
  EXPECT_EQ(answers_.size(), 6 * std::size(kSaAttributes));
  const std::set<std::uint8_t> defined = {m::kGetResp, m::kGetTableResp, m::kGetMultiResp,
                                          m::kDeleteResp};
  for (const mad::MadHeader& answer : answers_) {
    EXPECT_TRUE(defined.contains(answer.method)) << unsigned{answer.method};
  }
}

void Refusals::make_every_mistake() {
  namespace path_bit = sa::path_component;
  namespace service_bit = sa::service_component;
  namespace mc_bit = sa::mc_component;
  const verbs::Gid nowhere = verbs::make_gid(fabric::kSubnetPrefix, 0x777);
  sa::PathRecord path;
  path.sgid = nowhere;
  path.dlid = 0x777;
  sa::McMemberRecord member;
  member.mgid = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
  member.port_gid = w_.port(1).gid();
  // Answers to Get and Set.
  expect(s::kInvalidGid, m::kGet, a::kPathRecord, path_bit::kSgid, path);
  expect(s::kInsufficientComponents, m::kGet, a::kPathRecord, 0, path);
  expect(s::kTooManyRecords, m::kGet, a::kPortInfoRecord, 0, sa::PathRecord{});
  expect(s::kNoRecords, m::kGet, a::kServiceRecord, 0, service(1, 1));
  expect(s::kRequestInvalid, m::kSet, a::kMcMemberRecord, mc_bit::kToJoin, member);
  expect(s::kRequestDenied, m::kSet, a::kServiceRecord, service_bit::kNames, service(1, 0));
  sa::ServiceRecord locked = service(1, 1);
  locked.key[0] = 1;
  expect(s::kOk, m::kSet, a::kServiceRecord, service_bit::kNames | service_bit::kKey, locked);
  expect(s::kNoResources, m::kSet, a::kServiceRecord, service_bit::kNames, service(2, 1));
  // To Delete.
  sa::ServiceRecord wrong_key = locked;
  wrong_key.key[0] = 2;
  expect(s::kRequestDenied, m::kDelete, a::kServiceRecord, service_bit::kNames | service_bit::kKey,
         wrong_key);
  expect(s::kNoRecords, m::kDelete, a::kServiceRecord, service_bit::kNames, service(3, 1));
  expect(s::kInsufficientComponents, m::kDelete, a::kServiceRecord, 0, locked);
  expect(s::kRequestInvalid, m::kDelete, a::kMcMemberRecord, mc_bit::kToJoin, member);
  // To GetTable.
  expect(s::kNoResources, m::kGetTable, a::kNodeRecord, 0, sa::PathRecord{});
  expect(s::kRequestInvalid, m::kGetTable, a::kPathRecord, path_bit::kNumbPath, path);
  expect(s::kNoRecords, m::kGetTable, a::kPathRecord, path_bit::kDlid, path);
  expect(s::kInvalidGid, m::kGetTable, a::kPathRecord, path_bit::kSgid, path);
  expect(s::kInsufficientComponents, m::kGetTable, a::kPathRecord, 0, path);
}

// The port of the requester goes down before its requests are answered.
void Refusals::vanish() {
  for (const std::uint8_t method : {m::kGet, m::kGetTable, m::kGetMulti, m::kDelete}) {
    send({1, sa::kMgmtClass, sa::kClassVersion, method, 0, 0, 0, a::kServiceRecord, 0, 0});
  }
  drivers::set_port_state(w_.bench.core(), w_.port(1), false);
  w_.run();
  w_.set_port(1, true);
  w_.run(1s);
}

// The attributes with low numbers, which classes define, and a base version that does not exist.
// Requests of reserved classes are not answered.
void Refusals::request_of_every_class() {
  constexpr std::uint16_t kAttributes = 0x40;
  for (unsigned number = 0; number < 0x100; ++number) {
    const auto mgmt_class = static_cast<std::uint8_t>(number);
    answers_.clear();
    for (const std::uint8_t method : {m::kGet, m::kSet}) {
      for (std::uint16_t attribute = 0; attribute < kAttributes; ++attribute) {
        send({1, mgmt_class, 1, method, 0, 0, 0, attribute, 0, 0});
      }
      send({2, mgmt_class, 1, method, 0, 0, 0, mad::kClassPortInfo, 0, 0});
    }
    w_.run(1ms);
    const bool is_answered = mad::is_general_class(mgmt_class);
    EXPECT_EQ(answers_.size(), is_answered ? 2u * (kAttributes + 1) : 0u) << number;
  }
  // Counters of a port that there is.
  namespace a = mad::perf_attribute;
  for (const std::uint16_t attribute :
       {a::kPortCounters, a::kPortRcvErrorDetails, a::kPortXmitDiscardDetails,
        a::kPortCountersExtended, a::kPortSamplesControl}) {
    mad::Mad request = mad_of({1, mad::mgmt_class::kPerf, 1, m::kGet, 0, 0, 0, attribute, 0, 0});
    request[offsetof(mad::PerfMad, data) + offsetof(mad::PortCounters, port_select)] = std::byte{1};
    send(request);
  }
  // Results of a sampling mechanism that there is not.
  for (const std::uint16_t attribute : {a::kPortSamplesResult, a::kPortSamplesResultExtended}) {
    send({1, mad::mgmt_class::kPerf, 1, m::kGet, 0, 0, 0, attribute, 0, 1});
  }
  // Connection management has another version.
  for (std::uint16_t attribute = 0; attribute < kAttributes; ++attribute) {
    send({1, cm::kCmClass, cm::kCmClassVersion, m::kGet, 0, 0, 0, attribute, 0, 0});
  }
  w_.run(1ms);
}

}  // namespace

void run_refusals(std::vector<mad::Mad>& log) {
  Refusals refusals(log);
  refusals.request_before_there_is_an_administrator();
  refusals.request_every_method_and_attribute();
  refusals.make_every_mistake();
  refusals.request_of_every_class();
  refusals.vanish();
}

}  // namespace ib::services::test
