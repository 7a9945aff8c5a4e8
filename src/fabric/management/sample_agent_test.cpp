// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortSamplesControl and the results, byte by byte and as tshark reads them.
#include "fabric/management/sample_agent.h"

#include "fabric/management/perf_agent.h"
#include "fabric/management/subnet_test.h"
#include "mad/mgmt_class.h"
#include "mad/perf.h"
#include "mad/test/erf_capture_test.h"
#include "platform/virtual_executor.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::fabric::test {
namespace {

using namespace std::chrono_literals;
namespace id = mad::perf_attribute;
namespace status = mad::mad_status;
using mad::method::kGet;
using mad::method::kSet;

constexpr std::uint32_t kTick = 1;  // of EDR: 99.297 ns
constexpr std::uint8_t kDone = 0, kWaiting = 1, kRunning = 2;

class SampleAgentTest : public ::testing::Test {
 protected:
  template <class T = mad::PortSamplesControl>
  mad::PerfMad ask(const Port& at, std::uint8_t method, std::uint16_t attribute, const T& in = {},
                   std::uint32_t modifier = 0) {
    mad::PerfMad mad;
    mad.header = {mad::kBaseVersion,
                  mad::mgmt_class::kPerf,
                  mad::kClassVersion,
                  method,
                  0,
                  0,
                  0x77,
                  attribute,
                  0,
                  modifier};
    std::memcpy(mad.data.data(), &in, sizeof in);
    answers_.push_back(agent_.answer(at, std::bit_cast<mad::Mad>(mad)));
    return std::bit_cast<mad::PerfMad>(answers_.back());
  }
  template <class T>
  static T read(const mad::PerfMad& mad) {
    EXPECT_EQ(mad.header.status, status::kOk);
    T value;
    std::memcpy(static_cast<void*>(&value), mad.data.data(), sizeof value);
    return value;
  }
  static mad::PortSamplesControl sample(std::uint8_t port_select, std::uint32_t start,
                                        std::uint32_t interval, std::uint16_t tag = 7) {
    mad::PortSamplesControl in;
    in.port_select = port_select;
    in.sample_start = start;
    in.sample_interval = interval;
    in.tag = tag;
    in.counter_select[0] = 3;  // PortXmitPkts
    return in;
  }
  mad::PortSamplesControl set(const Port& at, const mad::PortSamplesControl& in) {
    return read<mad::PortSamplesControl>(ask(at, kSet, id::kPortSamplesControl, in));
  }
  mad::PortSamplesControl get(const Port& at, std::uint8_t port_select = 1) {
    return read<mad::PortSamplesControl>(
        ask(at, kGet, id::kPortSamplesControl, sample(port_select, 0, 0)));
  }
  mad::PortSamplesResult result(const Port& at) {
    return read<mad::PortSamplesResult>(ask(at, kGet, id::kPortSamplesResult));
  }
  Port& port(std::uint32_t number) { return *t_.graph().port_of(t_.the_switch(), number); }

  Subnet t_{"star:3"};
  platform::VirtualExecutor executor_;
  PerfAgent agent_{t_.graph(), executor_, {}};
  std::vector<mad::Mad> answers_;
};

TEST_F(SampleAgentTest, TheAttributesAreWhereTheyBelong) {
  mad::PortSamplesControl in = sample(2, 0x01020304, 0x05060708, 0x1122);
  for (std::uint16_t i = 0; i < mad::kSampleCounters; ++i) {
    in.counter_select[i] = static_cast<std::uint16_t>(i % 6);
  }
  // A client cannot change what the agent is able to do.
  in.tick = 1;
  in.counter_width = 7;
  in.option_mask = ~0ull;
  const mad::PerfMad answer = ask(port(1), kSet, id::kPortSamplesControl, in);
  const std::array<std::uint8_t, 80> expected = {
      0,    2,    0xff, 4,                       // OpCode, PortSelect, Tick, CounterWidth
      0x1b, 0x6d, 0xb6, 0xdb,                    // ten masks of 0b011
      0x36, 0xdb, 0,    1,                       // five more; mechanisms; status: it waits
      0,    0,    0,    0,    0, 0, 0xff, 0xc0,  // OptionMask
      0,    0,    0,    0,    0, 0, 0,    0,     // VendorMask
      1,    2,    3,    4,    5, 6, 7,    8,     // SampleStart, SampleInterval
      0x11, 0x22,                                // Tag
      0,    0,    0,    1,    0, 2, 0,    3,    0, 4, 0, 5,  // CounterSelect 0 to 5
      0,    0,    0,    1,    0, 2, 0,    3,    0, 4, 0, 5,  // 6 to 11
      0,    0,    0,    1,    0, 2,                          // 12 to 14
      0,    0,    0,    0,                                   // reserved
      0,    0,    0,    0,    0, 0, 0,    0};                // SamplesOnlyOptionMask
  EXPECT_TRUE(std::ranges::equal(expected, std::span(answer.data).first<80>()))
      << fmt::format("{:02x}", fmt::join(std::span(answer.data).first<80>(), " "));
  EXPECT_TRUE(std::ranges::all_of(std::span(answer.data).subspan<80>(),
                                  [](std::uint8_t byte) { return byte == 0; }));
}

TEST_F(SampleAgentTest, BeforeTheFirstSetNothingWasSampled) {
  const auto control = get(port(1), 2);
  EXPECT_EQ(control.port_select, 2);
  EXPECT_EQ(control.sample_status, kDone);
  EXPECT_EQ(control.tag, 0);
  EXPECT_EQ(result(port(1)).tag, 0);
}

TEST_F(SampleAgentTest, ASampleCountsWithinItsInterval) {
  Port& node = t_.port_of_node(0);
  node.counters.sent.packets = 100;
  EXPECT_EQ(set(node, sample(1, 1'000'000, 1'000'000)).sample_status, kWaiting);
  node.counters.sent.packets = 110;
  executor_.advance(100ms);  // the start was at 99.3 ms
  node.counters.sent.packets = 150;
  EXPECT_EQ(get(node).sample_status, kRunning);
  EXPECT_EQ(result(node).sample_status, kRunning);
  EXPECT_EQ(result(node).counters[0], 0u);
  executor_.advance(100ms);  // the end was at 198.6 ms
  node.counters.sent.packets = 1000;
  const auto done = result(node);
  EXPECT_EQ(done.sample_status, kDone);
  EXPECT_EQ(done.tag, 7);
  EXPECT_EQ(done.counters[0], 40u);
  EXPECT_EQ(done.counters[1], 0u);
  EXPECT_EQ(get(node).sample_status, kDone);
  executor_.advance(1h);
  EXPECT_EQ(result(node).counters[0], 40u) << "until the next one";
}

TEST_F(SampleAgentTest, ASetDuringASampleHasNoEffect) {
  Port& node = t_.port_of_node(0);
  (void)set(node, sample(1, 0, 1'000'000, 7));
  const auto answer = set(node, sample(1, 5, 5, 8));
  EXPECT_EQ(answer.sample_status, kRunning);
  EXPECT_EQ(answer.tag, 7) << "whose sample it is";
  EXPECT_EQ(answer.sample_interval, 1'000'000u);
  node.counters.sent.packets += 3;
  executor_.advance(100ms);
  EXPECT_EQ(result(node).tag, 7);
  EXPECT_EQ(result(node).counters[0], 3u);
  EXPECT_EQ(set(node, sample(1, 1'000'000, 5, 8)).tag, 8) << "now it is free";
}

TEST_F(SampleAgentTest, AClientThatClearsACounterDoesNotDisturbASample) {
  Port& node = t_.port_of_node(0);
  node.counters.sent.packets = 1'000;
  (void)set(node, sample(1, 0, 1'000'000));
  node.counters.sent.packets += 3;
  mad::PortCounters clear;
  clear.port_select = 1;
  clear.counter_select = 0xffff;
  EXPECT_EQ(read<mad::PortCounters>(ask(node, kSet, id::kPortCounters, clear)).transmit_packets,
            0u);
  node.counters.sent.packets += 4;
  executor_.advance(100ms);
  EXPECT_EQ(result(node).counters[0], 7u);
}

// A switch has one mechanism, whichever of its ports a MAD comes by; each adapter has its own.
TEST_F(SampleAgentTest, OneMechanismForEachEnd) {
  EXPECT_EQ(set(port(1), sample(3, 0, 1'000'000, 7)).sample_status, kRunning);
  EXPECT_EQ(get(port(2), 2).tag, 7);
  EXPECT_EQ(get(port(2), 2).port_select, 3) << "the one that is sampled";
  EXPECT_EQ(set(t_.port_of_node(0), sample(1, 0, 1'000'000, 8)).tag, 8);
  EXPECT_EQ(get(t_.port_of_node(1)).tag, 0);
  port(3).counters.sent.packets += 2;
  executor_.advance(100ms);
  EXPECT_EQ(result(port(2)).counters[0], 2u);
  EXPECT_EQ(result(t_.port_of_node(0)).counters[0], 0u);
}

TEST_F(SampleAgentTest, AllPortsAreTheirSum) {
  port(1).counters.sent.packets = 100;
  (void)set(port(1), sample(mad::kAllPorts, 0, kTick));
  port(0).counters.sent.packets += 1'000;  // inside of the switch
  for (const std::uint32_t number : {1u, 2u, 3u}) port(number).counters.sent.packets += number;
  executor_.advance(1ms);
  EXPECT_EQ(result(port(1)).counters[0], 6u);
}

TEST_F(SampleAgentTest, ACounterStaysAtTheLargestValueOfItsWidth) {
  Port& node = t_.port_of_node(0);
  (void)set(node, sample(1, 0, kTick));
  node.counters.sent.packets = 0x1'0000'0005;
  executor_.advance(1ms);
  EXPECT_EQ(result(node).counters[0], 0xffff'ffffu);
  const auto wide =
      read<mad::PortSamplesResultExtended>(ask(node, kGet, id::kPortSamplesResultExtended));
  EXPECT_EQ(wide.counters[0], 0x1'0000'0005u);
  EXPECT_EQ(wide.extended_width, 2u << 30) << "64 bits";
  EXPECT_EQ(wide.tag, 7);
  EXPECT_EQ(wide.sample_status, kDone);
}

// The executor may run a timer later than it was due.
TEST_F(SampleAgentTest, ARequestAfterTheEndFindsItDoneWithoutItsTimer) {
  struct Late final : platform::Executor {
    void post(Work) override {}
    std::unique_ptr<platform::Timer> at(Instant, Work) override { return nullptr; }
    Instant now() override { return time; }
    Instant time{1s};
  } late;
  PerfAgent agent(t_.graph(), late, {});
  mad::PerfMad mad;
  mad.header = {1, mad::mgmt_class::kPerf, 1, kSet, 0, 0, 1, id::kPortSamplesControl, 0, 0};
  const auto in = sample(1, 0, kTick);
  std::memcpy(mad.data.data(), &in, sizeof in);
  const Port& node = t_.port_of_node(0);
  const auto status = [&](std::uint8_t method) {
    mad.header.method = method;
    return read<mad::PortSamplesControl>(
               std::bit_cast<mad::PerfMad>(agent.answer(node, std::bit_cast<mad::Mad>(mad))))
        .sample_status;
  };
  EXPECT_EQ(status(kSet), kRunning);
  late.time += 1ms;
  EXPECT_EQ(status(kSet), kRunning) << "the next sample";
  late.time += 1ms;
  EXPECT_EQ(status(kGet), kDone);
}

TEST_F(SampleAgentTest, APortThatIsAnotherNowBeginsAnew) {
  const Port& node = t_.port_of_node(0);
  (void)set(node, sample(1, 0, 1'000'000));
  agent_.forget(node);
  EXPECT_EQ(get(node).sample_status, kDone);
  EXPECT_EQ(get(node).tag, 0);
  executor_.advance(1s);
  EXPECT_EQ(result(node).tag, 0);
}

TEST_F(SampleAgentTest, RefusalsSayWhatIsWrong) {
  const Port& node = t_.port_of_node(0);
  const auto set_status = [&](const mad::PortSamplesControl& in, std::uint32_t modifier = 0) {
    return ask(node, kSet, id::kPortSamplesControl, in, modifier).header.status;
  };
  EXPECT_EQ(set_status(sample(2, 0, 0)), status::kBadField) << "it has one port";
  EXPECT_EQ(set_status(sample(1, 0, 0), 1), status::kBadField) << "it has one mechanism";
  auto in = sample(1, 0, 1'000'000);
  in.counter_select[14] = 6;
  EXPECT_EQ(set_status(in), status::kBadField) << "there is no such counter";
  EXPECT_EQ(get(node).tag, 0) << "nothing was sampled";
  EXPECT_EQ(set_status(sample(1, 0, 0), 0xffff'ffff), status::kOk) << "all of them";
  for (const std::uint16_t attribute : {id::kPortSamplesResult, id::kPortSamplesResultExtended}) {
    EXPECT_EQ(ask(node, kGet, attribute, mad::PortSamplesControl{}, 1).header.status,
              status::kBadField);
    EXPECT_EQ(ask(node, kGet, attribute, mad::PortSamplesControl{}, 0xffff'ffff).header.status,
              status::kOk);
    EXPECT_EQ(ask(node, kSet, attribute).header.status, status::kAttributeNotSupported);
  }
}

TEST_F(SampleAgentTest, TsharkFindsNoFault) {
  (void)set(port(1), sample(2, 1'000'000, 0xffff'ffff, 0x1234));
  (void)get(port(1));
  (void)result(port(1));
  (void)ask(port(1), kGet, id::kPortSamplesResultExtended);
  (void)ask(port(1), kSet, id::kPortSamplesControl, sample(9, 0, 0));
  mad::ErfCapture capture;
  for (const mad::Mad& answer : answers_) capture.add(answer);
  const auto rows =
      capture.dissect("sample_agent", {"infiniband.mad.attributeid", "infiniband.mad.status"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  ASSERT_EQ(rows->size(), 5u);
  for (const auto& row : *rows) EXPECT_EQ(row.back(), "");
  EXPECT_EQ(rows->at(0).at(0), "0x0010");
  EXPECT_EQ(rows->at(2).at(0), "0x0011");
  EXPECT_EQ(rows->at(3).at(0), "0x001e");
  EXPECT_EQ(rows->at(4).at(1), "0x001c");
}

}  // namespace
}  // namespace ib::fabric::test
