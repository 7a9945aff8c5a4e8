// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/report_count.h"

#include <gtest/gtest.h>

namespace ib::verbs {
namespace {

TEST(ReportCount, SmallNumbersAreExactAndLargeOnesDouble) {
  std::uint64_t counted = 0;
  std::uint32_t reports = 0;
  for (std::uint32_t n = 1; n <= 1u << 20; ++n) {
    const std::uint32_t times = report_count(n);
    counted += times;
    reports += times != 0 ? 1 : 0;
    ASSERT_LE(counted, n);
    ASSERT_GE(2 * counted, n);
    if (n <= 8) {
      ASSERT_EQ(counted, n);
    }
  }
  EXPECT_EQ(counted, 1u << 20);
  EXPECT_EQ(reports, 8u + 17);
}

}  // namespace
}  // namespace ib::verbs
