// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// System calls made directly. Two reasons, both about moving pages under a running program:
// communication libraries patch libc's mmap, munmap, mremap and madvise to detect that registered
// memory goes away, and would mistake our moves for that; and while pages are away not even errno
// may be touched, as it might lie in one of them.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cerrno>
#endif

namespace ib::os {

// The result, or -errno.
// NOLINTNEXTLINE(readability-function-size): the kernel takes six arguments and a number
inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ __volatile__("syscall"
                       : "+a"(result)
                       : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                       : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ __volatile__("svc 0"
                       : "+r"(x0)
                       : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                       : "memory");
  return x0;
#else
  const long result = ::syscall(number, a, b, c, d, e, f);
  return result < 0 ? -errno : result;
#endif
}

// mmap() without a file, so without an offset, whose unit is what the two calls differ by.
#if defined(SYS_mmap2)
inline constexpr long kMapAnonymous = SYS_mmap2;
#else
inline constexpr long kMapAnonymous = SYS_mmap;
#endif

inline bool is_error(long result) {
  return result < 0 && result > -4096;
}

inline long to_long(std::uint64_t value) {
  return static_cast<long>(value);
}
inline long to_long(const void* pointer) {
  return reinterpret_cast<long>(pointer);
}

}  // namespace ib::os
