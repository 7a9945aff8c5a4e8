// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For tests with seeds: the command that repeats the running test, printed also when an assertion,
// a sanitizer or a watchdog ends the program.
#pragma once

#include "base/sanitizer.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#if IB_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#define IB_SANITIZED 1
#else
#define IB_SANITIZED IB_THREAD_SANITIZER
#endif
#if IB_THREAD_SANITIZER
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace ib::drivers::test {

inline std::array<char, 512> repeat_command;

inline void set_repeat_command(unsigned seed, const char* filter) {
  static const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::snprintf(repeat_command.data(), repeat_command.size(),
                "repeat with: SOFTIB_FIRST_SEED=%u SOFTIB_SEEDS=1 %s --gtest_filter='%s'\n", seed,
                program.c_str(), filter);
}

inline void print_command() {
  std::fputs(repeat_command.data(), stderr);
}
inline void print_command_and_die(int signal) {
  print_command();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}
// SCOPED_TRACE prints nothing in that case.
inline void print_command_at_death() {
  for (const int signal : {SIGABRT, SIGALRM}) std::signal(signal, &print_command_and_die);
#if IB_SANITIZED
  __sanitizer_set_death_callback(&print_command);
#else
  std::signal(SIGSEGV, &print_command_and_die);
#endif
}

// One check takes longer than a seed.
inline void look_for_leaks([[maybe_unused]] unsigned from, [[maybe_unused]] unsigned to) {
#if IB_ADDRESS_SANITIZER
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0) << "in a seed from " << from << " to " << to;
#endif
}

inline unsigned number_from(const char* variable, unsigned otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

}  // namespace ib::drivers::test
