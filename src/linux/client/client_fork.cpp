// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_fork.h"

#include "linux/descriptor_table.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace ib::os {
namespace {

// `taken` is descriptor + 1, so that zero-initialised storage means empty and no constructor runs.
// Lock-free: the child handler runs while locks may be held by threads that do not exist there.
struct Slot {
  static constexpr int kClaimed = -1;
  std::atomic<int> taken{0};
  std::atomic<std::uint64_t> file{0};  // the program may have another one at the number by then
};
constinit std::array<Slot, 256> slots{};
pthread_once_t once = PTHREAD_ONCE_INIT;

void in_child() {
  for (Slot& slot : slots) {
    const int taken = slot.taken.exchange(0);
    if (taken > 0 && file_word(taken - 1) == slot.file.load()) (void)::close(taken - 1);
  }
}

}  // namespace

bool close_in_children(int descriptor) {
  (void)pthread_once(&once, [] { (void)pthread_atfork(nullptr, nullptr, in_child); });
  for (Slot& slot : slots) {
    int empty = 0;
    if (!slot.taken.compare_exchange_strong(empty, Slot::kClaimed)) continue;
    slot.file.store(file_word(descriptor));
    slot.taken.store(descriptor + 1);
    return true;
  }
  return false;
}

void forget_close_in_children(int descriptor) {
  for (Slot& slot : slots) {
    int expected = descriptor + 1;
    if (slot.taken.compare_exchange_strong(expected, 0)) return;
  }
}

}  // namespace ib::os
