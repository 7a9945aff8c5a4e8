// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/subnet/cable_page.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

TEST(CableEnd, IsAnElementAndAPort) {
  const auto expect = [](const char* text, const char* element, std::uint32_t port) {
    const auto end = parse_cable_end(text);
    ASSERT_TRUE(end) << text;
    EXPECT_EQ(end->element, element);
    EXPECT_EQ(end->port, port);
  };
  expect("switch-1:3", "switch-1", 3);
  expect("node0/softib1:2", "node0/softib1", 2);
  expect("node0/softib1/2", "node0/softib1", 2);
  expect("a: b:c:7", "a: b:c", 7);
  expect("0x0253468000000000:36", "0x0253468000000000", 36);
}

TEST(CableEnd, IsNothingElse) {
  for (const char* text : {"", "switch-1", ":3", "switch-1:", "switch-1:x", "switch-1:3x",
                           "switch-1:-1", "node0/softib0", "switch-1:99999999999"}) {
    EXPECT_FALSE(parse_cable_end(text)) << text;
  }
}

Json cable(bool is_up, const char* state, bool is_disabled) {
  return {
      {"width", "4x"},
      {"speed", "EDR"},
      {"is_up", is_up},
      {"ends",
       {{{"text", "port 3 of switch-1"}, {"state", state}},
        {{"text", "port 1 of softib0 on node2"}, {"state", state}, {"is_disabled", is_disabled}}}}};
}

TEST(CablePage, SaysWhatBecameOfIt) {
  const std::string ends =
      "the cable between port 3 of switch-1 and port 1 of softib0 on node2 (4x EDR) is ";
  EXPECT_EQ(cable_page(cable(true, "active", false)), ends + "up");
  EXPECT_EQ(cable_page(cable(true, "init", false)), ends + "up, and waits for a subnet manager");
  EXPECT_EQ(cable_page(cable(false, "down", false)), ends + "down: an end of it is silent");
  EXPECT_EQ(cable_page(cable(false, "down", true)),
            ends + "down: port 1 of softib0 on node2 was taken down");
}

}  // namespace
}  // namespace ib::softib
