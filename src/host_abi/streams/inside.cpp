// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/inside.h"

#include "host_abi/streams/handlers.h"
#include "host_abi/streams/sandbox.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace ib::host_abi::stream_switch {

constinit thread_local int Inside::depth_ = 0;

// A handler finds the depth 0, or waits: otherwise its calls would be taken for ours. A thread that
// lets itself be cancelled anywhere is not cancelled inside.
Inside::Inside(Signals signals) : error_(errno) {
  if (depth_ == 0) {
    ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type_);
    is_blocking_ = signals == Signals::AreBlocked || is_in_sandbox() || !do_handlers_wait();
  } else {
    is_blocking_ = signals == Signals::AreBlocked;
  }
  if (is_blocking_) set_signal_mask(kWaitingSignals, &before_);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ++depth_;
}

Inside::~Inside() {
  --depth_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (is_blocking_) set_signal_mask(before_, nullptr);
  if (depth_ == 0) {
    take_waiting_signals();
    if (cancel_type_ == PTHREAD_CANCEL_ASYNCHRONOUS) {
      ::pthread_setcanceltype(cancel_type_, nullptr);
    }
  }
  errno = error_;
}

}  // namespace ib::host_abi::stream_switch
