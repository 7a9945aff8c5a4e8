// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// State of this process that a child of a fork finds empty: the child may have the same number as
// its parent, in another namespace. A vfork() child has its parent's.
#pragma once

#include "host_abi/preload/system_calls.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace ib::host_abi::preload {

// The T of this process, in pages of its own; zeros are a T as it was made. Returns nullptr if
// there is no memory for it, or the kernel does not wipe it.
template <class T>
T* of_this_process() {
  static std::atomic<T*> the_one{nullptr};
  T* found = the_one.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  void* const at =
      sys::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (sys::madvise(at, sizeof(T), MADV_WIPEONFORK) != 0) {
    sys::munmap(at, sizeof(T));
    return nullptr;
  }
  auto* const made = new (at) T;
  if (the_one.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
  sys::munmap(at, sizeof(T));
  return found;
}

}  // namespace ib::host_abi::preload
