// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IB_ASSERT checks an invariant of our own code; it stays on in release builds. It must never
// depend on bytes from a peer: those are checked and reported as Malformed.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace ib {
[[noreturn]] inline void assert_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
  std::abort();
}
}  // namespace ib

#define IB_ASSERT(condition) \
  ((condition) ? void(0) : ::ib::assert_failed(#condition, __FILE__, __LINE__))
