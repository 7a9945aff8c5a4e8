// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/process/client_wait.h"

#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"
#include "platform/level.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

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

}  // namespace

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
  SigpipeGuard guard;
  for (;;) {
    // By number: posting has no cancellation point.
    if (::syscall(SYS_write, write_end, bytes.data(), bytes.size()) >= 0) return Status::Ok;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Status::InsufficientResources;
    if (errno != EPIPE) return Status::IoError;
    guard.discard();
    return Status::Disconnected;
  }
}

bool pipe_holds_bytes(int pipe_end) {
  int bytes = 0;
  return ::syscall(SYS_ioctl, pipe_end, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace ib::os
