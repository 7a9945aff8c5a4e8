// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The version of softib: one number for all its parts, which are built and installed together.
#pragma once

namespace ib::softib {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace ib::softib
