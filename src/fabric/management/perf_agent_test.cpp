// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The answers of performance and device management, byte by byte and as tshark reads it.
#include "fabric/management/perf_agent.h"

#include "fabric/management/device_agent.h"
#include "fabric/management/subnet_test.h"
#include "mad/class_port_info.h"
#include "mad/device_management.h"
#include "mad/mgmt_class.h"
#include "mad/perf.h"
#include "mad/test/erf_capture_test.h"
#include "platform/virtual_executor.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::fabric::test {
namespace {

namespace id = mad::perf_attribute;
namespace status = mad::mad_status;
using mad::method::kGet;
using mad::method::kSet;

mad::PerfMad request(std::uint8_t method, std::uint16_t attribute,
                     std::uint8_t mgmt_class = mad::mgmt_class::kPerf) {
  mad::PerfMad mad;
  mad.header = {
      mad::kBaseVersion, mgmt_class, mad::kClassVersion, method, 0, 0, 0x77, attribute, 0, 0};
  return mad;
}

template <class T>
T read(const mad::PerfMad& mad) {
  T value;
  std::memcpy(static_cast<void*>(&value), mad.data.data(), sizeof value);
  return value;
}

class PerfAgentTest : public ::testing::Test {
 protected:
  mad::PerfMad ask(const Port& at, const mad::PerfMad& mad) {
    requests_.push_back(std::bit_cast<mad::Mad>(mad));
    answers_.push_back(agent_.answer(at, requests_.back()));
    return std::bit_cast<mad::PerfMad>(answers_.back());
  }
  // Of a port of the switch, unless another is named.
  template <class T>
  mad::PerfMad exchange(std::uint8_t method, std::uint16_t attribute, T in,
                        const Port* at = nullptr) {
    mad::PerfMad mad = request(method, attribute);
    std::memcpy(mad.data.data(), &in, sizeof in);
    return ask(at != nullptr ? *at : port(1), mad);
  }
  mad::PortCounters get(std::uint8_t port_select) {
    mad::PortCounters in;
    in.port_select = port_select;
    return read<mad::PortCounters>(exchange(kGet, id::kPortCounters, in));
  }
  mad::PortCountersExtended get_extended(std::uint8_t port_select) {
    mad::PortCountersExtended in;
    in.port_select = port_select;
    return read<mad::PortCountersExtended>(exchange(kGet, id::kPortCountersExtended, in));
  }
  Port& port(std::uint32_t number) { return *t_.graph().port_of(t_.the_switch(), number); }

  // Each counter of the port has another value, which its field can show.
  static void count(Port& port, std::uint64_t base) {
    std::uint64_t next = base;
    each_counter(port.counters, [&](auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(++next);
    });
    port.counters.local_link_integrity_errors = 10;
    port.counters.buffer_overrun_errors = 11;
  }

  Subnet t_{"star:3"};
  platform::VirtualExecutor executor_;
  PerfAgent agent_{t_.graph(), executor_, {}};
  std::vector<mad::Mad> requests_, answers_;
};

TEST_F(PerfAgentTest, ClassPortInfoSaysWhatItCan) {
  const auto answer = ask(port(1), request(kGet, mad::kClassPortInfo));
  EXPECT_EQ(answer.header.method, mad::method::kGetResp);
  EXPECT_EQ(answer.header.status, status::kOk);
  EXPECT_EQ(answer.header.transaction_id, 0x77u);
  const auto info = read<mad::ClassPortInfo>(answer);
  EXPECT_EQ(info.base_version, 1);
  EXPECT_EQ(info.class_version, 1);
  EXPECT_EQ(info.capability_mask, 0x1300);  // AllPortSelect, ExtendedWidth, PortXmitWait
  EXPECT_EQ(info.capability_mask2_response_time, 2u << 5 | 18u);
}

// At the places of [IBA1 16.1.3.5].
TEST_F(PerfAgentTest, PortCountersAreWhereTheyBelong) {
  count(port(2), 0x20);
  (void)get(2);
  const mad::PerfMad answer = std::bit_cast<mad::PerfMad>(answers_.back());
  const std::array<std::uint8_t, 44> expected = {
      0,    2,                                   // PortSelect
      0,    0,                                   // CounterSelect
      0,    0x21, 0x22, 0x23,                    // symbol, recovery, downed
      0,    0x24, 0,    0x25, 0, 0x26, 0, 0x27,  // receive, remote, relay, discards
      0x28, 0x29, 0,    0xab,                    // constraints, select 2, 4 and 4 bits
      0,    0,    0,    0x2c,                    // QP1Dropped, VL15Dropped
      0,    0,    0,    0x2d, 0, 0,    0, 0x2e,  // data
      0,    0,    0,    0x2f, 0, 0,    0, 0x30, 0, 0, 0, 0x31};  // packets, wait
  EXPECT_TRUE(std::ranges::equal(expected, std::span(answer.data).first<44>()))
      << fmt::format("{:02x}", fmt::join(std::span(answer.data).first<44>(), " "));
}

TEST_F(PerfAgentTest, NarrowFieldsStayAtTheirLargestValue) {
  count(port(1), 0x1'0000'0000);
  Port& p = port(1);
  p.counters.symbol_errors = 0x10000;
  p.counters.link_downed = 0x100;
  p.counters.local_link_integrity_errors = 16;
  const auto narrow = get(1);
  EXPECT_EQ(narrow.symbol_errors, 0xffff);
  EXPECT_EQ(narrow.link_downed, 0xff);
  EXPECT_EQ(narrow.integrity_overrun, 0xfb);
  EXPECT_EQ(narrow.transmit_data, 0xffff'ffffu);
  EXPECT_EQ(narrow.transmit_wait, 0xffff'ffffu);
  const auto wide = get_extended(1);
  EXPECT_EQ(wide.transmit_data, 0x1'0000'000du);
  EXPECT_EQ(wide.errors[0], 0x10000u);
  EXPECT_EQ(wide.errors[2], 0x100u);
  EXPECT_EQ(wide.errors[9], 16u);
}

TEST_F(PerfAgentTest, AllPortsAreTheirSum) {
  count(port(1), 100);
  count(port(2), 200);
  port(0).counters.symbol_errors = 1000;  // inside of the switch
  port(3).counters.sent.data = ~0ull;
  EXPECT_EQ(get(mad::kAllPorts).symbol_errors, 101 + 201);
  EXPECT_EQ(get(mad::kAllPorts).port_select, mad::kAllPorts);
  EXPECT_EQ(get_extended(mad::kAllPorts).transmit_data, ~0ull) << "and not more";
  EXPECT_EQ(get_extended(mad::kAllPorts).receive_packets, 116u + 216u);
  EXPECT_EQ(get(0).symbol_errors, 1000);
}

TEST_F(PerfAgentTest, ASetClearsWhatItSelects) {
  count(port(1), 100);
  count(port(2), 100);
  mad::PortCounters in;
  in.port_select = 1;
  in.counter_select = 1u << 0 | 1u << 13;  // SymbolErrorCounter, PortRcvData
  in.symbol_errors = 55;                   // does not matter
  const auto answer = read<mad::PortCounters>(exchange(kSet, id::kPortCounters, in));
  EXPECT_EQ(answer.symbol_errors, 0);
  EXPECT_EQ(answer.receive_data, 0u);
  EXPECT_EQ(answer.transmit_data, 113u);
  EXPECT_EQ(answer.transmit_wait, 117u);
  port(1).counters.symbol_errors += 3;
  EXPECT_EQ(get(1).symbol_errors, 3);
  EXPECT_EQ(get_extended(1).receive_data, 0u) << "the same counters";
  EXPECT_EQ(get(2).symbol_errors, 101);
  EXPECT_EQ(agent_.counters(port(1)).symbol_errors, 3u);
  PortCounters all = port(1).counters;
  all.symbol_errors += 2;
  EXPECT_EQ(agent_.since_cleared(port(1), all).symbol_errors, 5u) << "that were read elsewhere";
  in.counter_select = 0;
  in.counter_select2 = 1;
  EXPECT_EQ(read<mad::PortCounters>(exchange(kSet, id::kPortCounters, in)).transmit_wait, 0u);
  EXPECT_EQ(get(1).link_downed, 103);
  agent_.forget(port(1));
  EXPECT_EQ(get(1).symbol_errors, 104) << "as counted, if it begins anew";
}

TEST_F(PerfAgentTest, AnExtendedSetHasBitsOfItsOwn) {
  count(port(1), 100);
  count(port(2), 100);
  mad::PortCountersExtended in;
  in.port_select = mad::kAllPorts;
  in.counter_select = 1u << 0 | 1u << 7;               // PortXmitData, PortMulticastRcvPkts
  in.counter_select2 = 1u << 2 | 1u << 11 | 1u << 12;  // LinkDowned, VL15Dropped, PortXmitWait
  (void)exchange(kSet, id::kPortCountersExtended, in);
  for (const std::uint8_t number : {std::uint8_t{1}, std::uint8_t{2}}) {
    const auto now = get_extended(number);
    EXPECT_EQ(now.transmit_data, 0u);
    EXPECT_EQ(now.receive_data, 114u);
    EXPECT_EQ(now.multicast_transmit_packets, 120u);
    EXPECT_EQ(now.multicast_receive_packets, 0u);
    EXPECT_EQ(now.unicast_transmit_packets, 118u);
    EXPECT_EQ(now.errors[1], 102u);
    EXPECT_EQ(now.errors[2], 0u);
    EXPECT_EQ(now.errors[11], 0u);
    EXPECT_EQ(now.transmit_wait, 0u);
  }
}

// A counter of an HCA that was pulled out begins at 0.
TEST_F(PerfAgentTest, ACounterThatBeganAnewIsNotNegative) {
  count(port(1), 100);
  mad::PortCounters in;
  in.port_select = 1;
  in.counter_select = 0xffff;
  (void)exchange(kSet, id::kPortCounters, in);
  port(1).counters = {};
  port(1).counters.sent.packets = 7;
  EXPECT_EQ(get(1).transmit_packets, 7u);
}

TEST_F(PerfAgentTest, TheHookReadsAPort) {
  PerfAgent agent(t_.graph(), executor_, [](const Port& port) {
    PortCounters counters = port.counters;
    counters.sent.packets += 1000;
    return counters;
  });
  port(1).counters.sent.packets = 5;
  EXPECT_EQ(agent.counters(port(1)).sent.packets, 1005u);
}

// Each has parts of one of PortCounters, and is cleared on its own.
TEST_F(PerfAgentTest, DetailsOfErrorsAndDiscards) {
  port(2).counters.local_physical_errors = 0x11;
  port(2).counters.buffer_overruns = 0x12345;
  port(2).counters.receive_errors = 0x12356;
  port(2).counters.discard();
  mad::PortRcvErrorDetails in;
  in.port_select = 2;
  auto errors = read<mad::PortRcvErrorDetails>(exchange(kGet, id::kPortRcvErrorDetails, in));
  EXPECT_EQ(errors.port_select, 2);
  EXPECT_EQ(errors.local_physical_errors, 0x11);
  EXPECT_EQ(errors.buffer_overruns, 0xffff) << "the largest value";
  EXPECT_EQ(errors.malformed_packets, 0);
  in.counter_select = 1u << 2;
  errors = read<mad::PortRcvErrorDetails>(exchange(kSet, id::kPortRcvErrorDetails, in));
  EXPECT_EQ(errors.counter_select, 1u << 2);
  EXPECT_EQ(errors.buffer_overruns, 0);
  EXPECT_EQ(errors.local_physical_errors, 0x11) << "not selected";
  EXPECT_EQ(get(2).receive_errors, 0xffff) << "not cleared with its parts";
  mad::PortXmitDiscardDetails discards;
  discards.port_select = 2;
  const auto get_discards = [&](std::uint8_t method) {
    return read<mad::PortXmitDiscardDetails>(
        exchange(method, id::kPortXmitDiscardDetails, discards));
  };
  EXPECT_EQ(get_discards(kGet).inactive, 1);
  discards.counter_select = 1;
  EXPECT_EQ(get_discards(kSet).inactive, 0);
  EXPECT_EQ(get(2).transmit_discards, 1);
}

TEST_F(PerfAgentTest, RefusalsSayWhatIsWrong) {
  mad::PortCounters in;
  in.port_select = 4;  // of three
  EXPECT_EQ(exchange(kGet, id::kPortCounters, in).header.status, status::kBadField);
  const Port& node = t_.port_of_node(0);
  in.port_select = 0;  // an adapter has none
  EXPECT_EQ(exchange(kGet, id::kPortCounters, in, &node).header.status, status::kBadField);
  in.port_select = 1;
  EXPECT_EQ(exchange(kGet, id::kPortCounters, in, &node).header.status, status::kOk);
  EXPECT_EQ(ask(node, request(kSet, mad::kClassPortInfo)).header.status,
            status::kAttributeNotSupported);
  // Counters of virtual lanes, congestion and the like.
  for (const std::uint16_t attribute :
       std::initializer_list<std::uint16_t>{0x17, 0x18, 0x30, 0x7777}) {
    EXPECT_EQ(ask(node, request(kGet, attribute)).header.status, status::kAttributeNotSupported);
  }
  EXPECT_EQ(ask(node, request(mad::method::kTrap, id::kPortCounters)).header.status,
            status::kMethodNotSupported);
}

// Both attributes and the refusal, as tshark reads them.
TEST_F(PerfAgentTest, TsharkReadsTheAnswers) {
  count(port(2), 0x20);
  (void)get(2);
  (void)get_extended(2);
  (void)ask(port(1), request(kGet, mad::kClassPortInfo));
  (void)ask(port(1), request(kGet, 0x17));
  mad::ErfCapture capture;
  for (const mad::Mad& answer : answers_) capture.add(answer);
  const std::string narrow = "infiniband.portcounters.", wide = "infiniband.portcounters_ext.";
  struct Value {
    std::size_t packet;
    std::string field;
    std::string text;
  };
  const std::vector<Value> values = {
      {0, narrow + "portselect", "0x02"},
      {0, narrow + "symbolerrorcounter", "33"},
      {0, narrow + "linkerrorrecoverycounter", "34"},
      {0, narrow + "linkdownedcounter", "35"},
      {0, narrow + "portrcverrors", "36"},
      {0, narrow + "portrcvremotephysicalerrors", "37"},
      {0, narrow + "portrcvswitchrelayerrors", "38"},
      {0, narrow + "portxmitdiscards", "39"},
      {0, narrow + "portxmitconstrainterrors", "40"},
      {0, narrow + "portrcvconstrainterrors", "41"},
      {0, narrow + "locallinkintegrityerrors", "10"},
      {0, narrow + "excessivebufferoverrunerrors", "11"},
      {0, narrow + "vl15dropped", "44"},
      {0, narrow + "portxmitdata", "45"},
      {0, narrow + "portrcvdata", "46"},
      {0, narrow + "portxmitpkts", "47"},
      {0, narrow + "portrcvpkts", "48"},
      {1, wide + "portselect", "0x02"},
      {1, wide + "portxmitdata", "45"},
      {1, wide + "portrcvdata", "46"},
      {1, wide + "portxmitpkts", "47"},
      {1, wide + "portrcvpkts", "48"},
      {1, wide + "portunicastxmitpkts", "50"},
      {1, wide + "portunicastrcvpkts", "51"},
      {1, wide + "portmulticastxmitpkts", "52"},
      {1, wide + "portmulticastrcvpkts", "53"},
      {3, "infiniband.mad.status", "0x000c"},
  };
  std::vector<std::string> fields;
  for (const Value& value : values) fields.push_back(value.field);
  const auto rows = capture.dissect("perf_agent", fields);
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  for (const auto& row : *rows) EXPECT_EQ(row.back(), "");
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(rows->at(values[i].packet).at(i), values[i].text) << values[i].field;
  }
}

TEST(DeviceAgent, AnIoUnitHasNoControllers) {
  const auto ask = [](std::uint8_t method, std::uint16_t attribute) {
    mad::PerfMad mad = request(method, attribute, mad::mgmt_class::kDevMgt);
    mad.data.fill(0xee);
    return std::bit_cast<mad::PerfMad>(answer_device_management(std::bit_cast<mad::Mad>(mad)));
  };
  const auto unit = ask(kGet, mad::device_attribute::kIoUnitInfo);
  EXPECT_EQ(unit.header.method, mad::method::kGetResp);
  EXPECT_EQ(unit.header.status, status::kOk);
  EXPECT_TRUE(std::ranges::all_of(unit.data, [](auto byte) { return byte == 0; }));
  EXPECT_EQ(read<mad::ClassPortInfo>(ask(kGet, mad::kClassPortInfo)).class_version, 1);
  // IOControllerProfile, ServiceEntries, DiagnosticTimeout; Set(DiagCode) and so on.
  for (const std::uint16_t attribute :
       std::initializer_list<std::uint16_t>{0x11, 0x12, 0x20, 0x7777}) {
    EXPECT_EQ(ask(kGet, attribute).header.status, status::kAttributeNotSupported);
    EXPECT_EQ(ask(kSet, attribute).header.status, status::kAttributeNotSupported);
  }
  EXPECT_EQ(ask(mad::method::kTrap, 2).header.status, status::kMethodNotSupported);
}

}  // namespace
}  // namespace ib::fabric::test
