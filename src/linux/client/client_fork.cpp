// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_fork.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace ib::os {
namespace {

// A slot holds descriptor + 1, so that zero-initialised storage means empty and no constructor
// runs. Lock-free: the child handler runs while locks may be held by threads that do not exist
// there.
constinit std::array<std::atomic<int>, 256> slots{};
pthread_once_t once = PTHREAD_ONCE_INIT;

void in_child() {
  for (auto& slot : slots) {
    const int taken = slot.exchange(0);
    if (taken != 0) (void)::close(taken - 1);
  }
}

}  // namespace

bool close_in_children(int descriptor) {
  (void)pthread_once(&once, [] { (void)pthread_atfork(nullptr, nullptr, in_child); });
  for (auto& slot : slots) {
    int empty = 0;
    if (slot.compare_exchange_strong(empty, descriptor + 1)) return true;
  }
  return false;
}

void forget_close_in_children(int descriptor) {
  for (auto& slot : slots) {
    int expected = descriptor + 1;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

}  // namespace ib::os
