// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The private plug-in interface of libibverbs: the numbers that softib has a plug-in for, and which
// one a library has. The number is part of the names of plug-ins and of symbols and their versions.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace ib::verbs {

// rdma-core 36 to 56, 57 and 58, 59 to 63, 64, 65.
inline constexpr std::array kPrivateAbis{34, 57, 59, 64, 65};

inline constexpr bool is_known_private_abi(int abi) {
  return std::find(kPrivateAbis.begin(), kPrivateAbis.end(), abi) != kPrivateAbis.end();
}

// `has(abi)`: whether the library has verbs_register_driver_<abi>. Returns 0 if it has none.
template <class Has>
int find_private_abi(Has has) {
  for (const int abi : kPrivateAbis) {
    if (has(abi)) return abi;
  }
  constexpr int kLast = 255;  // numbers are taken from rdma-core's releases, four in a year
  for (int abi = 1; abi <= kLast; ++abi) {
    if (has(abi)) return abi;
  }
  return 0;
}

// The release of rdma-core in the name of the library's file, libibverbs.so.1.14.<release>. Empty
// if it has none: a link, or not from rdma-core.
inline constexpr std::string_view rdma_core_release(std::string_view file) {
  constexpr std::string_view kName = "libibverbs.so.1.";
  const std::size_t name = file.rfind(kName);
  if (name == std::string_view::npos) return {};
  file.remove_prefix(name + kName.size());
  const std::size_t dot = file.find('.');
  if (dot == std::string_view::npos) return {};
  file.remove_prefix(dot + 1);
  return file;
}

}  // namespace ib::verbs
