// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of the descriptors that we handed out. Lock-free: one word per descriptor.
//
// A descriptor can be closed without this library (fclose(), a direct system call), and its number
// then means another file. So an entry is a hint: every user of it checks the object first.
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

// Must run before a process stores state here: from then on forks are detected.
void watch_forks();
// Returns true in a vfork() child, which runs in its parent's memory: its changes of descriptors
// and directories are not the parent's. Call watch_forks() first.
bool is_borrowed_memory();

// Returns false if the number is too big for the table. The caller closes it and reports EMFILE.
bool mark(int fd, Entry entry);
Entry find(int fd);
// Returns the kind of an open device, or nullptr if `fd` is none now. `entry` is what find() says.
const DeviceKind* device(int fd, const Entry& entry);
const DeviceKind* device(int fd);

// close() and its relatives call these before the number becomes free.
void forget(int fd);
void forget_range(unsigned first, unsigned last);
// dup(), F_DUPFD: `duplicate` is the same object as `original`.
void copy(int original, int duplicate);

// The provider's hooks; a missing hook is nullptr.
int set_hooks(const softib_preload_hooks* hooks);
softib_preload_hooks hooks();
// The program is about to splice memory into a pipe; the provider hears of it, also if it registers
// later.
void note_splice();

}  // namespace ib::host_abi::preload::fds
