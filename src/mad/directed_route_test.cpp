// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/directed_route.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>

namespace ib::mad {
namespace {

constexpr std::uint8_t kOwn = 0;  // arrival: a client or agent of the element

// A request along the ports of a path.
Smp along(std::initializer_list<std::uint8_t> ports) {
  Smp smp;
  smp.header.mgmt_class = mgmt_class::kSubnDirected;
  smp.header.method = method::kGet;
  smp.header.class_specific = static_cast<std::uint16_t>(ports.size());
  smp.reserved[0] = smp.reserved[1] = smp.reserved[2] = smp.reserved[3] = 0xff;
  std::size_t at = 0;
  for (const std::uint8_t port : ports) smp.paths[++at] = port;
  return smp;
}
void turn_round(Smp& smp) {
  smp.header.status = kDirectionBit;
}
void expect_send(const RouteDecision& decision, std::uint8_t port) {
  EXPECT_EQ(decision.step, RouteStep::Send);
  EXPECT_EQ(decision.port, port);
}
int hop_pointer(const Smp& smp) {
  return smp.header.class_specific >> 8;
}

TEST(DirectedRoute, OfOneHopLeadsToTheOtherEndAndBack) {
  Smp smp = along({2});
  EXPECT_TRUE(has_hops(smp));
  expect_send(take_step(smp, false, kOwn), 2);
  EXPECT_EQ(hop_pointer(smp), 1);
  EXPECT_EQ(take_step(smp, false, 1).step, RouteStep::Deliver);
  EXPECT_EQ(hop_pointer(smp), 2);
  EXPECT_EQ(smp.paths[64 + 1], 1);
  turn_round(smp);
  expect_send(take_step(smp, false, kOwn), 1);
  EXPECT_EQ(hop_pointer(smp), 1);
  EXPECT_EQ(take_step(smp, false, 2).step, RouteStep::Deliver);
  EXPECT_EQ(hop_pointer(smp), 0);
}

TEST(DirectedRoute, LeadsThroughSwitches) {
  Smp smp = along({1, 7, 3});
  expect_send(take_step(smp, false, kOwn), 1);
  expect_send(take_step(smp, true, 5), 7);
  expect_send(take_step(smp, true, 6), 3);
  EXPECT_EQ(take_step(smp, true, 9).step, RouteStep::Deliver);
  EXPECT_EQ(smp.paths[64 + 1], 5);
  EXPECT_EQ(smp.paths[64 + 2], 6);
  EXPECT_EQ(smp.paths[64 + 3], 9);
  turn_round(smp);
  expect_send(take_step(smp, true, kOwn), 9);
  expect_send(take_step(smp, true, 3), 6);
  expect_send(take_step(smp, true, 7), 5);
  EXPECT_EQ(take_step(smp, false, 1).step, RouteStep::Deliver);
}

TEST(DirectedRoute, WithoutHopsStaysHere) {
  Smp smp = along({});
  EXPECT_FALSE(has_hops(smp));
  EXPECT_EQ(take_step(smp, false, kOwn).step, RouteStep::Deliver);
}

TEST(DirectedRoute, DoesNotLeadThroughAChannelAdapter) {
  Smp smp = along({1, 1});
  expect_send(take_step(smp, false, kOwn), 1);
  EXPECT_EQ(take_step(smp, false, 1).step, RouteStep::Discard);
  turn_round(smp);
  smp.header.class_specific = 0x0202;
  EXPECT_EQ(take_step(smp, false, 1).step, RouteStep::Discard);
}

TEST(DirectedRoute, DoesNotGoOnByLid) {
  Smp smp = along({1});
  smp.reserved[3] = 7;
  expect_send(take_step(smp, false, kOwn), 1);
  EXPECT_EQ(take_step(smp, false, 1).step, RouteStep::Discard);
}

TEST(DirectedRoute, OfNumbersThatCannotBeIsDiscarded) {
  for (const unsigned hops : {0x0301u, 0x0201u, 0x0101u, 0x0040u, 0x00ffu, 0xff3fu}) {
    Smp smp = along({1});
    smp.header.class_specific = static_cast<std::uint16_t>(hops);
    EXPECT_EQ(take_step(smp, false, kOwn).step, RouteStep::Discard) << hops;
  }
  Smp back = along({1});
  turn_round(back);
  EXPECT_EQ(take_step(back, false, kOwn).step, RouteStep::Discard) << "it has not been there";
}

// Whatever its bytes are, an SMP leaves the elements that it passes.
TEST(DirectedRoute, AlwaysEnds) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int i = 0; i < 10'000; ++i) {
    Smp smp;
    smp.header.class_specific = static_cast<std::uint16_t>(random());
    smp.header.status = static_cast<std::uint16_t>(random() % 2 == 0 ? kDirectionBit : 0);
    for (auto& byte : smp.reserved) byte = static_cast<std::uint8_t>(random() % 4 == 0 ? 0 : 0xff);
    for (auto& byte : smp.paths) byte = static_cast<std::uint8_t>(random());
    auto arrival = static_cast<std::uint8_t>(random() % 3);
    int steps = 0;
    while (take_step(smp, random() % 4 != 0, arrival).step == RouteStep::Send) {
      arrival = 1;
      ASSERT_LE(++steps, kMostHops + 1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace ib::mad
