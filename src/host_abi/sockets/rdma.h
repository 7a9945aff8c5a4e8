// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rsockets of the distribution's librdmacm, loaded when the first connection needs them: most
// processes of a program never open one.
//
// Their state belongs to the process that loaded them. A child of fork() gets plain TCP.
#pragma once

#include "host_abi/sockets/common/own_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::sockets {

// The beginning of librdmacm's.
struct CmEvent {
  void* id;
  void* listener;
  int kind;
};
struct CmChannel {
  int fd;
};

struct Rdma {
  int (*socket)(int, int, int);
  int (*bind)(int, const sockaddr*, socklen_t);
  int (*listen)(int, int);
  int (*accept)(int, sockaddr*, socklen_t*);  // for accept_rsocket()
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
  int (*get_cm_event)(CmChannel*, CmEvent**);
  int (*ack_cm_event)(CmEvent*);
};

// Loads them if necessary. Returns nullptr if this process must do without: SOFTIB_SOCKETS is not
// set, there is no librdmacm, or a parent has used it.
const Rdma* rdma();
// As rdma(), but loads nothing.
const Rdma* loaded_rdma();

// As raccept() without an address, but keeps the new rsocket from librdmacm's own thread for
// connections. That thread makes the end of a peer that was killed look like the end of its stream,
// and up to rdma-core 53 it uses freed memory as soon as a process has accepted four connections.
int accept_rsocket(const Rdma& api, int listener);
// write() by accept_rsocket(): raccept() hands the rsocket to that thread with it. Returns whether
// it is one, and has been done.
bool is_handover(int fd, const void* message, std::size_t length, ssize_t& result);
// For the same reason a process has this many rsockets that listen, no more.
inline constexpr int kMostListeners = 3;

// Takes the next event that the connection manager has for a connection. Returns whether there was
// one that ends it, or softibd is gone. Its address at another port is no end.
bool take_event_of_end(const Rdma& api, int rs);
// Closes a connection without a goodbye, so that its peer gets an error, and without a wait for a
// peer that is gone. librdmacm gives a connection up when it cannot read the events of its
// completion queue.
void abort_rsocket(const Rdma& api, int rs);
// poll() and read() by abort_rsocket(): return whether it is one, with its result.
bool is_poll_of_abort(pollfd* entries, int& result);
bool is_read_of_abort(const void* caller);

// Calls of rsockets stand in its scope. A signal handler that ends the process, or leaves with
// longjmp(), may leave them with their locks held: then rsockets are not called at the end.
class Inside {
 public:
  Inside() { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static constinit thread_local int depth;
};

// A call from `address` is one of librdmacm's.
bool is_in_librdmacm(const void* address);

}  // namespace ib::host_abi::sockets
