// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls of streams/ and user/ stand in the scope of an Inside. Signals of the program wait
// meanwhile (handlers.h), since a handler that writes to the same stream would wait for a lock that
// its own thread has, and one that jumps away would leave it locked. Functions of libc that these
// layers call are the kernel's, not the switch's. errno is the program's: a call of the kernel's
// that succeeds leaves it alone, and so do these.
#pragma once

#include <cstdint>

namespace ib::host_abi::stream_switch {

class Inside {
 public:
  // ComeBack: a system call in the section may be interrupted by one. For sections that do not
  // wait in the kernel.
  enum class Signals : std::uint8_t { ComeBack, AreBlocked };
  explicit Inside(Signals signals = Signals::ComeBack);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // The calling thread is.
  static bool is() { return depth_ > 0; }

 private:
  static constinit thread_local int depth_;
  std::uint64_t before_ = 0;
  int error_;
  int cancel_type_ = 0;
  bool is_blocking_ = false;
};

}  // namespace ib::host_abi::stream_switch
