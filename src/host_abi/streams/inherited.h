// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Links that come to this process: through exec(), or from another process by SCM_RIGHTS. Their
// ends are opened at the first use.
#pragma once

#include <sys/socket.h>

namespace ib::host_abi::stream_switch {

// At the start of the program: links, and listeners.
void take_inherited();
// `fd` becomes an entry of the table if it is a link.
void take_if_link(int fd);
// Of a message that was received.
void take_links_from(const msghdr& message);
// A message is about to be sent: streams in it have another process, too, from now on.
void note_links_in(const msghdr& message);

}  // namespace ib::host_abi::stream_switch
