// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How TCP sockets become streams: the kernel connects and accepts, then the number of the TCP
// socket gets the link instead, if softibd has made a stream of the connection.
#pragma once

#include "host_abi/streams/table.h"

#include <sys/socket.h>

namespace ib::host_abi::stream_switch {

// `fd` listens, or is about to. Returns false if it is known already, or without a port.
bool listens(int fd);
// A listener that the program was started with.
void take_if_listener(int fd);
// Tells softibd of the listeners of a parent, which may have ended. Before a wait.
void tell_of_listeners();
void begin_listeners_as_child();

// As connect(). Returns false if this is a matter for the kernel alone.
bool connects(int fd, const sockaddr* address, socklen_t length, int& result);
// `fd` was accepted with these flags. `room`: of the program for the address.
void accepted(int fd, int flags, sockaddr* address, socklen_t* length, socklen_t room);

// Before close(), or what replaces `fd`.
void about_to_close(int fd);

int name_of(streams::End& end, const Socket& stream, bool peer, sockaddr* address,
            socklen_t* length);

}  // namespace ib::host_abi::stream_switch
