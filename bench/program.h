// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The common part of this folder's verbs programs: they end with a line about the failure, measure
// in microseconds, and stop after each phase so that memory can be measured.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ib::bench {

// Without what exit() would do, since it may be a forked process.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what.c_str(),
               std::strerror(errno));
  std::_Exit(1);
}
inline void require(bool good, const char* what) {
  if (!good) fail(what);
}
template <class T>
T* made(T* object, const char* what) {
  require(object != nullptr, what);
  return object;
}

inline double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Prints a line of JSON and waits for a line on stdin. `figures`: ", \"name\": value ...".
inline void phase(const char* name, const std::string& figures = {}) {
  std::printf("{\"phase\": \"%s\"%s}\n", name, figures.c_str());
  std::fflush(stdout);
  require(std::getchar() != EOF, "nobody says that it should go on");
}

}  // namespace ib::bench
