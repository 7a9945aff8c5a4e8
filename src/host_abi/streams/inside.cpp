// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/inside.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace ib::host_abi::stream_switch {
namespace {

constexpr std::uint64_t bit(int signal) {
  return std::uint64_t{1} << (signal - 1);
}

// All but those that a fault of the thread raises. Also the two that libc keeps for itself: a
// thread is not cancelled inside.
constexpr std::uint64_t kWaiting =
    ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGFPE) | bit(SIGTRAP) | bit(SIGABRT));

void set_mask(std::uint64_t mask, std::uint64_t* before) {
  ::syscall(SYS_rt_sigprocmask, long{SIG_SETMASK}, &mask, before, sizeof mask);
}

}  // namespace

constinit thread_local int Inside::depth_ = 0;

// A handler finds the depth 0, or does not run: otherwise its calls would be taken for ours.
Inside::Inside() : error_(errno) {
  if (depth_ == 0) set_mask(kWaiting, &before_);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ++depth_;
}

Inside::~Inside() {
  --depth_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (depth_ == 0) set_mask(before_, nullptr);
  errno = error_;
}

}  // namespace ib::host_abi::stream_switch
