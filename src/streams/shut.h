// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The halves of a connection that a program has shut, as SharedEnd::shut has them; and those of the
// link that follow.
#pragma once

#include <cstdint>

namespace ib::streams {

inline constexpr std::uint32_t kShutRead = 1;
inline constexpr std::uint32_t kShutWrite = 2;
inline constexpr std::uint32_t kShutLinkWrite = 4;
inline constexpr std::uint32_t kShutLinkRead = 8;

}  // namespace ib::streams
