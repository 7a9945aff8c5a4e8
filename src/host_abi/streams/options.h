// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of a TCP socket at a stream. Those that also a link has are the kernel's, of the link;
// those that mean something to the stream go to its end; the others are only remembered there.
#pragma once

#include "host_abi/streams/table.h"

#include <sys/socket.h>

namespace ib::host_abi::stream_switch {

// SO_LINGER of the TCP socket `tcp`; seconds, or -1: it is off. softibd sets it at the sockets that
// it connects, so it is to be read before.
int linger_of_tcp(int tcp);
// Takes over the options of the TCP socket `tcp` to the link that gets its number.
void take_options(int tcp, int link, int linger, streams::End& end, Socket& stream);

// The kernel has the option, at the link.
bool kernel_has(int level, int name);
// As getsockopt() and setsockopt(), for all others.
int get_option(int fd, Socket& stream, streams::End& end, int level, int name, void* value,
               socklen_t* length);
int set_option(int fd, Socket& stream, streams::End& end, int level, int name, const void* value,
               socklen_t length);

// Seconds of SO_LINGER; -1: it is off.
int linger_of(streams::End& end);

}  // namespace ib::host_abi::stream_switch
