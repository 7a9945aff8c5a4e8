// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rsockets of the distribution's librdmacm, loaded when the first connection needs them: most
// processes of a program never open one.
//
// Their state belongs to the process that loaded them. A child of fork() gets plain TCP.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>

namespace ib::host_abi::sockets {

struct Rdma {
  int (*socket)(int, int, int);
  int (*bind)(int, const sockaddr*, socklen_t);
  int (*listen)(int, int);
  int (*accept)(int, sockaddr*, socklen_t*);
  int (*connect)(int, const sockaddr*, socklen_t);
  int (*shutdown)(int, int);
  int (*close)(int);
  ssize_t (*recv)(int, void*, std::size_t, int);
  ssize_t (*send)(int, const void*, std::size_t, int);
  int (*poll)(pollfd*, nfds_t, int);
  int (*getpeername)(int, sockaddr*, socklen_t*);
  int (*getsockname)(int, sockaddr*, socklen_t*);
  int (*setsockopt)(int, int, int, const void*, socklen_t);
  int (*getsockopt)(int, int, int, void*, socklen_t*);
  int (*fcntl)(int, int, ...);
};

// Loads them if necessary. Returns nullptr if this process must do without: SOFTIB_SOCKETS is not
// set, there is no librdmacm, or a parent has used it.
const Rdma* rdma();
// As rdma(), but loads nothing.
const Rdma* loaded_rdma();

// Counts fork(): differs between a parent and its child.
std::uint32_t generation();
// The process has called vfork() and is the child, which shares the parent's memory.
bool in_vfork_child();

// One line on standard error, once for each `said`.
void say_once(bool& said, const char* text);

}  // namespace ib::host_abi::sockets
