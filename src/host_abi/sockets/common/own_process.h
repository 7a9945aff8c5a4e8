// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process that a socket switch is in: its forks, and the settings that it was started with.
#pragma once

#include <csignal>
#include <cstdint>

namespace ib::host_abi::sockets {

// Counts fork(): differs between a parent and its child.
std::uint32_t generation();
// The process has called vfork() and is the child, which shares the parent's memory.
bool in_vfork_child();

// The library's own: called in the child of a fork(), whose only thread is in it. No lock of the
// parent is ever released there.
void begin_as_child();

// Some programs (nginx) clear their environment before the first connection: sets what softib has
// set again, unless the program has.
void restore_variables();

// No signal of the program's is handled while one exists: for calls after which a library has a
// thread more, so that this one takes no signals either.
class WithoutSignals {
 public:
  WithoutSignals();
  ~WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

// This thread is not cancelled while one exists. For what does not wait.
class WithoutCancel {
 public:
  WithoutCancel();
  ~WithoutCancel();
  WithoutCancel(const WithoutCancel&) = delete;
  WithoutCancel& operator=(const WithoutCancel&) = delete;

 private:
  int before_ = 0;
};

// One line on standard error, once for each `said`.
void say_once(bool& said, const char* text);

}  // namespace ib::host_abi::sockets
