// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/net/net_messages.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ib::softib {
namespace {

ParsedNetRequest request() {
  return {NetCode::Join,
          "node0",
          "/run/softib/default.sock",
          {{verbs::ipv4_gid(0x0a010001), 24, PlanKind::Address, 0},
           {verbs::ipv4_gid(0x7f000000), 8, PlanKind::Unreachable, 0}},
          IpoibMode::Connected,
          true};
}

TEST(NetMessages, ARequestComesAsItWasSent) {
  const auto read = parse_net_request(write_net_request(request()));
  ASSERT_TRUE(read);
  EXPECT_EQ((*read).node, "node0");
  EXPECT_EQ((*read).socket, "/run/softib/default.sock");
  ASSERT_EQ((*read).plan.size(), 2u);
  EXPECT_EQ((*read).plan[0].ip, verbs::ipv4_gid(0x0a010001));
  EXPECT_EQ((*read).plan[1].kind, PlanKind::Unreachable);
  EXPECT_EQ((*read).mode, IpoibMode::Connected);
  EXPECT_TRUE((*read).needs_mode);
}

TEST(NetMessages, WhatIsTooShortOrTooLongIsRefused) {
  std::vector<std::byte> bytes = write_net_request(request());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(parse_net_request(std::span(bytes).first(size)).error(), Status::Malformed);
  bytes.push_back({});
  EXPECT_EQ(parse_net_request(bytes).error(), Status::Malformed);
}

TEST(NetMessages, NamesAndNumbersAreChecked) {
  const auto error_of = [](auto change) {
    ParsedNetRequest changed = request();
    change(changed);
    return parse_net_request(write_net_request(changed)).error();
  };
  EXPECT_EQ(error_of([](auto& it) { it.node = "a\nb"; }), Status::Malformed);
  EXPECT_EQ(error_of([](auto& it) { it.node = ""; }), Status::Malformed);
  EXPECT_EQ(error_of([](auto& it) { it.mode = IpoibMode{3}; }), Status::Malformed);
  EXPECT_EQ(error_of([](auto& it) { it.code = static_cast<NetCode>(99); }), Status::Malformed);
  EXPECT_EQ(error_of([](auto& it) { it.plan[0].bits = 33; }), Status::Malformed);
  EXPECT_EQ(error_of([](auto& it) { it.plan[0].ip = verbs::ipv4_gid(0); }), Status::Malformed);
  EXPECT_EQ(error_of([](auto& it) { it.plan[1].kind = PlanKind{77}; }), Status::Malformed);
  EXPECT_EQ(error_of([](auto& it) { it.code = NetCode::Report, it.node = ""; }), Status::Ok);
  std::vector<std::byte> other = write_net_request(request());
  other[0] = std::byte{9};
  EXPECT_EQ(parse_net_request(other).error(), Status::NotSupported);
}

}  // namespace
}  // namespace ib::softib
