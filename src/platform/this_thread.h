// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A number of this thread that no other thread of the process has at the same time, for a few
// instructions.
#pragma once

#include <cstdint>

namespace ib::platform {

inline std::uintptr_t this_thread() {
#if defined(__x86_64__)
  // The thread control block's own address, which the ABI puts there.
  std::uintptr_t self;
  asm("movq %%fs:0, %0" : "=r"(self));
  return self;
#elif defined(__i386__)
  std::uintptr_t self;
  asm("movl %%gs:0, %0" : "=r"(self));
  return self;
#else
  static thread_local const char here = 0;
  return reinterpret_cast<std::uintptr_t>(&here);
#endif
}

}  // namespace ib::platform
