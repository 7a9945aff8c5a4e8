// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The halves of a connection that a program has shut, as SharedEnd::shut has them.
#pragma once

#include <cstdint>

namespace ib::streams {

inline constexpr std::uint32_t kShutRead = 1;
inline constexpr std::uint32_t kShutWrite = 2;

}  // namespace ib::streams
