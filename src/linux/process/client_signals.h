// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeping the program's signals and cancellation away from a piece of our code that runs on one of
// the program's threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>
#include <type_traits>

namespace ib::os {

// No signal handler of the program runs on this thread in this scope.
class SignalGuard {
 public:
  SignalGuard() {
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard() { (void)pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

 private:
  sigset_t previous_{};
};

// pthread_cancel() on this thread takes effect after this scope.
class CancelGuard {
 public:
  CancelGuard() { (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_); }
  CancelGuard(const CancelGuard&) = delete;
  CancelGuard& operator=(const CancelGuard&) = delete;
  ~CancelGuard() { (void)pthread_setcancelstate(previous_, nullptr); }

 private:
  int previous_ = PTHREAD_CANCEL_ENABLE;
};

// Runs `body`, which throws nothing; pthread_cancel() on this thread takes effect afterwards: at
// the program's next cancellation point, or as this ends if the program has chosen
// PTHREAD_CANCEL_ASYNCHRONOUS. That unwinds the stack, so the callers up to the program have
// nothing to clean up and are not noexcept.
template <class Body>
auto without_cancellation(Body&& body) {
  int previous = PTHREAD_CANCEL_ENABLE;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous);
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    (void)pthread_setcancelstate(previous, nullptr);
  } else {
    const auto result = body();
    (void)pthread_setcancelstate(previous, nullptr);
    return result;
  }
}

// Blocks SIGPIPE; discard() takes back the one that a write just raised.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    (void)sigemptyset(&pipe_);
    (void)sigaddset(&pipe_, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_, &previous_);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;
  ~SigpipeGuard() { (void)pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

  // Only if the program does not block SIGPIPE itself: then it was pending before, or stays so
  // without harm.
  void discard() const {
    if (sigismember(&previous_, SIGPIPE) == 1) return;
    const CancelGuard no_cancel;
    const timespec at_once{};
    (void)sigtimedwait(&pipe_, nullptr, &at_once);
  }

 private:
  sigset_t pipe_{};
  sigset_t previous_{};
};

}  // namespace ib::os
