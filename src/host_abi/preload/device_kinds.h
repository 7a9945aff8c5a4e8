// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kinds of device files, as a table: the function that opens one, and the calls on its
// descriptor that are answered here. It has the part of the kernel's file_operations. A new kind is
// an entry in device_kinds.cpp and a file of its own; softibd has the list of the files of a kind.
//
// The descriptor is one of the kernel's, of an object that is chosen so that these calls are right
// without help: poll(), select() and epoll report what they would report about the device; dup()
// and fork() make one more descriptor of the same open file, and the last close() ends it. State of
// an open file therefore belongs at the other end of a socket, not in this process. A program
// started by exec() inherits the bare object, and none of its calls is answered here.
#pragma once

#include "host_abi/preload/path.h"
#include "verbs/control.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// May run in signal handlers and after fork(): no locks, no memory from malloc(). Calls without a
// function (nullptr) go to the kernel; so do mmap() and all calls that have no member here.
struct DeviceKind {
  // The file /dev/infiniband/NAME, or NAME0, NAME1, ... It is nullptr if there is no file because
  // another kind makes the descriptors.
  const char* name = nullptr;
  bool numbered = false;
  std::uint32_t mode = 0;
  // The result of fstat(); stat() gets the same from softibd.
  struct Number {
    std::uint32_t major;
    std::uint32_t minor;
  };
  Number (*number)(unsigned unit) = nullptr;
  // The bits of a number in the descriptor table that are the unit.
  unsigned unit_mask = ~0u;
  // It has no position: lseek(), pread() and pwrite() fail with ESPIPE.
  bool is_stream = false;
  // Returns a new descriptor, or -1 with errno. open() sets its number and close-on-exec. May
  // change `unit` to another number (below 2^28) that the table shall have of it.
  int (*open)(unsigned& unit, int flags) = nullptr;

  // Returns false if a descriptor with these properties cannot be one of this kind: its number may
  // have been closed without this library. It is nullptr for a kind to which that does not happen.
  bool (*is_object)(const struct ::statx& now) = nullptr;
  ssize_t (*read)(int fd, void* data, std::size_t size) = nullptr;
  ssize_t (*write)(int fd, const void* data, std::size_t size) = nullptr;
  // Comes before write(), and before is_object(). Returns false, or has done what write() does:
  // then the data were not meant for another file.
  bool (*write_ahead)(int fd, const void* data, std::size_t size, ssize_t& result) = nullptr;
  // Returns false if the request is not of this kind; the kernel executes FIONBIO and the like, or
  // returns ENOTTY.
  bool (*ioctl)(int fd, unsigned long request, void* argument, int& result) = nullptr;
  // The number is about to become free. Not called by dup(), exec() and the end of the process.
  void (*closed)(int fd) = nullptr;
};

namespace devices {

inline constexpr std::size_t kMost = 13;  // an entry of the descriptor table has room for so many

// Returns nullptr if no kind has such a file. A file that is not numbered is unit 0.
const DeviceKind* find(const Path& path, unsigned& unit);

// Describes it as a file, by its number in the descriptor table: the result of fstat(), and its
// inode.
verbs::control::ViewStatOut describe(const DeviceKind& kind, unsigned number);
std::uint32_t inode_of(const DeviceKind& kind, unsigned number);

// The place in the table; at() returns nullptr for a place without an entry.
std::size_t index_of(const DeviceKind& kind);
const DeviceKind* at(std::size_t index);

}  // namespace devices

// NOLINTBEGIN(bugprone-dynamic-static-initializers): constinit means that they are not
extern constinit const DeviceKind kUverbs;             // device_uverbs.cpp
extern constinit const DeviceKind kCompletionChannel;  // device_uverbs.cpp
extern constinit const DeviceKind kRdmaCm;             // device_rdma_cm.cpp
extern constinit const DeviceKind kUmad;               // device_umad.cpp
extern constinit const DeviceKind kIssm;               // device_umad.cpp
// NOLINTEND(bugprone-dynamic-static-initializers)

}  // namespace ib::host_abi::preload
