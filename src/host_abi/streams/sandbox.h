// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Processes that give up rights while they hold connections, as sshd's do: another user, another
// root, a filter for system calls (seccomp). Streams get all that they need of the system before: a
// place at softibd, device memory, their ends.
//
// Under a filter a process has the calls of one that reads and writes sockets, and no other may be
// tried, since that may end it.
#pragma once

#include <atomic>

namespace ib::host_abi::stream_switch {

inline constinit std::atomic<bool> sandboxed{false};

// Under a filter there are only read(), write(), poll() and what needs no descriptor.
inline bool is_in_sandbox() {
  return sandboxed.load(std::memory_order_relaxed);
}

}  // namespace ib::host_abi::stream_switch
