// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/port_samples.h"

#include <gtest/gtest.h>

namespace ib::fabric {
namespace {

using namespace std::chrono_literals;
using State = PortSamples::State;

constexpr std::uint8_t kSdr = 1, kQdr = 4, kEdr = 32;
constexpr Instant kNow{1s};

// One port, which has sent so many packets.
PortSamples::Values sent(std::uint64_t packets) {
  CounterValues values;
  values[Counter::TransmitPackets] = packets;
  return {values};
}

SampleSettings settings(std::uint32_t start, std::uint32_t interval) {
  SampleSettings out;
  out.port_select = 1;
  out.start = start;
  out.interval = interval;
  out.tag = 7;
  out.select[0] = 3;  // PortXmitPkts
  return out;
}

// 10 * 256 bits of a lane. At 2.5 Gb/s: 1,024 ns.
TEST(PortSamples, TicksFollowTheSpeedOfALane) {
  EXPECT_EQ(sample_span(1'000, kSdr), 1'024'000ns);
  EXPECT_EQ(sample_span(1'000, kQdr), 256'000ns);
  EXPECT_EQ(sample_span(1, kQdr), 256ns);
  EXPECT_EQ(sample_span(1'000, kEdr), 99'297ns);
  EXPECT_EQ(sample_span(1, kEdr), 100ns) << "not shorter";
  EXPECT_EQ(sample_span(1, 0), 1'024ns) << "no speed";
  EXPECT_EQ(sample_span(0xffff'ffff, kSdr), 4'398'046'510'080ns) << "the longest one";
  EXPECT_EQ(sample_span(0, kSdr), 0ns);
}

TEST(PortSamples, ASampleWaitsRunsAndIsDone) {
  PortSamples samples;
  EXPECT_EQ(samples.state(), State::Done);
  EXPECT_EQ(samples.deadline(), std::nullopt);
  ASSERT_TRUE(samples.begin(settings(1'000, 2'000), kQdr, kNow));
  EXPECT_EQ(samples.state(), State::Waiting);
  EXPECT_EQ(samples.deadline(), kNow + 256us);
  samples.advance(kNow + 255us, [] { return sent(1); });
  EXPECT_EQ(samples.state(), State::Waiting);
  samples.advance(kNow + 256us, [] { return sent(100); });
  EXPECT_EQ(samples.state(), State::Running);
  EXPECT_EQ(samples.deadline(), kNow + 768us);
  samples.advance(kNow + 767us, [] { return sent(105); });
  EXPECT_EQ(samples.state(), State::Running);
  EXPECT_EQ(samples.result(0), 0u) << "nothing before the end";
  samples.advance(kNow + 768us, [] { return sent(142); });
  EXPECT_EQ(samples.state(), State::Done);
  EXPECT_EQ(samples.deadline(), std::nullopt);
  EXPECT_EQ(samples.result(0), 42u);
  EXPECT_EQ(samples.result(1), 0u) << "not selected";
}

TEST(PortSamples, WhoIsLateMovesTheSample) {
  PortSamples samples;
  ASSERT_TRUE(samples.begin(settings(1'000, 2'000), kQdr, kNow));
  samples.advance(kNow + 1ms, [] { return sent(100); });
  EXPECT_EQ(samples.state(), State::Running);
  EXPECT_EQ(samples.deadline(), kNow + 1'512us) << "as long as asked for";
}

TEST(PortSamples, WithoutStartAndIntervalItIsDoneAtOnce) {
  PortSamples samples;
  ASSERT_TRUE(samples.begin(settings(0, 0), kQdr, kNow));
  samples.advance(kNow, [] { return sent(100); });
  EXPECT_EQ(samples.state(), State::Done);
  EXPECT_EQ(samples.result(0), 0u);
}

TEST(PortSamples, ASampleUnderWayIsNotChanged) {
  PortSamples samples;
  ASSERT_TRUE(samples.begin(settings(0, 1'000), kQdr, kNow));
  EXPECT_FALSE(samples.begin(settings(0, 1), kQdr, kNow)) << "it waits";
  samples.advance(kNow, [] { return sent(100); });
  SampleSettings other = settings(5, 5);
  other.tag = 8;
  other.select[0] = 4;
  EXPECT_FALSE(samples.begin(other, kQdr, kNow)) << "it runs";
  EXPECT_EQ(samples.settings().tag, 7);
  EXPECT_EQ(samples.deadline(), kNow + 256us);
  samples.advance(kNow + 256us, [] { return sent(101); });
  EXPECT_EQ(samples.result(0), 1u);
  EXPECT_TRUE(samples.begin(other, kQdr, kNow)) << "it is over";
  EXPECT_EQ(samples.settings().tag, 8);
  EXPECT_EQ(samples.result(0), 0u);
}

TEST(PortSamples, PortsAreAdded) {
  PortSamples samples;
  ASSERT_TRUE(samples.begin(settings(0, 1), kQdr, kNow));
  const auto read = [](std::uint64_t a, std::uint64_t b) {
    return [a, b] { return PortSamples::Values{sent(a)[0], sent(b)[0]}; };
  };
  samples.advance(kNow, read(100, 200));
  // The second one began at 0 meanwhile, as an HCA that was pulled out.
  samples.advance(kNow + 1ms, read(110, 3));
  EXPECT_EQ(samples.result(0), 13u);
}

TEST(PortSamples, EachCounterThatCanBeSelected) {
  PortSamples samples;
  SampleSettings all = settings(0, 1);
  const std::array<std::uint16_t, 8> selects = {1, 2, 3, 4, 5, 0x4005, 0x4007, 0x400b};
  for (std::size_t i = 0; i < selects.size(); ++i) all.select[i] = selects[i];
  all.select[8] = 0x4006;  // packets of softib are never malformed
  ASSERT_TRUE(samples.begin(all, kQdr, kNow));
  samples.advance(kNow, [] { return PortSamples::Values(1); });
  PortCounters counted;
  counted.sent.data = 11;
  counted.received.data = 12;
  counted.sent.packets = 13;
  counted.received.packets = 14;
  counted.transmit_wait = 15;
  counted.local_physical_errors = 16;
  counted.buffer_overruns = 17;
  counted.inactive_discards = 18;
  samples.advance(kNow + 1ms, [&] { return PortSamples::Values{CounterValues(counted)}; });
  for (std::size_t i = 0; i < selects.size(); ++i) EXPECT_EQ(samples.result(i), 11 + i) << i;
  for (std::size_t i = selects.size(); i < mad::kSampleCounters; ++i) {
    EXPECT_EQ(samples.result(i), 0u) << i;
  }
}

TEST(PortSamples, WhatCanBeSelected) {
  for (const std::uint16_t select :
       std::initializer_list<std::uint16_t>{0, 1, 5, 0x4005, 0x400b, 0x400e}) {
    EXPECT_TRUE(can_sample(select)) << select;
  }
  // Counters of virtual lanes, flow control, vendors.
  for (const std::uint16_t select :
       std::initializer_list<std::uint16_t>{6, 0x3fff, 0x4000, 0x4004, 0x400f, 0xc000, 0xffff}) {
    EXPECT_FALSE(can_sample(select)) << select;
  }
  EXPECT_EQ(sample_options(), 0xffc0u) << "bit 6 is PortLocalPhysicalErrors";
}

}  // namespace
}  // namespace ib::fabric
