// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptors that softib has for itself in a program: calls of the program's that close
// descriptors pass over them (fd_calls.cpp). A child of fork() may close its copies; a system call
// that does not go through libc closes them all the same, which their users find out.
#pragma once

namespace ib::host_abi::preload::own {

// From now on, in this process.
void protect(int fd);
// Before it is closed.
void unprotect(int fd);
// That by which `softib run` makes the fabric stay while a program runs: also in all its children.
void protect_in_children(int fd);

bool is_protected(int fd);
// Closes the others from `first` to `last`, like close_range(). Returns -1 with errno on failure.
int close_others(unsigned first, unsigned last, int flags);

}  // namespace ib::host_abi::preload::own
