// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/client/joins.h"

#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ib::sa {
namespace {

namespace component = mc_component;
using namespace join_state;  // its names say that they are of join states

class JoinsTest : public testing::Test {
 protected:
  static verbs::Gid port() { return verbs::make_gid(1, 2); }
  static verbs::Gid mgid() { return {0xff, 0x12, 0x40, 0x1b}; }
  static McMemberRecord wanted(std::uint8_t state = kFullMember) {
    McMemberRecord record;
    record.port_gid = port();
    record.mgid = mgid();
    record.join_state = state;
    return record;
  }
  Status try_join(Ticket ticket, std::uint8_t state = kFullMember) {
    return joins.join(ticket, component::kToJoin, wanted(state), {});
  }
  void join(Ticket ticket, std::uint8_t state = kFullMember) {
    EXPECT_EQ(try_join(ticket, state), Status::Ok);
  }
  // The request that is to be sent, of which there is one.
  Outgoing sent() {
    const std::optional<Outgoing> out = joins.poll_outgoing();
    EXPECT_TRUE(out.has_value());
    EXPECT_FALSE(joins.poll_outgoing().has_value());
    return out.value_or(Outgoing{});
  }
  bool is_quiet() { return !joins.poll_outgoing().has_value() && !joins.poll_event().has_value(); }
  void grant(const Outgoing& out, std::uint8_t state) {
    auto record = decode_some<McMemberRecord>(out.record);
    record.join_state = state;
    record.mlid = 0xc007;
    record.pkey = 0xffff;
    if (verbs::is_zero(record.mgid)) record.mgid = mgid();
    joins.on_answer(out.operation, {}, encode(record));
  }
  void refuse(const Outgoing& out) {
    joins.on_answer(out.operation, {Status::Ok, sa_status::kRequestInvalid, {}}, {});
  }
  // "1 ok", "2 error", "3 left".
  std::vector<std::string> events() {
    std::vector<std::string> all;
    while (const auto event = joins.poll_event()) {
      if (const auto* joined = std::get_if<Joins::Joined>(&*event)) {
        all.push_back(std::to_string(joined->ticket) +
                      (joined->outcome.is_ok() ? " ok" : " error"));
      } else {
        all.push_back(std::to_string(std::get<Joins::Left>(*event).ticket) + " left");
      }
    }
    return all;
  }
  using Events = std::vector<std::string>;

  Joins joins;
};

TEST_F(JoinsTest, OneRequestServesAllShares) {
  join(1);
  join(2);
  const Outgoing out = sent();
  EXPECT_EQ(out.method, method::kSet);
  EXPECT_EQ(out.components, component::kToJoin);
  grant(out, kFullMember);
  EXPECT_EQ(events(), (Events{"1 ok", "2 ok"}));
  join(3);
  EXPECT_EQ(events(), (Events{"3 ok"}));
  EXPECT_TRUE(is_quiet());
}

TEST_F(JoinsTest, ThePortLeavesWithTheLastShare) {
  join(1);
  grant(sent(), kFullMember);
  join(2);
  joins.leave(1);
  EXPECT_EQ(events(), (Events{"1 ok", "2 ok", "1 left"}));
  joins.leave(2);
  const Outgoing out = sent();
  EXPECT_EQ(out.method, method::kDelete);
  EXPECT_EQ(decode_some<McMemberRecord>(out.record).join_state, kFullMember);
  EXPECT_TRUE(events().empty()) << "the answer has not come yet";
  grant(out, 0);
  EXPECT_EQ(events(), (Events{"2 left"}));
  EXPECT_EQ(joins.membership_count(), 0u);
  EXPECT_EQ(joins.share_count(), 0u);
}

TEST_F(JoinsTest, OnlyTheBitsThatNoShareNeedsAreGivenBack) {
  join(1, kFullMember);
  grant(sent(), kFullMember);
  join(2, kNonMember);
  grant(sent(), kFullMember | kNonMember);
  joins.leave(1);
  EXPECT_EQ(decode_some<McMemberRecord>(sent().record).join_state, kFullMember);
}

TEST_F(JoinsTest, AShareThatComesWhileThePortLeavesJoinsAfterwards) {
  join(1);
  grant(sent(), kFullMember);
  joins.leave(1);
  const Outgoing leave = sent();
  join(2);
  EXPECT_FALSE(joins.poll_outgoing().has_value());
  grant(leave, 0);
  const Outgoing again = sent();
  EXPECT_EQ(again.method, method::kSet);
  grant(again, kFullMember);
  EXPECT_EQ(events(), (Events{"1 ok", "2 ok", "1 left"}));
}

TEST_F(JoinsTest, AShareThatIsGivenBackWhileItJoinsIsLeft) {
  join(1);
  const Outgoing out = sent();
  joins.leave(1);
  grant(out, kFullMember);
  const Outgoing leave = sent();
  EXPECT_EQ(leave.method, method::kDelete);
  grant(leave, 0);
  EXPECT_EQ(events(), (Events{"1 left"}));
  EXPECT_EQ(joins.membership_count(), 0u);
}

TEST_F(JoinsTest, ARefusalIsOfTheShareThatAsked) {
  join(1);
  join(2);
  refuse(sent());
  EXPECT_EQ(events(), (Events{"1 error"}));
  grant(sent(), kFullMember);
  EXPECT_EQ(events(), (Events{"2 ok"}));
  joins.leave(1);
  EXPECT_EQ(events(), (Events{"1 left"}));
}

TEST_F(JoinsTest, AShareThatWantsAnotherGroupThanThereIsIsRefused) {
  join(1);
  grant(sent(), kFullMember);
  McMemberRecord other = wanted();
  other.qkey = 5;
  EXPECT_EQ(joins.join(2, component::kToJoin | component::kQkey, other, {}), Status::Ok);
  EXPECT_EQ(events(), (Events{"1 ok", "2 error"}));
}

TEST_F(JoinsTest, GroupsWhoseNameIsChosenAreOnesOfTheirOwn) {
  McMemberRecord record = wanted();
  record.mgid = {};
  EXPECT_EQ(joins.join(1, component::kToJoin, record, {}), Status::Ok);
  EXPECT_EQ(joins.join(2, component::kToJoin, record, {}), Status::Ok);
  EXPECT_EQ(joins.membership_count(), 2u);
  grant(*joins.poll_outgoing(), kFullMember);
  EXPECT_EQ(events(), (Events{"1 ok"}));
  join(3);  // by the name that was chosen
  EXPECT_EQ(events(), (Events{"3 ok"}));
}

TEST_F(JoinsTest, APortThatGoesDownLosesAll) {
  join(1);
  grant(sent(), kFullMember);
  join(2, kNonMember);
  const Outgoing late = sent();
  joins.on_port_lost(port(), Status::InvalidState, "down");
  EXPECT_EQ(events(), (Events{"1 ok", "1 error", "2 error"}));
  grant(late, kNonMember);
  EXPECT_TRUE(is_quiet());
  EXPECT_EQ(joins.membership_count(), 0u);
  joins.leave(1);
  joins.leave(2);
  EXPECT_EQ(events(), (Events{"1 left", "2 left"}));
  EXPECT_EQ(joins.share_count(), 0u);
}

TEST_F(JoinsTest, AfterReregistrationThePortJoinsAgainAndNobodyNotices) {
  join(1, kSendOnlyNonMember);
  grant(sent(), kSendOnlyNonMember);
  join(2);
  grant(sent(), kFullMember | kSendOnlyNonMember);
  EXPECT_EQ(events(), (Events{"1 ok", "2 ok"}));
  joins.on_reregister(port());
  const Outgoing out = sent();
  EXPECT_EQ(out.components, component::kToCreate);
  const auto record = decode_some<McMemberRecord>(out.record);
  EXPECT_EQ(record.join_state, kFullMember | kSendOnlyNonMember);
  EXPECT_EQ(record.pkey, 0xffff) << "as the group was";
  grant(out, kFullMember | kSendOnlyNonMember);
  EXPECT_TRUE(is_quiet());
}

TEST_F(JoinsTest, ReregistrationWaitsForTheRequestThatIsUnderWay) {
  join(1);
  const Outgoing out = sent();
  joins.on_reregister(port());
  EXPECT_FALSE(joins.poll_outgoing().has_value());
  grant(out, kFullMember);
  grant(sent(), kFullMember);
  EXPECT_EQ(events(), (Events{"1 ok"}));
}

TEST_F(JoinsTest, AShareThatIsGivenUpDuringReregistrationIsLeft) {
  join(1);
  const Outgoing out = sent();
  joins.on_reregister(port());
  joins.leave(1);
  grant(out, kFullMember);
  const Outgoing leave = sent();
  EXPECT_EQ(leave.method, method::kDelete);
  grant(leave, 0);
  EXPECT_EQ(events(), (Events{"1 left"}));
}

// The group went with its last full member; only bits of the new one can be left.
TEST_F(JoinsTest, BitsThatWentWithTheGroupAreNotLeft) {
  join(1, kNonMember);
  grant(sent(), kNonMember);
  join(2, kFullMember);
  grant(sent(), kFullMember);
  EXPECT_EQ(events(), (Events{"1 ok", "2 ok"}));
  joins.leave(1);
  EXPECT_EQ(events(), (Events{"1 left"}));
  joins.leave(2);
  EXPECT_EQ(decode_some<McMemberRecord>(sent().record).join_state, kFullMember);
}

TEST_F(JoinsTest, AnAnswerWithoutTheJoinStateEndsTheShare) {
  join(1, kFullMember | kNonMember);
  grant(sent(), kNonMember);
  EXPECT_EQ(events(), (Events{"1 error"}));
}

TEST_F(JoinsTest, SharesAreLimited) {
  joins = Joins({.shares = 3, .shares_of_port = 2});
  EXPECT_EQ(try_join(1), Status::Ok);
  EXPECT_EQ(try_join(2), Status::Ok);
  EXPECT_EQ(try_join(3), Status::LimitExceeded);
  joins.leave(2);
  EXPECT_EQ(try_join(4), Status::Ok);
  EXPECT_EQ(joins.join(5, component::kMgid, wanted(), {}), Status::InvalidParameter);
  EXPECT_EQ(try_join(6, 0), Status::InvalidParameter);
}

}  // namespace
}  // namespace ib::sa
