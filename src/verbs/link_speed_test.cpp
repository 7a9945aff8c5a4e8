// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/link_speed.h"

#include <gtest/gtest.h>

namespace ib::verbs {
namespace {

TEST(LinkSpeed, CodesOfPortInfo) {
  EXPECT_EQ(link_speed(32).tenths, 250u);
  EXPECT_EQ(link_speed(1).tenths, 25u);
  EXPECT_EQ(link_speed(3).tenths, 25u);  // unknown
  EXPECT_EQ(link_lanes(1), 1u);
  EXPECT_EQ(link_lanes(2), 4u);
  EXPECT_EQ(link_lanes(8), 12u);
  EXPECT_EQ(link_lanes(16), 2u);
}

}  // namespace
}  // namespace ib::verbs
