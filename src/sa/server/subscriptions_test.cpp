// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/test/server_fixture_test.h"

namespace ib::sa {
namespace {

class SubscriptionsTest : public SaTest {
 protected:
  explicit SubscriptionsTest(ServerLimits limits = {}) : SaTest(limits) {}
  static InformInfo about(std::uint16_t trap) {
    InformInfo info;
    info.trap = trap;
    return info;
  }
  std::uint16_t set(std::size_t from, const InformInfo& info) {
    return ask(from, method::kSet, attribute::kInformInfo, 0, info).status;
  }
  // The Reports that are to be sent now, each answered.
  std::vector<Report> reports() {
    std::vector<Report> all;
    while (const std::optional<Report> report = server.take_report()) {
      all.push_back(*report);
      server.on_report_done(report->subscription, true);
    }
    return all;
  }
};

TEST_F(SubscriptionsTest, APortThatComesAndGoesIsReported) {
  ASSERT_EQ(set(1, about(kAllTraps)), sa_status::kOk);
  take_down(2);
  bring_up(2);
  const auto all = reports();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].lid, subnet.ports[1].lid);
  EXPECT_EQ(all[0].qpn, 1u);
  EXPECT_EQ(all[0].notice.trap, trap::kGidOutOfService);
  EXPECT_EQ(all[0].notice.issuer_lid, subnet.ports[0].lid);
  EXPECT_EQ(subject_gid(all[0].notice), gid(2));
  EXPECT_EQ(all[1].notice.trap, trap::kGidInService);
}

TEST_F(SubscriptionsTest, GroupsThatComeAndGoAreReported) {
  set(1, about(trap::kGroupCreated));
  set(1, about(trap::kGroupDeleted));
  create(0, mgid(1));
  leave(0, mgid(1), join_state::kFullMember);
  const auto all = reports();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].notice.trap, trap::kGroupCreated);
  EXPECT_EQ(subject_gid(all[0].notice), mgid(1));
  EXPECT_EQ(all[1].notice.trap, trap::kGroupDeleted);
}

TEST_F(SubscriptionsTest, OnlyNoticesThatFitAreReported) {
  InformInfo info = about(trap::kGidInService);
  info.gid = gid(3);
  set(1, info);
  info = about(kAllTraps);
  info.lid_first = info.lid_last = 999;  // of an issuer that does not exist
  set(1, info);
  info = about(kAllTraps);
  info.type = notice_type::kUrgent;
  set(1, info);
  info = about(kAllTraps);
  info.producer = producer::kChannelAdapter;
  set(1, info);
  info = about(kAllTraps);
  info.is_generic = 0;
  set(1, info);
  for (const std::uint32_t port : {2u, 3u}) {
    take_down(port);
    bring_up(port);
  }
  const auto all = reports();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(subject_gid(all[0].notice), gid(3));
}

TEST_F(SubscriptionsTest, NoticesOfOthersAreReportedToo) {
  set(1, about(trap::kCapabilitiesChanged));
  server.on_notice(capability_notice(30, gid(2), 0x12345));
  const auto all = reports();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].notice.issuer_lid, 30);
}

TEST_F(SubscriptionsTest, PortsOfOtherPartitionsAreNotReported) {
  subnet.ports[2].pkeys = {0x8005};
  set(1, about(kAllTraps));
  take_down(2);
  bring_up(2);
  EXPECT_EQ(reports().size(), 0u);
}

TEST_F(SubscriptionsTest, ASubscriptionEndsWhenItIsAskedTo) {
  InformInfo info = about(kAllTraps);
  set(1, info);
  EXPECT_EQ(set(1, info), sa_status::kOk) << "a repetition";
  EXPECT_EQ(server.subscriptions().count(), 1u);
  info.subscribe = 0;
  info.qpn = 5;
  EXPECT_EQ(set(1, info), sa_status::kRequestInvalid) << "of another queue pair";
  info.qpn = 1;
  EXPECT_EQ(set(2, info), sa_status::kRequestInvalid) << "of another port";
  EXPECT_EQ(set(1, info), sa_status::kOk);
  EXPECT_EQ(server.subscriptions().count(), 0u);
  take_down(2);
  EXPECT_EQ(reports().size(), 0u);
}

TEST_F(SubscriptionsTest, InvalidSubscriptionsAreRefused) {
  InformInfo info = about(kAllTraps);
  info.subscribe = 2;
  EXPECT_EQ(set(1, info), sa_status::kRequestInvalid);
  info.subscribe = 1;
  info.lid_first = 5;
  info.lid_last = 4;
  EXPECT_EQ(set(1, info), sa_status::kRequestInvalid);
}

TEST_F(SubscriptionsTest, TheReportsOfOneSubscriberFollowEachOther) {
  set(1, about(kAllTraps));
  take_down(2);
  bring_up(2);
  const auto first = server.take_report();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(server.take_report().has_value()) << "the first is not answered yet";
  server.on_report_done(first->subscription, false);
  EXPECT_TRUE(server.take_report().has_value());
}

TEST_F(SubscriptionsTest, ASubscriberThatDoesNotAnswerIsGivenUp) {
  set(1, about(kAllTraps));
  for (int i = 0; i < 3; ++i) {
    take_down(2);
    bring_up(2);
  }
  for (int i = 0; i < 3; ++i) {
    const auto report = server.take_report();
    ASSERT_TRUE(report.has_value());
    server.on_report_done(report->subscription, false);
  }
  EXPECT_EQ(server.subscriptions().count(), 0u);
  EXPECT_FALSE(server.take_report().has_value());
}

TEST_F(SubscriptionsTest, SubscriptionsOfAPortGoWithItEvenWhileAReportIsUnderWay) {
  set(1, about(kAllTraps));
  take_down(2);
  const auto report = server.take_report();
  ASSERT_TRUE(report.has_value());
  take_down(1);
  EXPECT_EQ(server.subscriptions().count(), 0u);
  server.on_report_done(report->subscription, true);
}

TEST_F(SubscriptionsTest, APortSeesItsOwnSubscriptions) {
  set(1, about(kAllTraps));
  set(2, about(trap::kGroupCreated));
  const auto seen_by = [&](std::size_t port, std::uint64_t sm_key) {
    return records<InformInfoRecord>(
        ask(port, method::kGetTable, attribute::kInformInfoRecord, 0, InformInfoRecord{}, sm_key));
  };
  ASSERT_EQ(seen_by(2, 0).size(), 1u);
  EXPECT_EQ(seen_by(2, 0)[0].info.trap, trap::kGroupCreated);
  EXPECT_EQ(seen_by(2, 0)[0].subscriber_gid, gid(2));
  EXPECT_EQ(seen_by(2, kSmKey).size(), 2u);
}

class FewSubscriptionsTest : public SubscriptionsTest {
 protected:
  FewSubscriptionsTest()
      : SubscriptionsTest(
            {.subscriptions = {
                 .subscriptions = 3, .subscriptions_of_port = 2, .waiting_reports = 1}}) {}
};
TEST_F(FewSubscriptionsTest, APortAndAFabricHaveSoManyAndNoMore) {
  EXPECT_EQ(set(0, about(64)), sa_status::kOk);
  EXPECT_EQ(set(0, about(65)), sa_status::kOk);
  EXPECT_EQ(set(0, about(66)), sa_status::kNoResources);
  EXPECT_EQ(set(1, about(64)), sa_status::kOk);
  EXPECT_EQ(set(2, about(64)), sa_status::kNoResources);
}
TEST_F(FewSubscriptionsTest, ReportsThatWaitAreLimited) {
  set(1, about(kAllTraps));
  for (int i = 0; i < 3; ++i) {
    take_down(2);
    bring_up(2);
  }
  EXPECT_EQ(reports().size(), 1u);
  EXPECT_EQ(server.subscriptions().lost_reports(), 5u);
}

}  // namespace
}  // namespace ib::sa
