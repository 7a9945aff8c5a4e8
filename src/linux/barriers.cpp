// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/barriers.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <new>

namespace ib::os {

namespace {

bool membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

// If the kernel refuses later (a seccomp filter), a pause does it as well: a store leaves its core,
// and a load is complete, within far less. The kernel's own barrier is full on return; the fence
// after the pause makes this one so.
void barrier(int command) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier(command)) return;
  const timespec moment{0, 10'000'000};
  ::syscall(SYS_nanosleep, &moment, nullptr);  // by number: no cancellation point
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

bool LinuxBarriers::join() {
  if (joined()) return true;
  const bool both = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                    membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  if (both) joined_.store(true, std::memory_order_release);
  return both;
}

void LinuxBarriers::threads() {
  barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void LinuxBarriers::processes() {
  if (joined()) return barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

LinuxBarriers& barriers() {
  alignas(LinuxBarriers) static char room[sizeof(LinuxBarriers)];
  static auto* one = new (room) LinuxBarriers;
  return *one;
}

}  // namespace ib::os
