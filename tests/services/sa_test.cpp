// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet administrator and its client, with requests that travel as MADs between two nodes.
#include "administration.h"
#include "sa/records/inform_info.h"
#include "services/sa/sa_message.h"
#include "verbs/gid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace mc = sa::mc_component;

class SaServicesTest : public testing::Test {
 protected:
  SaServicesTest() {
    service.emplace(*w.gsi, w.bench.fabric, w.bench.executor, SaService::Options{});
    client = make_sa_client(w, *service);
  }
  ~SaServicesTest() override {
    w.run();  // no node is just being opened
    client.reset();
    service.reset();
  }

  verbs::Gid gid(std::size_t node) { return w.port(node).gid(); }
  static verbs::Gid mgid(std::uint8_t last = 1) {
    verbs::Gid result{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
    result[15] = last;
    return result;
  }

  // A query that was sent, and what came back.
  struct Asked {
    std::unique_ptr<SaClient::Request> request;
    int times = 0;
    SaOutcome outcome;
    sa::PathRecord path;
    sa::McMemberRecord group;
  };
  SaClient::PathQuery between(std::size_t from, std::size_t to) {
    SaClient::PathQuery query;
    query.sgid = gid(from);
    query.dgid = gid(to);
    query.patience = {100ms, 1};
    return query;
  }
  void ask(Asked& asked, const SaClient::PathQuery& query) {
    asked.request =
        client->query_path(query, [&](const SaOutcome& outcome, const sa::PathRecord& path) {
          ++asked.times;
          asked.outcome = outcome;
          asked.path = path;
        });
    EXPECT_EQ(asked.times, 0) << "called from inside the call";
  }
  Asked ask_and_wait(const SaClient::PathQuery& query) {
    Asked asked;
    ask(asked, query);
    EXPECT_TRUE(w.comes([&] { return asked.times == 1; }));
    return asked;
  }

  struct Member {
    std::unique_ptr<SaClient::Membership> share;
    std::vector<SaOutcome> outcomes;
    sa::McMemberRecord group;
  };
  SaClient::JoinRequest join_request(std::size_t node, const verbs::Gid& group) {
    SaClient::JoinRequest request;
    request.components = mc::kToCreate;
    request.record.mgid = group;
    request.record.port_gid = gid(node);
    request.record.join_state = sa::join_state::kFullMember;
    request.record.pkey = 0xffff;
    request.record.qkey = 0x1234567;
    request.patience = {100ms, 1};
    return request;
  }
  void join(Member& member, std::size_t node, const verbs::Gid& group) {
    const std::size_t before = member.outcomes.size();
    member.share = client->join(join_request(node, group),
                                [&](const SaOutcome& outcome, const sa::McMemberRecord& record) {
                                  member.outcomes.push_back(outcome);
                                  member.group = record;
                                });
    EXPECT_TRUE(w.comes([&] { return member.outcomes.size() == before + 1; }));
  }
  std::size_t members() { return service->server().groups().membership_count(); }

  ServicesWorld w;
  std::optional<SaService> service;
  std::unique_ptr<SaClient> client;
};

TEST_F(SaServicesTest, NothingIsOpenedBeforeSomethingIsAsked) {
  const std::size_t objects = w.bench.objects();
  w.run(1s);
  EXPECT_EQ(w.bench.objects(), objects);
}

TEST_F(SaServicesTest, APathTravelsAsAMad) {
  const Asked asked = ask_and_wait(between(1, 0));
  ASSERT_EQ(asked.outcome.status, Status::Ok) << asked.outcome.reason;
  EXPECT_EQ(asked.path.slid, w.port(1).lid);
  EXPECT_EQ(asked.path.dlid, w.port(0).lid);
  EXPECT_EQ(asked.path.dgid, gid(0));
  EXPECT_EQ(asked.path.pkey, 0xffff);
  EXPECT_EQ(asked.path.mtu, 5);
  EXPECT_EQ(asked.path.rate, 16);
  EXPECT_TRUE(asked.path.reversible);
  EXPECT_GE(w.gsi->counters().sent, 2u);
}

TEST_F(SaServicesTest, ThePortOfTheSubnetManagerAsksItself) {
  EXPECT_EQ(ask_and_wait(between(0, 1)).outcome.status, Status::Ok);
  EXPECT_EQ(ask_and_wait(between(0, 0)).outcome.status, Status::Ok);
}

TEST_F(SaServicesTest, APathIsCachedUntilAPortOfItChanges) {
  EXPECT_FALSE(client->cached_path(between(1, 0)).has_value());
  (void)ask_and_wait(between(1, 0));
  EXPECT_TRUE(client->cached_path(between(1, 0)).has_value());
  const std::uint64_t sent = w.gsi->counters().sent;
  EXPECT_EQ(ask_and_wait(between(1, 0)).outcome.status, Status::Ok);
  EXPECT_EQ(w.gsi->counters().sent, sent);
  w.set_port(0, false);
  EXPECT_FALSE(client->cached_path(between(1, 0)).has_value());
  w.set_port(0, true);
  EXPECT_EQ(ask_and_wait(between(1, 0)).outcome.status, Status::Ok);
  w.run(61s);
  EXPECT_FALSE(client->cached_path(between(1, 0)).has_value()) << "it is too old";
}

TEST_F(SaServicesTest, OneQueryServesAllThatWaitForThePath) {
  Asked first, second, third;
  ask(first, between(1, 0));
  ask(second, between(1, 0));
  ask(third, between(1, 0));
  third.request.reset();
  ASSERT_TRUE(w.comes([&] { return first.times == 1 && second.times == 1; }));
  EXPECT_EQ(third.times, 0);
  EXPECT_EQ(w.gsi->counters().sent, 2u) << "a request and its answer";
}

TEST_F(SaServicesTest, AQueryThatIsWithdrawnIsNotHeardOf) {
  Asked asked;
  ask(asked, between(1, 0));
  asked.request.reset();
  w.run(1s);
  EXPECT_EQ(asked.times, 0);
}

TEST_F(SaServicesTest, ADestinationThatIsNotThereIsExplained) {
  SaClient::PathQuery query = between(1, 0);
  query.dgid = verbs::make_gid(fabric::kSubnetPrefix, 0x777);
  Asked asked = ask_and_wait(query);
  EXPECT_EQ(asked.outcome.status, Status::NotFound);
  EXPECT_THAT(asked.outcome.reason, HasSubstr("no port of the fabric has the GID"));
  w.set_port(1, false);
  asked = ask_and_wait(between(0, 1));
  EXPECT_EQ(asked.outcome.status, Status::NotFound);
  EXPECT_THAT(asked.outcome.reason, HasSubstr("port 1 of softib0 of node1 is down"));
  w.set_port(1, true);
  query = between(0, 1);
  query.pkey = 0x8005;
  asked = ask_and_wait(query);
  EXPECT_EQ(asked.outcome.status, Status::NotFound);
  EXPECT_THAT(asked.outcome.reason, HasSubstr("do not share the partition of P_Key 0x8005"));
}

TEST_F(SaServicesTest, APortThatCannotAskIsToldSo) {
  SaClient::PathQuery query = between(0, 1);
  query.sgid = verbs::make_gid(fabric::kSubnetPrefix, 0x777);
  EXPECT_EQ(ask_and_wait(query).outcome.status, Status::InvalidParameter);
  w.set_port(1, false);
  const Asked asked = ask_and_wait(between(1, 0));
  EXPECT_EQ(asked.outcome.status, Status::InvalidState);
  EXPECT_THAT(asked.outcome.reason, HasSubstr("port 1 of softib0 of node1 is down"));
}

TEST_F(SaServicesTest, WhileThePortOfTheSubnetManagerIsDownRequestsTimeOutAndSayWhy) {
  (void)ask_and_wait(between(1, 0));
  w.set_port(0, false);
  const Asked asked = ask_and_wait(between(1, 1));
  EXPECT_EQ(asked.outcome.status, Status::Timeout);
  EXPECT_THAT(asked.outcome.reason,
              HasSubstr("the subnet administrator (LID 1, port 1 of softib0 of node0) does not "
                        "answer: that port is down"));
  w.set_port(0, true);
  EXPECT_EQ(ask_and_wait(between(1, 1)).outcome.status, Status::Ok);
}

TEST_F(SaServicesTest, WhileTheHcaOfTheSubnetManagerSleepsRequestsTimeOutAndSayWhy) {
  (void)ask_and_wait(between(1, 0));
  w.power(0, io::SystemPower::Sleep);
  const Asked asked = ask_and_wait(between(1, 1));
  EXPECT_EQ(asked.outcome.status, Status::Timeout);
  EXPECT_THAT(asked.outcome.reason, HasSubstr("that port sleeps"));
  w.power(0, io::SystemPower::Working);
  EXPECT_TRUE(w.comes([&] { return ask_and_wait(between(1, 1)).outcome.status == Status::Ok; }));
}

TEST_F(SaServicesTest, AnHcaThatSleepsFromTheBeginningIsNotWaitedForWithoutEnd) {
  w.power(0, io::SystemPower::Sleep);
  const Asked asked = ask_and_wait(between(1, 1));
  EXPECT_EQ(asked.outcome.status, Status::Timeout);
  EXPECT_THAT(asked.outcome.reason, HasSubstr("that port sleeps"));
  w.power(0, io::SystemPower::Working);
  EXPECT_TRUE(w.comes([&] { return ask_and_wait(between(1, 1)).outcome.status == Status::Ok; }));
}

TEST_F(SaServicesTest, APortJoinsOnceForAllItsSharesAndLeavesWithTheLast) {
  Member first, second;
  join(first, 1, mgid());
  ASSERT_EQ(first.outcomes.at(0).status, Status::Ok) << first.outcomes[0].reason;
  EXPECT_EQ(first.group.mlid, sa::kFirstMulticastLid + 1) << "the broadcast group has the first";
  EXPECT_EQ(first.group.qkey, 0x1234567u);
  join(second, 1, mgid());
  EXPECT_EQ(second.outcomes.at(0).status, Status::Ok);
  EXPECT_EQ(members(), 1u);
  first.share.reset();
  w.run();
  EXPECT_EQ(members(), 1u);
  bool left = false;
  client->leave(std::move(second.share), [&](const SaOutcome& outcome) {
    EXPECT_EQ(outcome.status, Status::Ok);
    EXPECT_EQ(members(), 0u);
    left = true;
  });
  EXPECT_TRUE(w.comes([&] { return left; }));
}

TEST_F(SaServicesTest, AShareThatIsDestroyedWhileItsJoinIsUnderWayLeavesNothing) {
  auto share = client->join(join_request(1, mgid()), [](const SaOutcome&, const auto&) {
    ADD_FAILURE() << "called after it was destroyed";
  });
  share.reset();
  w.run(1s);
  EXPECT_EQ(members(), 0u);
  EXPECT_EQ(service->server().groups().group_count(), 1u) << "the broadcast group";
}

TEST_F(SaServicesTest, AMembershipIsLostWithItsPort) {
  Member member;
  join(member, 1, mgid());
  w.set_port(1, false);
  ASSERT_TRUE(w.comes([&] { return member.outcomes.size() == 2; }));
  EXPECT_EQ(member.outcomes[1].status, Status::InvalidState);
  EXPECT_THAT(member.outcomes[1].reason, HasSubstr("port 1 of softib0 of node1 is down"));
  EXPECT_EQ(members(), 0u);
  w.set_port(1, true);
  member.share.reset();
  join(member, 1, mgid());
  EXPECT_EQ(member.outcomes.back().status, Status::Ok);
}

TEST_F(SaServicesTest, AHcaThatIsPulledOutHasLostItsMemberships) {
  Member member;
  join(member, 1, mgid());
  EXPECT_EQ(w.eject(1), Status::Ok);
  EXPECT_TRUE(w.comes([&] { return member.outcomes.size() == 2; }));
  EXPECT_EQ(members(), 0u);
}

TEST_F(SaServicesTest, ARefusedJoinSaysWhatTheSubnetAdministratorAnswers) {
  Member member;
  join(member, 1, verbs::make_gid(1, 2));
  EXPECT_EQ(member.outcomes.at(0).status, Status::InvalidParameter);
  EXPECT_THAT(member.outcomes[0].reason, HasSubstr("the request is invalid (status 0x0200)"));
}

TEST_F(SaServicesTest, TheBroadcastGroupCanBeReadWithoutJoiningIt) {
  Asked asked;
  const auto read = [&](const verbs::Gid& group) {
    asked.times = 0;
    asked.request =
        client->query_group(gid(1), group, [&](const SaOutcome& outcome, const auto& record) {
          ++asked.times;
          asked.outcome = outcome;
          asked.group = record;
        });
    EXPECT_TRUE(w.comes([&] { return asked.times == 1; }));
  };
  read(sa::ipoib_broadcast_mgid(0xffff));
  ASSERT_EQ(asked.outcome.status, Status::Ok) << asked.outcome.reason;
  EXPECT_EQ(asked.group.qkey, 0x0b1bu);
  EXPECT_EQ(asked.group.mtu, 4);
  read(mgid(9));
  EXPECT_EQ(asked.outcome.status, Status::NotFound);
}

TEST_F(SaServicesTest, AServiceIsRegisteredRenewedAndDeleted) {
  sa::ServiceRecord record;
  record.id = 0x4711;
  record.gid = gid(1);
  record.pkey = 0xffff;
  record.lease_seconds = 10;
  int granted = 0;
  auto registration =
      client->register_service(record, [&](const SaOutcome& outcome, const sa::ServiceRecord&) {
        EXPECT_EQ(outcome.status, Status::Ok) << outcome.reason;
        ++granted;
      });
  w.run(1s);
  EXPECT_EQ(granted, 1);
  EXPECT_EQ(service->server().services().count(), 1u);
  w.run(31s);
  EXPECT_GE(granted, 6);
  EXPECT_EQ(service->server().services().count(), 1u);
  registration.reset();
  w.run(1s);
  EXPECT_EQ(service->server().services().count(), 0u);
}

TEST_F(SaServicesTest, AServiceThatItsClientForgotGoesWithItsLease) {
  // Registered by hand: nobody renews it.
  sa::ServiceRecord record;
  record.id = 0x4711;
  record.gid = gid(1);
  record.pkey = 0xffff;
  record.lease_seconds = 10;
  auto registration = client->register_service(record, [](const SaOutcome&, const auto&) {});
  w.run(1s);
  w.set_port(0, false);  // renewals do not arrive
  w.run(20s);
  EXPECT_EQ(service->server().services().count(), 0u);
  w.set_port(0, true);
  w.run(20s);
  EXPECT_EQ(service->server().services().count(), 1u) << "it was tried again";
}

TEST_F(SaServicesTest, ATableOfManyRecordsComesInSeveralPackets) {
  constexpr std::size_t kServices = 50;
  std::vector<std::unique_ptr<SaClient::Registration>> registrations;
  for (std::size_t i = 0; i < kServices; ++i) {
    sa::ServiceRecord record;
    record.id = 100 + i;
    record.gid = gid(1);
    record.pkey = 0xffff;
    record.lease_seconds = sa::kLeaseWithoutEnd;
    registrations.push_back(client->register_service(record, [](const SaOutcome&, const auto&) {}));
  }
  EXPECT_TRUE(w.comes([&] { return service->server().services().count() == kServices; }));
  std::string reason;
  const auto agent = w.gsi->add_agent(
      {.name = "saquery", .mgmt_class = sa::kMgmtClass, .class_version = sa::kClassVersion},
      reason);
  ASSERT_TRUE(agent.has_value()) << reason;
  sa::Outgoing outgoing;
  outgoing.method = sa::method::kGetTable;
  outgoing.attribute = sa::attribute::kServiceRecord;
  const mad::Mad mad = sa_request(outgoing);
  std::size_t bytes = 0;
  const auto sent = w.gsi->request(*agent, {w.address(1, 0), mad, 1s, 0},
                                   [&](Status status, std::string_view why, const GsiMessage* m) {
                                     EXPECT_EQ(status, Status::Ok) << why;
                                     if (m != nullptr) bytes = sa_data(*m).size();
                                   });
  ASSERT_TRUE(sent.has_value());
  EXPECT_TRUE(w.comes([&] { return bytes != 0; }));
  EXPECT_EQ(bytes, kServices * sa::ServiceRecord::kSize);
  registrations.clear();
  w.run(1s);
  EXPECT_EQ(service->server().services().count(), 0u);
  w.gsi->remove_agent(*agent);
}

TEST_F(SaServicesTest, ASubscriberHearsOfPortsAndGroups) {
  std::vector<std::uint16_t> traps;
  bool stands = false;
  const auto subscription = client->subscribe(
      gid(0), sa::kAllTraps, [&](const sa::Notice& notice) { traps.push_back(notice.trap); },
      [&](const SaOutcome& outcome) {
        EXPECT_EQ(outcome.status, Status::Ok) << outcome.reason;
        stands = true;
      });
  ASSERT_TRUE(w.comes([&] { return stands; }));
  Member member;
  join(member, 1, mgid());
  EXPECT_TRUE(w.comes([&] { return traps.size() == 1; }));
  w.set_port(1, false);
  w.set_port(1, true);
  EXPECT_TRUE(w.comes([&] { return traps.size() == 4; }));
  EXPECT_EQ(traps, (std::vector<std::uint16_t>{sa::trap::kGroupCreated, sa::trap::kGidOutOfService,
                                               sa::trap::kGroupDeleted, sa::trap::kGidInService}));
}

TEST_F(SaServicesTest, WhatIsNotEndedByItsOwnerEndsWithTheServices) {
  Member member;
  join(member, 1, mgid());
  Asked asked;
  ask(asked, between(0, 1));
  Outcome closed;
  w.gsi->close(closed.start());
  EXPECT_TRUE(w.comes([&] { return closed.is_done(); }));
  EXPECT_EQ(asked.times, 1);
  EXPECT_EQ(asked.outcome.status, Status::Cancelled);
  asked.request.reset();
  member.share.reset();
  w.run(1s);
  client.reset();
  service.reset();
  w.gsi.reset();
}

TEST(SaServicesEthernetTest, AFabricWithoutInfiniBandHasNoSubnetAdministrator) {
  ServicesWorld w(verbs::LinkLayer::Ethernet);
  SaService service(*w.gsi, w.bench.fabric, w.bench.executor, {});
  Outcome opened;
  service.open(opened.start());
  EXPECT_TRUE(opened.is_done());
  EXPECT_EQ(opened.irp.status, Status::NotFound);
  std::string reason;
  const auto client =
      *GsiSaClient::create(*w.gsi, service, w.bench.fabric, w.bench.executor, {}, reason);
  SaClient::PathQuery query;
  query.sgid = w.port(0).gid();
  query.dgid = w.port(1).gid();
  std::optional<Status> status;
  const auto request = client->query_path(
      query, [&](const SaOutcome& outcome, const sa::PathRecord&) { status = outcome.status; });
  EXPECT_TRUE(w.comes([&] { return status.has_value(); }));
  EXPECT_EQ(status, Status::InvalidParameter);
}

}  // namespace
}  // namespace ib::services::test
