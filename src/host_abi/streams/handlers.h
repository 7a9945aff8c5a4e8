// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Signal handlers of the program wait while their thread is inside (inside.h). To block signals
// takes two system calls each time, which is more than a read or a write takes otherwise. So the
// handler that is installed at the kernel is one of the switch's: it calls the program's, or,
// inside, blocks all signals, gives its own back to the kernel and returns; at the end of the
// section they are unblocked. The program's handler then runs with all that the signal came with.
//
// A handler that was installed past libc's functions does not wait. So now and then the kernel's
// handlers are looked at; if one is not the switch's, signals are blocked from then on. So they are
// in a program with a handler for a real-time signal.
//
// Thread rule: any thread, and signal handlers.
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>

namespace ib::host_abi::stream_switch {

// All but those that a fault of the thread raises.
inline constexpr std::uint64_t kWaitingSignals = [] {
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT}) {
    mask &= ~(std::uint64_t{1} << (fault - 1));
  }
  return mask;
}();
void set_signal_mask(std::uint64_t mask, std::uint64_t* before);

// From now on handlers are replaced as they are installed. Before the program has installed any.
void begin_to_replace_handlers();
// Whether each handler of the program waits. Looks at them at the first call, and each
// `kCallsBetweenLooks` calls of a thread.
inline constexpr std::uint32_t kCallsBetweenLooks = 4096;
bool do_handlers_wait();
// The thread has left its section, and takes the signals that came meanwhile.
void take_waiting_signals();

// Counts handlers that have run in this thread, if they wait: a call that looks for a while before
// it sleeps has to see that one has come meanwhile.
std::uint32_t handlers_run();

// sigaction() with the program's handlers.
int replace_action(int signal, const struct sigaction* wanted, struct sigaction* before);

}  // namespace ib::host_abi::stream_switch
