// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queries to softibd about the files of this host. Each query is a connection of its own: no state
// to share between threads, to guard in signal handlers or to repair after a fork.
#pragma once

#include "host_abi/preload/path.h"
#include "verbs/control.h"

#include <sys/stat.h>

#include <array>

namespace ib::host_abi::preload::remote {

enum class Reply {
  Ok,
  Absent,        // softibd has no such file
  Unreadable,    // the file is there, a read of it fails: EINVAL
  NoDescriptor,  // the query needs a socket, and the process may open no more: EMFILE
  Unreachable,   // not a virtual host, or its softibd has gone: act like libc alone
};

// Reads SOFTIB_SOCKET and SOFTIB_NODE as they are at the start of the process. The constructor of
// the library calls it, or an earlier query by the constructor of another library.
void read_environment(char** environment);

Reply stat(const Path& path, verbs::control::ViewStatOut& out);

// A regular file: the caller owns `fd`, which is at its start and close-on-exec. Else `fd` is -1.
Reply open(const Path& path, verbs::control::ViewStatOut& out, int& fd);

// `fd` holds the names, one per line.
Reply list(const Path& path, int& fd);

// A connection to softibd with a limit for the time of each call; the caller closes it. -1: `why`
// says why (NoDescriptor, Unreachable).
int connect(Reply& why);
// Opens a mailbox of this connection (linux/mailbox.h); the caller owns `file`, which is -1 unless
// the result is Ok. Disconnected: no answer.
Status open_mailbox(int socket, int& file);
// The name of this host, NUL terminated.
void copy_node(std::array<char, 64>& node);

// That which `softib run` hands to the program, if it is there (docs/cli.md): from now on no call
// of the program's closes it.
void protect_connection_of_run();

// Returns true in a virtual host whose softibd accepts connections.
bool reachable();

// A word that no other softibd of the machine has, of whatever user or container. 0: none runs.
std::uint64_t fabric_word();

// The time at which softibd made its socket, which all files have. {0, 0} if there is none.
statx_timestamp start_time();

}  // namespace ib::host_abi::preload::remote
