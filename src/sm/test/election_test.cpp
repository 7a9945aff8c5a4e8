// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/election.h"

#include <gtest/gtest.h>

namespace ib::sm {
namespace {

SmInfo info(unsigned priority, std::uint64_t guid, SmState state) {
  SmInfo info;
  info.guid = guid;
  info.priority_state = static_cast<std::uint8_t>(priority << 4 | static_cast<unsigned>(state));
  return info;
}

struct ElectionTest : testing::Test {
  Election election{5, 0};
  ElectionTest() { election.set_guid(100); }
  Decision meet(unsigned priority, std::uint64_t guid, SmState state) {
    return election.on_discovered({{7, info(priority, guid, state)}});
  }
  Verdict control(std::uint32_t modifier) {
    return election.on_control(modifier, info(5, 50, SmState::Master), 7);
  }
};

TEST_F(ElectionTest, AloneItBecomesTheMaster) {
  EXPECT_EQ(election.on_discovered({}).step, Step::SetUp);
  EXPECT_EQ(election.state(), SmState::Master);
}

TEST_F(ElectionTest, PriorityCountsFirstThenTheLowerGuid) {
  EXPECT_TRUE(outranks(info(6, 200, {}), info(5, 100, {})));
  EXPECT_TRUE(outranks(info(5, 99, {}), info(5, 100, {})));
  EXPECT_FALSE(outranks(info(5, 101, {}), info(5, 100, {})));
}

TEST_F(ElectionTest, BehindAMasterItStandsByWhateverItsPriority) {
  EXPECT_EQ(meet(1, 200, SmState::Master).step, Step::Wait);
  EXPECT_EQ(election.state(), SmState::Standby);
  EXPECT_EQ(election.watched(), 7u);
}

TEST_F(ElectionTest, OfTwoThatDiscoverTheLowerOneStandsBy) {
  EXPECT_EQ(meet(5, 200, SmState::Discovering).step, Step::SetUp);
  Election other(5, 0);
  other.set_guid(200);
  EXPECT_EQ(other.on_discovered({{3, info(5, 100, SmState::Discovering)}}).step, Step::Wait);
}

TEST_F(ElectionTest, OneThatIsNotActiveDoesNotCount) {
  EXPECT_EQ(meet(15, 1, SmState::NotActive).step, Step::SetUp);
}

TEST_F(ElectionTest, AMasterHandsOverToABetterStandbyAndIsOneThen) {
  (void)election.on_discovered({});
  EXPECT_EQ(meet(4, 1, SmState::Standby).step, Step::SetUp);
  const Decision decision = meet(6, 200, SmState::Standby);
  EXPECT_EQ(decision.step, Step::HandOver);
  EXPECT_EQ(decision.port, 7u);
  EXPECT_EQ(election.state(), SmState::Master);
  EXPECT_EQ(control(sm_control::kAcknowledge).status, mad::mad_status::kOk);
  EXPECT_EQ(election.state(), SmState::Standby);
}

TEST_F(ElectionTest, AnAnsweredHandoverIsEnoughAndAnAcknowledgementMayFollow) {
  (void)election.on_discovered({});
  election.on_handed_over();
  EXPECT_EQ(election.state(), SmState::Master) << "it has handed over to nobody";
  (void)meet(6, 200, SmState::Standby);
  election.on_handed_over();
  EXPECT_EQ(election.state(), SmState::Standby);
  EXPECT_EQ(election.watched(), 7u);
  EXPECT_EQ(control(sm_control::kAcknowledge).status, mad::mad_status::kOk);
}

TEST_F(ElectionTest, AnAcknowledgementThatNobodyWaitsForIsRefused) {
  (void)election.on_discovered({});
  EXPECT_NE(control(sm_control::kAcknowledge).status, mad::mad_status::kOk);
  EXPECT_EQ(election.state(), SmState::Master);
}

TEST_F(ElectionTest, AStandbyTakesOver) {
  (void)meet(1, 200, SmState::Master);
  const Verdict verdict = control(sm_control::kHandover);
  EXPECT_TRUE(verdict.acknowledges);
  EXPECT_TRUE(verdict.sweeps);
  EXPECT_EQ(election.state(), SmState::Master);
}

TEST_F(ElectionTest, WhenTheMasterIsSilentAStandbyDiscovers) {
  (void)meet(1, 200, SmState::Master);
  EXPECT_EQ(election.on_poll(info(1, 200, SmState::Master)).step, Step::Wait);
  EXPECT_EQ(election.on_silence().step, Step::Sweep);
  EXPECT_EQ(election.state(), SmState::Discovering);
}

TEST_F(ElectionTest, AStandbyWaitsOnlyForWhatWillBeAMaster) {
  const auto step_after = [](const SmInfo& watched) {
    Election other(5, 0);
    other.set_guid(100);
    (void)other.on_discovered({{7, info(9, 200, SmState::Discovering)}});
    EXPECT_EQ(other.state(), SmState::Standby);
    return other.on_poll(watched).step;
  };
  EXPECT_EQ(step_after(info(9, 200, SmState::Discovering)), Step::Wait);
  EXPECT_EQ(step_after(info(1, 200, SmState::Master)), Step::Wait);
  EXPECT_EQ(step_after(info(1, 200, SmState::Discovering)), Step::Sweep);
  EXPECT_EQ(step_after(info(9, 200, SmState::Standby)), Step::Sweep);
  EXPECT_EQ(step_after(info(9, 200, SmState::NotActive)), Step::Sweep);
}

TEST_F(ElectionTest, OfTwoMastersTheLowerOneIsMadeToLook) {
  (void)election.on_discovered({});
  EXPECT_EQ(meet(4, 1, SmState::Master).lower_master, 7u);
  EXPECT_EQ(meet(6, 1, SmState::Master).step, Step::HandOver);
}

TEST_F(ElectionTest, AStandbyIsDisabledAndComesBack) {
  (void)meet(1, 200, SmState::Master);
  EXPECT_EQ(control(sm_control::kDisable).status, mad::mad_status::kOk);
  EXPECT_EQ(election.state(), SmState::NotActive);
  EXPECT_NE(control(sm_control::kHandover).status, mad::mad_status::kOk);
  EXPECT_EQ(election.on_discovered({}).step, Step::Wait);
  EXPECT_EQ(control(sm_control::kStandby).status, mad::mad_status::kOk);
  EXPECT_EQ(election.state(), SmState::Standby);
  EXPECT_TRUE(control(sm_control::kDiscover).sweeps);
  EXPECT_EQ(election.state(), SmState::Discovering);
}

TEST_F(ElectionTest, AMasterIsNotDisabled) {
  (void)election.on_discovered({});
  EXPECT_NE(control(sm_control::kDisable).status, mad::mad_status::kOk);
}

TEST(Election, AnotherKeyIsRefused) {
  Election election(5, 0x1234);
  EXPECT_NE(election.on_control(sm_control::kHandover, info(6, 1, SmState::Master), 7).status,
            mad::mad_status::kOk);
  EXPECT_EQ(election.state(), SmState::Discovering);
}

}  // namespace
}  // namespace ib::sm
