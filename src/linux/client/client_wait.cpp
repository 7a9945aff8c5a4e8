// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_wait.h"

#include "linux/client/client_handle.h"
#include "linux/client/client_signals.h"
#include "platform/level.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace ib::os {
namespace {

using platform::NativeHandle;

// Rounds of relax_thread: first the other core is about to finish, then it may need this core.
constexpr std::uint32_t kPauseRounds = platform::ClientHost::kYieldRound;
constexpr std::uint32_t kYieldRounds = 4096;

timespec to_timespec(Duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
  timespec t{};
  t.tv_sec = static_cast<time_t>(seconds.count());
  t.tv_nsec = static_cast<long>((d - seconds).count());
  return t;
}

void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb");
#endif
}

}  // namespace

Instant monotonic_now() {
  timespec t{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &t);
  return Instant(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
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

void relax_thread(std::uint32_t round) {
  if (round < kPauseRounds) {
    cpu_pause();
  } else if (round < kYieldRounds) {
    (void)::sched_yield();
  } else {
    // A thread of real-time priority that only yields would never let a normal one run.
    const timespec moment{0, 50'000};
    (void)::nanosleep(&moment, nullptr);
  }
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
    if (::write(write_end, bytes.data(), bytes.size()) >= 0) return Status::Ok;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Status::InsufficientResources;
    if (errno != EPIPE) return Status::IoError;
    guard.discard();
    return Status::Disconnected;
  }
}

}  // namespace ib::os
