// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the tests of this folder: a softibd that runs in one network namespace, programs in another,
// and addresses that are there.
#pragma once

#include "drivers/root/fabric_tree.h"

#include <cstdint>

namespace ib::drivers::test {

inline constexpr std::uint64_t kOwn = 4026531840;
inline constexpr std::uint64_t kOther = 4026532000;
inline constexpr std::uint32_t kOne = 10u << 24 | 1;  // 10.0.0.1
inline constexpr std::uint32_t kTwo = 10u << 24 | 2;

inline FabricTreeOptions in_a_namespace() {
  FabricTreeOptions options;
  options.network_namespace = kOwn;
  return options;
}

}  // namespace ib::drivers::test
