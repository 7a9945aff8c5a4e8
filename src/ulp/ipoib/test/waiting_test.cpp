// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ulp/ipoib/waiting_packets.h"

#include <gtest/gtest.h>

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

WaitingPacket packet_of(std::size_t bytes, Instant until = Instant{}) {
  WaitingPacket packet;
  packet.message.resize(bytes);
  packet.until = until;
  return packet;
}

TEST(IpoibWaiting, QueuesShareOneBudgetAndGiveItBack) {
  WaitingBudget budget{3, 1000};
  {
    WaitingQueue one(budget, 2);
    WaitingQueue other(budget, 2);
    EXPECT_TRUE(one.put(packet_of(400)));
    EXPECT_TRUE(one.put(packet_of(400)));
    EXPECT_FALSE(one.put(packet_of(1)));      // its own limit
    EXPECT_FALSE(other.put(packet_of(201)));  // bytes of all
    EXPECT_TRUE(other.put(packet_of(100)));
    EXPECT_FALSE(other.put(packet_of(1)));  // packets of all
    EXPECT_EQ(one.take()->message.size(), 400u);
    EXPECT_EQ(budget.bytes_left, 500u);
    EXPECT_TRUE(other.put(packet_of(500)));
    EXPECT_EQ(other.clear(), 2u);
  }
  EXPECT_EQ(budget.packets_left, 3u);
  EXPECT_EQ(budget.bytes_left, 1000u);
}

TEST(IpoibWaiting, OldPacketsExpire) {
  WaitingBudget budget{10, 1000};
  WaitingQueue queue(budget, 10);
  const Instant start{};
  queue.put(packet_of(1, start + 1s));
  queue.put(packet_of(2, start + 2s));
  EXPECT_EQ(queue.deadline(), start + 1s);
  EXPECT_EQ(queue.expire(start + 1s), 1u);
  EXPECT_EQ(queue.deadline(), start + 2s);
  EXPECT_EQ(queue.take()->message.size(), 2u);
  EXPECT_EQ(queue.deadline(), std::nullopt);
  EXPECT_EQ(budget.bytes_left, 1000u);
}

}  // namespace
}  // namespace ib::ipoib
