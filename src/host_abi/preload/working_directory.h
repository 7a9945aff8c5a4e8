// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A working directory below one of ours (`cd /sys/class/infiniband`). The kernel does not have that
// directory, so the process stands in the nearest real one above it (/sys/class, /dev), and this
// remembers the rest.
//
// Threads: one word of version before and after a change, so that a reader never takes half a path.
#pragma once

#include "host_abi/preload/path.h"

namespace ib::host_abi::preload::working_directory {

// Whether the process stands in one of our directories. Cheap.
bool is_ours();

// False: it stands in a real one, which the kernel knows.
bool get(Path& out);

// `path` is one of our directories. False and errno: the real directory above it cannot be entered.
bool enter(const Path& path);

// The process has entered a real directory.
void leave();

// At the start of a program: `pwd` is PWD, which shells keep, and which says what the parent had
// entered. Nothing happens if it does not fit the directory that the kernel says.
void inherit(const char* pwd);

}  // namespace ib::host_abi::preload::working_directory
