// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/process/client_wait.h"

#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"
#include "platform/level.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace ib::os {
namespace {

using platform::NativeHandle;

timespec to_timespec(Duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
  timespec t{};
  t.tv_sec = static_cast<time_t>(seconds.count());
  t.tv_nsec = static_cast<long>((d - seconds).count());
  return t;
}

// Kernels before Linux 6.18 lack RWF_NOSIGNAL, and a sandbox may forbid the call. Relaxed: a thread
// that still finds true is refused once more.
constinit std::atomic<bool> can_write_without_signal{true};

// One system call instead of the three of a SigpipeGuard. -1, as a write() has it.
long write_without_signal(int fd, std::span<const std::byte> bytes) {
  constexpr long kNoSignal = 0x100;  // RWF_NOSIGNAL
  constexpr long kNoOffset = -1;
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const long done = ::syscall(SYS_pwritev2, long{fd}, &part, 1L, kNoOffset, kNoOffset, kNoSignal);
  const bool refused = done < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM);
  if (refused) allow_writes_without_signal(false);
  return done;
}

Status result_of_write() {
  if (errno == EAGAIN) return Status::InsufficientResources;
  return errno == EPIPE ? Status::Disconnected : Status::IoError;
}

}  // namespace

void allow_writes_without_signal(bool allow) {
  can_write_without_signal.store(allow, std::memory_order_relaxed);
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) {
  static_assert(sizeof word == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  require_passive("ClientHost::wait");
  if (timeout <= Duration::zero()) return;
  const timespec relative = to_timespec(timeout);
  const timespec* limit = timeout == Duration::max() ? nullptr : &relative;
  // Not FUTEX_PRIVATE_FLAG: the waker may be another process. Every return counts as a wake.
  (void)::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, expected, limit,
                  nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  (void)::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr,
                  nullptr, 0);
}

Status make_pipe_pair(NativeHandle& read_end, NativeHandle& write_end) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return no_descriptor(errno);
  NativeHandle reader = own_descriptor(ends[0]);
  NativeHandle writer = own_descriptor(ends[1]);
  // Only this end: an application may make its end non-blocking or not (ibv_comp_channel.fd).
  if (::fcntl(writer.get(), F_SETFL, O_NONBLOCK) != 0) return Status::IoError;
  read_end = std::move(reader);
  write_end = std::move(writer);
  return Status::Ok;
}

Status write_to_pipe(int write_end, std::span<const std::byte> bytes) {
  // Up to PIPE_BUF bytes are written whole or not at all.
  if (bytes.size() > PIPE_BUF) return Status::InvalidParameter;
  if (bytes.empty()) return Status::Ok;
  // A pipe whose reader is gone must not kill the program, which does not expect a pipe.
  while (can_write_without_signal.load(std::memory_order_relaxed)) {
    if (write_without_signal(write_end, bytes) >= 0) return Status::Ok;
    const bool again = errno == EINTR || !can_write_without_signal.load(std::memory_order_relaxed);
    if (!again) return result_of_write();
  }
  SigpipeGuard guard;
  for (;;) {
    // By number: posting has no cancellation point.
    if (::syscall(SYS_write, write_end, bytes.data(), bytes.size()) >= 0) return Status::Ok;
    if (errno == EINTR) continue;
    const Status result = result_of_write();
    if (result == Status::Disconnected) guard.discard();
    return result;
  }
}

bool pipe_holds_bytes(int pipe_end) {
  int bytes = 0;
  return ::syscall(SYS_ioctl, pipe_end, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace ib::os
