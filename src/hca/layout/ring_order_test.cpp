// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/layout/ring_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace ib::hca {
namespace {

class RingOrderOfSlots : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RingOrderOfSlots, EachSlotHasItsTurn) {
  const std::uint32_t slots = GetParam();
  const RingOrder order(slots);
  EXPECT_EQ(order.slots(), slots);
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{slots} * 5 + 3,
                                    (std::uint64_t{1} << 32) - slots / 2, ~std::uint64_t{0} - 7}) {
    std::vector<bool> taken(slots);
    for (std::uint64_t i = 0; i < slots; ++i) {
      const std::uint32_t slot = order.slot(first + i);
      ASSERT_LT(slot, slots) << first + i;
      ASSERT_FALSE(taken[slot]) << first + i;
      taken[slot] = true;
    }
  }
}

// So the turn is a matter of the position alone.
TEST_P(RingOrderOfSlots, AnEntryLiesWhereItDidATurnBefore) {
  const std::uint32_t slots = GetParam();
  const RingOrder order(slots);
  for (const std::uint64_t position : {std::uint64_t{1}, std::uint64_t{1} << 31,
                                       (std::uint64_t{1} << 32) - 1, std::uint64_t{1} << 63}) {
    EXPECT_EQ(order.slot(position + slots), order.slot(position)) << position;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RingOrderOfSlots,
                         ::testing::Values(1, 2, 4, 8, 16, 64, 128, 512, 1024, 2048, 1u << 16,
                                           1u << 22));

// Nothing for a processor to expect: neither neighbours nor steps of one length.
TEST(RingOrder, AnEntryLiesFarFromThoseBeforeIt) {
  for (const std::uint32_t slots : {256u, 512u, 1024u, 8192u}) {
    const RingOrder order(slots);
    const std::uint32_t window = std::min(slots, RingOrder::kWindow);
    for (std::uint64_t position = 12; position < window; ++position) {
      const auto at = static_cast<int>(order.slot(position));
      for (std::uint64_t before = 1; before <= 12; ++before) {
        const auto other = static_cast<int>(order.slot(position - before));
        ASSERT_GE(std::abs(at - other), static_cast<int>(window / 40)) << slots << ' ' << position;
      }
      const auto step = [&](std::uint64_t to) {
        return static_cast<int>(order.slot(to)) - static_cast<int>(order.slot(to - 1));
      };
      ASSERT_FALSE(step(position) == step(position - 1) && step(position) == step(position - 2))
          << slots << ' ' << position;
    }
  }
}

TEST(RingOrder, UsesUpAWindowBeforeTheNextOne) {
  const RingOrder order(8 * RingOrder::kWindow);
  for (std::uint32_t position = 0; position < 8 * RingOrder::kWindow; ++position) {
    ASSERT_EQ(order.slot(position) / RingOrder::kWindow, position / RingOrder::kWindow);
  }
}

}  // namespace
}  // namespace ib::hca
