// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls of streams/ and user/ stand in the scope of an Inside. Signals of the program wait
// meanwhile, since a handler that writes to the same stream would wait for a lock that its own
// thread has. Functions of libc that these layers call are the kernel's, not the switch's. errno is
// the program's: a call of the kernel's that succeeds leaves it alone, and so do these.
#pragma once

#include <cstdint>

namespace ib::host_abi::stream_switch {

class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // The calling thread is.
  static bool is() { return depth_ > 0; }

 private:
  static constinit thread_local int depth_;
  std::uint64_t before_ = 0;
  int error_;
};

}  // namespace ib::host_abi::stream_switch
