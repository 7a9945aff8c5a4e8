// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses of memory as numbers of 64 bits, which they are in every interface and in device memory
// (a 32-bit program and a 64-bit one share both), and as pointers of this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ib {

// By std::uintptr_t: gcc extends the sign of a pointer that becomes a longer number.
inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// For addresses of this process: on 32 bit the upper half is lost.
template <class T = std::byte>
T* pointer_to(std::uint64_t address) {
  const auto here = static_cast<std::uintptr_t>(address);
  return reinterpret_cast<T*>(here);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace ib
