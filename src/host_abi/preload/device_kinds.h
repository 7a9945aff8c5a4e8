// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kinds of device files, as a table: what opening one makes, and which calls on the descriptor
// are answered here. It is to this library what file_operations is to the kernel. A new kind is an
// entry in device_kinds.cpp and a file of its own; softibd says which files of a kind there are.
//
// The descriptor is one of the kernel's. So these need no help, and must be right by the choice of
// the object: poll(), select() and epoll say about it what they would say about the device; dup()
// and fork() give one more descriptor of the same open file, and the last close() is the end of it.
// What an open file has to remember is therefore best at the other end of a socket, not in this
// process. A program that comes by exec() has the bare object, and nothing of ours answers for it.
#pragma once

#include "host_abi/preload/path.h"
#include "verbs/control.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// May run in signal handlers and after fork(): no locks, no memory from malloc(). Calls that a kind
// does not answer (nullptr) go to the kernel; so do mmap() and whatever is not named here.
struct DeviceKind {
  // The file /dev/infiniband/NAME, or NAME0, NAME1, ... nullptr: there is none, the descriptors
  // come out of another kind.
  const char* name = nullptr;
  bool numbered = false;
  std::uint32_t mode = 0;
  // What fstat() shows; stat() asks softibd, which must say the same.
  struct Number {
    std::uint32_t major;
    std::uint32_t minor;
  };
  Number (*number)(unsigned unit) = nullptr;
  // -1 and errno, or a new descriptor. Any number, close-on-exec or not: open() sees to both.
  int (*open)(unsigned unit, int flags) = nullptr;

  // Could a descriptor with these properties be one of this kind? The number may have been closed
  // behind our back. nullptr: that does not happen.
  bool (*is_object)(const struct ::statx& now) = nullptr;
  ssize_t (*read)(int fd, void* data, std::size_t size) = nullptr;
  ssize_t (*write)(int fd, const void* data, std::size_t size) = nullptr;
  // False: not a request of this kind's; the kernel knows FIONBIO and the like, and says ENOTTY.
  bool (*ioctl)(int fd, unsigned long request, void* argument, int& result) = nullptr;
  // The number is about to get free. Not told: dup(), exec() and the end of the process.
  void (*closed)(int fd) = nullptr;
};

namespace devices {

inline constexpr std::size_t kMost = 13;  // what an entry of the descriptor table has room for

// nullptr: no kind has such a file. A file that is not numbered is unit 0.
const DeviceKind* find(const Path& path, unsigned& unit);

// As a file: what fstat() shows of it, and its inode.
verbs::control::ViewStatOut describe(const DeviceKind& kind, unsigned unit);
std::uint32_t inode_of(const DeviceKind& kind, unsigned unit);

// Place in the table; nullptr: no such place.
std::size_t index_of(const DeviceKind& kind);
const DeviceKind* at(std::size_t index);

}  // namespace devices

// NOLINTBEGIN(bugprone-dynamic-static-initializers): constinit means that they are not
extern constinit const DeviceKind kUverbs;             // device_uverbs.cpp
extern constinit const DeviceKind kCompletionChannel;  // device_uverbs.cpp
// NOLINTEND(bugprone-dynamic-static-initializers)

}  // namespace ib::host_abi::preload
