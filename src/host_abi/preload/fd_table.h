// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What we know of the descriptors that we handed out. Lock-free: one word per descriptor.
//
// A descriptor can be closed behind our back (fclose(), a direct system call), and its number then
// means something else. So an entry is a hint: whoever acts on it checks the object first.
#pragma once

#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/hooks.h"

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload::fds {

enum class Kind : std::uint8_t {
  None = 0,
  File = 1,       // memfd with a text
  Directory = 2,  // memfd with our magic, the path and the names (view.h)
  Device = 3,     // device_kinds.h
};

struct Entry {
  Kind kind = Kind::None;
  std::uint32_t number = 0;            // below 2^28. File, Directory: inode; Device: unit
  const DeviceKind* device = nullptr;  // Device only
};

inline constexpr int kLimit = 1 << 16;

// Before a process keeps anything here: from then on it must know whether it is itself.
void watch_forks();
// A vfork() child works in its parent's memory: what it closes or enters, the parent has not. After
// watch_forks().
bool is_borrowed_memory();

// False: the number is too big for the table. The caller closes it and reports EMFILE.
bool mark(int fd, Entry entry);
Entry find(int fd);
// Of an open device; nullptr if `fd` is none, or is not any more.
const DeviceKind* device(int fd);

// close() and its relatives call these before the number gets free.
void forget(int fd);
void forget_range(unsigned first, unsigned last);
// dup(), F_DUPFD: `copy` is the same object as `original`.
void copy(int original, int duplicate);

// The provider's hooks; a missing hook is nullptr.
int set_hooks(const softib_preload_hooks* hooks);
softib_preload_hooks hooks();
// Tells the provider of splices that came before it (memory_calls.cpp).
void report_splices();

}  // namespace ib::host_abi::preload::fds
