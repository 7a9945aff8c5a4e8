// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/process/kept_descriptor.h"

#include "linux/descriptor_table.h"
#include "linux/process/client_signals.h"

#include <unistd.h>

#include <atomic>

namespace ib::os {
namespace {

constinit DescriptorTable table;
constinit std::atomic<void (*)(int)> protect{nullptr};
constinit std::atomic<void (*)(int)> unprotect{nullptr};

void call(const std::atomic<void (*)(int)>& hook, int fd) {
  if (auto* const known = hook.load(std::memory_order_acquire)) known(fd);
}

void close_kept(int fd) {
  const CancelGuard no_cancel;
  const bool replaced = is_replaced(fd);
  table.remove(fd);
  call(unprotect, fd);
  if (!replaced) (void)::close(fd);
}

}  // namespace

void set_descriptor_guard(DescriptorGuard guard) {
  protect.store(guard.protect, std::memory_order_release);
  unprotect.store(guard.unprotect, std::memory_order_release);
}

platform::NativeHandle keep_descriptor(platform::NativeHandle handle) {
  if (!handle.valid()) return handle;
  const int high = duplicate_high(handle.get());
  const int fd = high >= 0 ? high : handle.release();
  handle.reset();
  table.add(fd);
  call(protect, fd);
  return {fd, close_kept};
}

bool is_replaced(int fd) {
  return table.knows(fd) && !table.has(fd);
}

}  // namespace ib::os
