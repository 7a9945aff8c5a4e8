// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/transactions.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::mad {
namespace {

using namespace std::chrono_literals;
using Due = Transactions::Due;

constexpr Peer kPeer{1, 5, 1, {}};
constexpr std::uint8_t kClass = 3;

struct TransactionsTest : ::testing::Test {
  Transactions all{{10, 6}, 1};
  Instant now{1s};
  TransactionId begin(AgentId agent, std::uint32_t retries = 1, const Peer& peer = kPeer) {
    const auto id = all.begin({agent, kClass, peer, 100ms, retries}, now);
    EXPECT_TRUE(id);
    return id ? *id : 0;
  }
};

TEST_F(TransactionsTest, AnIdBeginsWithItsAgent) {
  const TransactionId one = begin(7);
  const TransactionId two = begin(8);
  EXPECT_EQ(agent_of(one), 7u);
  EXPECT_EQ(agent_of(two), 8u);
  EXPECT_NE(begin(7), one);
}

TEST_F(TransactionsTest, AResponseBelongsToItsIdClassAndPeer) {
  const TransactionId id = begin(7);
  EXPECT_TRUE(all.is_awaited(id, kClass, kPeer));
  EXPECT_FALSE(all.is_awaited(id + 1, kClass, kPeer));
  EXPECT_FALSE(all.is_awaited(id, kClass + 1, kPeer));
  EXPECT_FALSE(all.is_awaited(id, kClass, {1, 6, 1, {}})) << "another LID";
  EXPECT_FALSE(all.is_awaited(id, kClass, {2, 5, 1, {}})) << "it came to another port";
  EXPECT_FALSE(all.is_awaited(id, kClass, {1, 5, 2, {}})) << "another queue pair";
  EXPECT_TRUE(all.end(id));
  EXPECT_FALSE(all.is_awaited(id, kClass, kPeer));
  EXPECT_FALSE(all.end(id));
}

TEST_F(TransactionsTest, PeersAreComparedByWhatBothNames) {
  const verbs::Gid gid{0xfe, 0x80};
  const verbs::Gid other{0xfe, 0x81};
  const Peer by_gid{1, 0, 1, gid};
  EXPECT_TRUE(by_gid.is({1, 5, 1, gid}));
  EXPECT_FALSE(by_gid.is({1, 5, 1, other}));
  EXPECT_FALSE(by_gid.is({1, 5, 1, {}})) << "nothing in common";
  EXPECT_TRUE(kPeer.is({1, 5, 1, gid}));
}

TEST_F(TransactionsTest, TriesAreATimeoutAndAtMostAQuarterApart) {
  const TransactionId id = begin(7, 2);
  for (const Due due : {Due::Resend, Due::Resend, Due::TimedOut}) {
    EXPECT_FALSE(all.poll(now + 99ms));
    ASSERT_TRUE(all.next_deadline());
    EXPECT_LE(*all.next_deadline(), now + 125ms);
    now = *all.next_deadline();
    const auto event = all.poll(now);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->id, id);
    EXPECT_EQ(event->due, due);
    EXPECT_FALSE(all.poll(now));
  }
  EXPECT_EQ(all.size(), 0u);
  EXPECT_FALSE(all.next_deadline());
}

TEST_F(TransactionsTest, RequestsThatBeganTogetherDoNotStayTogether) {
  Transactions many{{1000, 1000}, 5};
  std::set<Instant> deadlines;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(many.begin({1, kClass, kPeer, 1s, 0}, now));
  for (int i = 0; i < 100; ++i) {
    deadlines.insert(*many.next_deadline());
    (void)many.poll(*many.next_deadline());
  }
  EXPECT_GT(deadlines.size(), 80u);
}

TEST_F(TransactionsTest, AQuotaIsForEachAgentAndForAll) {
  for (int i = 0; i < 6; ++i) begin(1);
  EXPECT_EQ(all.begin({1, kClass, kPeer, 1s, 0}, now).error(), Status::LimitExceeded);
  for (int i = 0; i < 4; ++i) begin(2);
  EXPECT_EQ(all.begin({2, kClass, kPeer, 1s, 0}, now).error(), Status::LimitExceeded);
  EXPECT_EQ(all.begin({2, kClass, kPeer, 0s, 0}, now).error(), Status::InvalidParameter);
  EXPECT_EQ(all.end_all(1).size(), 6u);
  EXPECT_EQ(all.size_of(1), 0u);
  EXPECT_EQ(all.size(), 4u);
  begin(1);
  EXPECT_EQ(all.end_all().size(), 5u);
  EXPECT_FALSE(all.next_deadline());
}

TEST_F(TransactionsTest, ASuspendedOneIsNeverDueUntilItsTimeBeginsAgain) {
  const TransactionId id = begin(7, 0);
  all.suspend(id);
  EXPECT_FALSE(all.next_deadline());
  EXPECT_TRUE(all.is_awaited(id, kClass, kPeer));
  all.suspend(id);
  all.resume(id, now);
  EXPECT_TRUE(all.next_deadline());
  all.suspend(id);
  EXPECT_TRUE(all.end(id));
  all.suspend(id);
  all.resume(id, now);
  EXPECT_FALSE(all.next_deadline());
}

TEST_F(TransactionsTest, AfterARedirectionTheOtherPeerIsAwaitedWithAllTries) {
  const TransactionId id = begin(7, 1);
  now = *all.next_deadline();
  EXPECT_EQ(all.poll(now)->due, Due::Resend);
  const Peer other{1, 9, 17, {}};
  all.redirect(id, other, now);
  EXPECT_FALSE(all.is_awaited(id, kClass, kPeer));
  EXPECT_TRUE(all.is_awaited(id, kClass, other));
  now = *all.next_deadline();
  EXPECT_EQ(all.poll(now)->due, Due::Resend);
}

TEST_F(TransactionsTest, TheSameSeedGivesTheSameTimes) {
  Transactions again{{10, 6}, 1};
  begin(7);
  ASSERT_TRUE(again.begin({7, kClass, kPeer, 100ms, 1}, now));
  EXPECT_EQ(all.next_deadline(), again.next_deadline());
}

}  // namespace
}  // namespace ib::mad
