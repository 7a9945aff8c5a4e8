// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The RNR NAK timer field [IBA1 table 45]: 5 bits for 10 us to 655.36 ms.
#pragma once

#include "base/time.h"

#include <array>
#include <cstdint>

namespace ib::hca {

inline constexpr std::array<std::uint32_t, 32> kRnrTimer10us = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr Duration rnr_delay(std::uint8_t field) {
  return std::chrono::microseconds(10) * kRnrTimer10us[field & 31];
}
static_assert(rnr_delay(12) == std::chrono::microseconds(640));
static_assert(rnr_delay(31) == std::chrono::microseconds(491520));

}  // namespace ib::hca
