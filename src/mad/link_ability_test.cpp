// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/link_ability.h"

#include <gtest/gtest.h>

namespace ib::mad {
namespace {

constexpr LinkRate k4xEdr{2, 32};

TEST(LinkAbility, IsTheBestAndAllThatIsSlower) {
  EXPECT_EQ(ability_of(k4xEdr), (LinkAbility{3, 7, 3}));
  EXPECT_EQ(ability_of({8, 4}), (LinkAbility{15, 7, 0})) << "12X QDR";
  EXPECT_EQ(ability_of({1, 1}), (LinkAbility{1, 1, 0}));
  EXPECT_EQ(ability_of({2, 8}), (LinkAbility{3, 15, 0})) << "FDR10";
  EXPECT_EQ(ability_of({2, 16}), (LinkAbility{3, 7, 1})) << "FDR";
  EXPECT_EQ(ability_of({2, 128}), (LinkAbility{3, 7, 15})) << "NDR";
  EXPECT_EQ(ability_of({16, 64}), (LinkAbility{17, 7, 7})) << "2X HDR";
}

TEST(LinkAbility, AManagerLeavesSomeOfIt) {
  const LinkAbility able = ability_of(k4xEdr);
  PortSettings settings;
  EXPECT_EQ(enabled_of(able, settings), able) << "0: all";
  settings.width_enabled = 1;
  settings.speed_enabled = 5;
  settings.speed_ext_enabled = 1;
  EXPECT_EQ(enabled_of(able, settings), (LinkAbility{1, 5, 1}));
  settings.speed_ext_enabled = kNoExtendedSpeed;
  EXPECT_EQ(enabled_of(able, settings), (LinkAbility{1, 5, 0}));
}

TEST(LinkAbility, TwoEndsTakeTheBestThatBothEnable) {
  const LinkAbility edr = ability_of(k4xEdr);
  EXPECT_EQ(common_rate(edr, edr), k4xEdr);
  EXPECT_EQ(common_rate(edr, ability_of({8, 16})), (LinkRate{2, 16}));
  EXPECT_EQ(common_rate(edr, {1, 7, 3}), (LinkRate{1, 32}));
  EXPECT_EQ(common_rate(edr, {3, 5, 0}), (LinkRate{2, 4})) << "no extended speed: QDR";
  EXPECT_EQ(common_rate(edr, {3, 1, 0}), (LinkRate{2, 1}));
  EXPECT_EQ(common_rate(ability_of({16, 64}), ability_of({16, 64})), (LinkRate{16, 64}));
  EXPECT_EQ(common_rate(ability_of({16, 64}), edr), (LinkRate{1, 32})) << "2X is less than 4X";
}

TEST(LinkAbility, NothingInCommonIsNoLink) {
  const LinkAbility edr = ability_of(k4xEdr);
  EXPECT_EQ(common_rate({1, 7, 3}, {2, 7, 3}), std::nullopt);
  EXPECT_EQ(common_rate({3, 2, 0}, {3, 4, 3}), std::nullopt);
  EXPECT_NE(common_rate(edr, {3, 4, 0}), std::nullopt);
}

}  // namespace
}  // namespace ib::mad
