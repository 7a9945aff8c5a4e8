// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Questions to softibd about the files of this host. Each question is a connection of its own: no
// state to share between threads, to guard in signal handlers or to repair after a fork.
#pragma once

#include "host_abi/preload/path.h"
#include "verbs/control.h"

#include <sys/stat.h>

namespace ib::host_abi::preload::remote {

enum class Reply {
  Ok,
  Absent,        // softibd says: there is no such file
  NoDescriptor,  // the question needs a socket, and the process may open no more: EMFILE
  Unreachable,   // not a virtual host, or its softibd is gone: behave as if we were not here
};

// SOFTIB_SOCKET and SOFTIB_NODE as they were at the start of the process. The constructor of the
// library calls it; whoever asks earlier (constructors of other libraries) makes it happen earlier.
void read_environment(char** environment);

Reply stat(const Path& path, verbs::control::ViewStatOut& out);

// Of a regular file: `fd`, at its start, close-on-exec, is the caller's. Else `fd` is -1.
Reply open(const Path& path, verbs::control::ViewStatOut& out, int& fd);

// `fd` holds the names, one per line.
Reply list(const Path& path, int& fd);

// Is this a virtual host with a softibd that accepts connections?
bool reachable();

// When softibd made its socket: the time stamp of all files. {0, 0} if there is none.
statx_timestamp start_time();

}  // namespace ib::host_abi::preload::remote
