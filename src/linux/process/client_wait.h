// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sleeping, waking, pipes and threads of a client; see platform/client_host.h.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "platform/client_host.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace ib::os {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout);
void futex_wake(std::atomic<std::uint32_t>& word);

Status make_pipe_pair(platform::NativeHandle& read_end, platform::NativeHandle& write_end);
// No SIGPIPE.  ! Disconnected: nobody has the other end; InsufficientResources: it is full
Status write_to_pipe(int write_end, std::span<const std::byte> bytes);
// Whether it tries the means of Linux 6.18; true until a kernel refuses it. For tests.
void allow_writes_without_signal(bool allow);
bool pipe_holds_bytes(int pipe_end);

Result<std::unique_ptr<platform::ClientHost::Thread>> start_background_thread(
    const char* name, std::function<void()> body);
// Returns how many of those run in this process.
std::uint32_t background_thread_count();

}  // namespace ib::os
