// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/rdma_cm/event_wait.h"

#include "host_abi/preload/system_calls.h"
#include "linux/process/client_relax.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>

namespace ib::host_abi::preload {
namespace {

std::atomic<bool> waits_are_short{false};  // relaxed: a guess, for any thread

// Without its header; for the fields of a notice.
static_assert(offsetof(Notice, bytes) == sizeof(Notice::header));
constexpr std::size_t kMostBytes = sizeof(Notice::header) + sizeof(Notice::bytes);

ssize_t peek(int socket, Notice& notice) {
  iovec one{&notice, kMostBytes};
  return sys::receive_parts(socket, &one, 1, MSG_PEEK | MSG_DONTWAIT);
}

// Looks for an event while the other side of a connection is about to answer: waking up takes
// longer than most of its steps. Yields the core to it.
ssize_t poll_for_event(int socket, Instant end, Notice& notice) {
  ssize_t got = -1;
  errno = EAGAIN;
  while (got < 0 && errno == EAGAIN && os::yield_core() && os::monotonic_now() < end) {
    got = peek(socket, notice);
  }
  return got;
}

// Calls libc's recv(), since a thread that sleeps here may be cancelled.
ssize_t sleep_for_event(HeldFile& held, Notice& notice) {
  ssize_t got = -1;
  pthread_cleanup_push(&HeldFile::release, &held);
  got = ::recv(held.fd(), &notice, kMostBytes, MSG_PEEK);
  pthread_cleanup_pop(0);
  return got;
}

bool blocks(int fd) {
  return (sys::fcntl(fd, F_GETFL, 0) & O_NONBLOCK) == 0;
}

}  // namespace

constinit Duration longest_short_wait = platform::BriefPolling::kShortSleep;

bool may_wait_in_softibd(int fd) {
  return waits_are_short.load(std::memory_order_relaxed) && blocks(fd);
}

int wait_for_event(HeldFile& held, Instant since, Notice& notice) {
  ssize_t got = peek(held.fd(), notice);
  if (got < 0 && errno == EAGAIN && blocks(held.fd())) {
    const Instant end = since + longest_short_wait;
    if (waits_are_short.load(std::memory_order_relaxed) && os::monotonic_now() < end) {
      got = poll_for_event(held.fd(), end, notice);
    }
    if (got < 0 && errno == EAGAIN) got = sleep_for_event(held, notice);
    const sys::KeepErrno keep;
    waits_are_short.store(os::monotonic_now() <= end, std::memory_order_relaxed);
    notice.is_new = true;
  }
  if (got > 0) {
    const auto size = static_cast<std::size_t>(got);
    notice.size = size - std::min(size, sizeof notice.header);
    return 0;
  }
  return got == 0 ? EIO : errno == ECONNRESET ? EIO : errno;
}

}  // namespace ib::host_abi::preload
