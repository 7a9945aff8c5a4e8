// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// tshark reads what the agent of a switch answers, and names its fields as they are meant. Those of
// an adapter: mad/test/smp_wire_test.cpp.
#include "fabric/management/subnet_test.h"
#include "fabric/subnet_setup.h"
#include "mad/test/erf_capture_test.h"

#include <fmt/format.h>

namespace ib::fabric::test {
namespace {

namespace id = mad::smp_attribute;
using mad::method::kGet;
using mad::method::kSet;

class SwitchWire : public testing::Test {
 protected:
  // Returns the number of its answer's packet. By a directed route of one hop, to the switch.
  std::size_t exchange(std::uint8_t method, std::uint16_t attribute, std::uint32_t modifier = 0) {
    const mad::Smp request = Subnet::along({1}, method, attribute, modifier);
    const mad::Smp answer = t.ask(request);
    if (answer.header.method == 0) return kNone;
    capture.add(std::as_bytes(std::span(&answer, 1)), {0xffff, 0xffff, 0, 0, 0, 0});
    answers.push_back(answer.header);
    return answers.size() - 1;
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  Subnet t{"star:4"};
  mad::ErfCapture capture;
  std::vector<mad::MadHeader> answers;
};

TEST_F(SwitchWire, NoAnswerIsMalformed) {
  for (unsigned method = 0; method < mad::method::kResponseBit; ++method) {
    for (std::uint16_t attribute = 0; attribute <= 0x40; ++attribute) {
      for (const std::uint32_t modifier : {0u, 1u, 0x10000u}) {
        exchange(static_cast<std::uint8_t>(method), attribute, modifier);
      }
    }
  }
  ASSERT_GT(answers.size(), 1000u);
  const auto rows = capture.dissect(
      "switch_all", {"infiniband.mad.method", "infiniband.mad.status", "infiniband.mad.attributeid",
                     "infiniband.smpdirected.hopcount"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const std::vector<std::string> expected = {
        "0x81", fmt::format("{:#06x}", std::uint16_t{answers[i].status}),
        fmt::format("{:#06x}", std::uint16_t{answers[i].attribute}), "0x01", ""};
    EXPECT_EQ((*rows)[i], expected);
  }
}

TEST_F(SwitchWire, TheFieldsOfAnAnswerAreThoseOfTheSwitch) {
  const Element& element = t.the_switch();
  const Port& zero = *t.graph().port_of(element, 0);
  Switch& tables = fresh_tables(t.graph(), element);
  tables.set_linear(1, 3);
  tables.groups[0xc001] = {0x001a};
  const std::size_t node = exchange(kGet, id::kNodeInfo);
  const std::size_t info = exchange(kGet, id::kSwitchInfo);
  const std::size_t linear = exchange(kGet, id::kLinearForwarding);
  const std::size_t multicast = exchange(kGet, id::kMulticastForwarding);
  const std::size_t port = exchange(kGet, id::kPortInfo, 0);
  const std::size_t led = exchange(kGet, id::kLedInfo);
  const auto rows = capture.dissect(
      "switch_fields",
      {"infiniband.nodeinfo.nodetype", "infiniband.nodeinfo.numports",
       "infiniband.nodeinfo.nodeguid", "infiniband.switchinfo.linearfdbcap",
       "infiniband.switchinfo.linearfdbtop", "infiniband.switchinfo.multicastfdbcap",
       "infiniband.linearforwardingtable.port", "infiniband.multicastforwardingtable.portmask",
       "infiniband.portinfo.lid", "infiniband.ledinfo.ledmask"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  const auto first = [&](std::size_t row, std::size_t column) {
    const std::string text = (*rows)[row].at(column);
    return text.substr(0, text.find(','));
  };
  EXPECT_EQ(first(node, 0), "0x02");
  EXPECT_EQ(first(node, 1), "0x04");
  EXPECT_EQ(first(node, 2), fmt::format("{:#018x}", element.node_guid));
  EXPECT_EQ(first(info, 3), fmt::format("{:#06x}", tables.facts.linear_cap));
  EXPECT_EQ(first(info, 4), fmt::format("{:#06x}", tables.facts.linear_top));
  EXPECT_EQ((*rows)[linear].at(6).substr(0, 9), fmt::format("{:#04x},0x03", kNoPort));
  EXPECT_EQ((*rows)[multicast].at(7).substr(0, 13), "0x0000,0x001a") << "LIDs 0xc000, 0xc001";
  EXPECT_EQ(first(port, 8), fmt::format("{:#06x}", zero.lid));
  EXPECT_NE(first(led, 9), "");
}

}  // namespace
}  // namespace ib::fabric::test
