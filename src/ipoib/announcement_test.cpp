// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/announcement.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ib::ipoib::driver {
namespace {

TEST(Announcement, ItAsksForTheOwnAddress) {
  const MacAddress mac{{2, 3, 4, 5, 6, 7}};
  const Ipv4Address address{{10, 0, 0, 1}};
  const Announcement frame = announcement_of(mac, address);
  std::vector<int> bytes;
  for (const std::byte each : frame) bytes.push_back(static_cast<int>(each));
  EXPECT_EQ(bytes, (std::vector<int>{0xff, 0xff, 0xff, 0xff, 0xff, 0xff,         //
                                     2,    3,    4,    5,    6,    7,    8,  6,  // Ethernet
                                     0,    1,    8,    0,    6,    4,    0,  1,  // a request
                                     2,    3,    4,    5,    6,    7,    10, 0, 0, 1,
                                     0,    0,    0,    0,    0,    0,    10, 0, 0, 1}));
}

TEST(Announcement, TheLoopbackInterfaceHasItsAddress) {
  EXPECT_EQ(addresses_of("no such"), std::vector<Ipv4Address>{});
  for (const Ipv4Address& each : addresses_of("lo")) EXPECT_EQ(each.bytes[0], 127);
}

}  // namespace
}  // namespace ib::ipoib::driver
