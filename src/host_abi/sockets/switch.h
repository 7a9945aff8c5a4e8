// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides what goes over RDMA, and makes connections and listeners. The functions of libc that are
// meant stand in real_calls.h.
#pragma once

#include "host_abi/sockets/table.h"

#include <poll.h>
#include <sys/socket.h>

namespace ib::host_abi::sockets {

// The switch is on for this process (SOFTIB_SOCKETS).
bool is_on();

// `fd` listens since now. Makes it part of the table if its address is in range.
void listens(int fd, int backlog);
// Listens over RDMA too, at the first wait or accept in this process: so a process that only hands
// its listener to children leaves it to them.
void listen_over_rdma(int fd, Socket& socket);
// Closes the rsocket of a socket that nobody uses any more.
void close_rsocket(Socket& socket);
// As accept4(); errno EAGAIN if nobody is waiting. Does not block.
int accept_now(int fd, Socket& socket, sockaddr* address, socklen_t* length, int flags);

// As connect(). Returns false if this is a matter for the kernel, as librdmacm's own call is: it
// connects to ibacm over TCP, with its locks held.
bool connects(int fd, const sockaddr* address, socklen_t length, const void* caller, int& result);
bool wants_rdma(int fd, const sockaddr* address, socklen_t length);

// Names of a connection, in the family of the program's socket.
int name_of(Socket& socket, bool peer, sockaddr* address, socklen_t* length);

// The events of poll() for a connection, from those of rpoll().
short translate(Socket& socket, short wanted, short reported);
// The events that rpoll() gets for those of poll().
short ask_for(short wanted);

// Waits for one connection as poll() does; SO_RCVTIMEO or SO_SNDTIMEO of `fd` limits it. Returns 0,
// or an error number (EAGAIN: the time is over).
int wait_for(int fd, Socket& socket, short events);

}  // namespace ib::host_abi::sockets
