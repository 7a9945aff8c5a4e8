// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A moment of a loop that waits for another core: leaves the pipeline to that of its own.
#pragma once

namespace ib::os {

inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb");  // `yield` does nothing on most of these processors
#endif
}

}  // namespace ib::os
