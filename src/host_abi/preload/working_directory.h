// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A working directory below one of ours (`cd /sys/class/infiniband`). The kernel does not have that
// directory, so the process's real one is the nearest above it (/sys/class, /dev), and this file
// keeps the rest.
//
// Threads: a version word changes before and after each change, so a reader never gets half a path.
#pragma once

#include "host_abi/preload/path.h"

namespace ib::host_abi::preload::working_directory {

// Returns whether the working directory is one of ours. Cheap.
bool is_ours();

// Returns false if it is a real one, which the kernel has.
bool get(Path& out);

// `path` is one of our directories. Returns false with errno if the real directory above it cannot
// be entered.
bool enter(const Path& path);

// The process has entered a real directory.
void leave();

// At the start of a program: `pwd` is the directory of the variable PWD, in which shells keep the
// one that the parent had entered, without links. Has no effect if it does not fit the kernel's
// working directory.
void inherit(const Path& pwd);

}  // namespace ib::host_abi::preload::working_directory
