// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// epoll sets that contain sockets of the switch. The set of the kernel stays and has all other
// descriptors, and of listeners the part that takes plain TCP; beside it stand the items below.
#pragma once

#include "host_abi/sockets/common/file_identity.h"
#include "host_abi/sockets/table.h"

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ib::host_abi::sockets {

struct Item {
  int fd = -1;
  std::uint64_t file = 0;  // its file when it was added
  epoll_event event{};
  bool in_kernel = false;
  bool disabled = false;       // EPOLLONESHOT has fired
  std::uint32_t reported = 0;  // EPOLLET: not to be reported again
  std::uint32_t reads = 0;     // of Socket, when it was
  std::uint32_t full_writes = 0;
};

struct Epoll {
  int fd = -1;
  // An eventfd that is a member of the kernel's set, for no events: all sets of the kernel have one
  // inode, so this tells which it is.
  OwnDescriptor mark;
  std::mutex mutex;
  std::vector<Item> items;
  std::size_t sleeping = 0;  // threads that have listed the items, or more: some never come back
  std::size_t next = 0;      // where the next report starts, so that none starves
};

using Handle = std::shared_ptr<Epoll>;

// Returns false if no set has been made at `fd`, at the price of a load.
bool may_be_set(int fd);
// The set at `fd`. One that the program has closed without libc is forgotten.
Handle find_set(int fd);
// As find_set(), and makes one if there is none. Returns nothing if the kernel has no room.
Handle make_set(int fd);
// `fd`, with this file, has become a member of a set.
void note_member(int fd, std::uint64_t file);

// `fd` is about to be closed: as an epoll set, and as a member of one. Not if it is another file by
// now: then the number is librdmacm's, which closes it while a lock of a set may be held.
void forget_in_epolls(int fd);
void forget_closed_sets();
void release_epoll_locks_of_parent();

}  // namespace ib::host_abi::sockets
