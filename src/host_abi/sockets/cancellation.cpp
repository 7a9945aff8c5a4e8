// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/cancellation.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/sleepers.h"

#include <pthread.h>

#include <utility>

namespace ib::host_abi::sockets {
namespace {

constinit thread_local Uncancelled* innermost = nullptr;

}  // namespace

void Uncancelled::enter(Clean clean, void* what, Kind kind) {
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  clean_ = clean;
  what_ = what;
  kind_ = kind;
  outer_ = innermost;
  innermost = this;
  entered_ = true;
}

void Uncancelled::leave() {
  if (!entered_) return;
  entered_ = false;
  innermost = outer_;
  ::pthread_setcancelstate(before_, nullptr);
}

void Uncancelled::clean_up(void*) {
  Uncancelled* one = std::exchange(innermost, nullptr);
  for (; one != nullptr; one = one->outer_) {
    if (one->clean_ != nullptr) one->clean_(one->what_);
  }
}

void end_if_cancelled() {
  Uncancelled* call = innermost;
  while (call != nullptr && call->kind_ == Uncancelled::Kind::Part) call = call->outer_;
  if (call == nullptr || call->outer_ != nullptr) return;
  if (call->before_ != PTHREAD_CANCEL_ENABLE) return;
  pthread_cleanup_push(Uncancelled::clean_up, nullptr);
  ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  ::pthread_testcancel();
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  pthread_cleanup_pop(0);
}

extern "C" {

// The thread may be asleep in the switch, where the cancellation itself does not wake it.
int sockets_pthread_cancel(pthread_t thread) IB_STANDS_FOR("pthread_cancel");
int sockets_pthread_cancel(pthread_t thread) {
  static constinit preload::Real<int(pthread_t)> function{"pthread_cancel"};
  const int result = function(thread);
  const NotWaiting call;
  wake_sleepers();
  return result;
}

}  // extern "C"
}  // namespace ib::host_abi::sockets
