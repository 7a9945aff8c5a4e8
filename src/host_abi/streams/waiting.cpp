// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The wait of a call that has found nothing: a short look, then a sleep at the link, which is where
// a thread may be cancelled; messages that a port holds up are tried again meanwhile.
#include "host_abi/streams/waiting.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/left_rung.h"
#include "host_abi/streams/own_link.h"
#include "host_abi/streams/sandbox.h"
#include "linux/process/cpu_pause.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

constexpr int kPausesBetweenClocks = 16;

constinit std::atomic<bool> maybe_stuck{false};

bool spin(Socket& stream, const streams::End& end) {
  if (!stream.habit.pays()) return false;
  const std::int64_t start = now_ns();
  std::int64_t taken = 0;
  bool found = false;
  do {
    for (int i = 0; i < kPausesBetweenClocks && !found; ++i) {
      os::cpu_pause();
      found = end.has_news();
    }
    taken = now_ns() - start;
  } while (!found && taken < kSpinNs);
  stream.habit.end(found, taken);
  return found;
}

// poll() is never restarted after a handler, calls at a TCP socket are, if the handler wants that.
// Which handler has run cannot be told: it is none of those that do not want it if there are none.
bool every_handler_restarts() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0) continue;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
    if ((action.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

// Sleeps in a call that the kernel restarts, or does not, just as one at a TCP socket; but of
// several that sleep so, a packet wakes one. SO_RCVTIMEO is the kernel's.
int sleep_as_only_reader(int fd) {
  char byte = 0;
  const ssize_t got =
      real::recv(fd, static_cast<void*>(&byte), sizeof byte, static_cast<int>(MSG_PEEK));
  if (got >= 0) return 0;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? errno : 0;
}

int sleep_in_poll(int fd, short events, TimeLimit& limit, bool is_stuck) {
  // While a port is down the link may be readable without anything to read.
  pollfd entry{is_stuck && events == POLLIN ? -1 : fd, events, 0};
  const int most = is_stuck ? kStuckMs : INT_MAX;
  const int found = real::poll(&entry, nfds_t{1}, limit.left_ms(most));
  if (found > 0) return 0;
  if (found == 0) return limit.is_over() ? EAGAIN : 0;
  if (errno != EINTR) return errno;
  return !is_in_sandbox() && !limit.exists() && every_handler_restarts() ? 0 : EINTR;
}

// A sleep of one thread; the kernel may cancel the thread in it.
struct Sleep {
  int fd;
  Socket& stream;
  short events;
  TimeLimit& limit;
  bool is_counted;  // among the readers of the stream
  bool is_only;
  bool is_stuck;
};

void end_cancelled(void* argument) {
  const auto& sleep = *static_cast<const Sleep*>(argument);
  if (sleep.is_counted) sleep.stream.readers.fetch_sub(1);
  release(&sleep.stream);
}

int sleep_in_kernel(Sleep& sleep) {
  int result = 0;
  pthread_cleanup_push(end_cancelled, &sleep);
  result = sleep.is_only ? sleep_as_only_reader(sleep.fd)
                         : sleep_in_poll(sleep.fd, sleep.events, sleep.limit, sleep.is_stuck);
  pthread_cleanup_pop(0);
  return result;
}

}  // namespace

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t TimeLimit::deadline() {
  if (deadline_ != kUnread) return deadline_;
  if (is_in_sandbox()) return deadline_ = kNone;
  timeval limit{};
  socklen_t length = sizeof limit;
  const int name = events_ == POLLOUT ? SO_SNDTIMEO : SO_RCVTIMEO;
  const bool has_limit =
      real::getsockopt(fd_, SOL_SOCKET, name, static_cast<void*>(&limit), &length) == 0 &&
      (limit.tv_sec != 0 || limit.tv_usec != 0);
  deadline_ = has_limit ? now_ns() + std::int64_t{limit.tv_sec} * 1'000'000'000 +
                              std::int64_t{limit.tv_usec} * 1000
                        : kNone;
  return deadline_;
}

int TimeLimit::left_ms(int most) {
  if (!exists()) return most == INT_MAX ? -1 : most;
  const std::int64_t left = (deadline() - now_ns() + 999'999) / 1'000'000;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, most));
}

int wait_for(int fd, Socket& stream, streams::End& end, short events, TimeLimit& limit) {
  if (events == POLLIN && !stream.has_waited.load(std::memory_order_relaxed))
    stream.has_waited.store(true, std::memory_order_relaxed);
  if (events == POLLIN && spin(stream, end)) return 0;
  settle_left(fd, stream);
  if (events == POLLIN && end.has_news()) return 0;
  const bool is_stuck = end.is_stuck();
  const bool is_counted = events == POLLIN && !is_shared(stream) && !is_in_sandbox();
  const bool is_first = is_counted && stream.readers.fetch_add(1) == 0;
  Sleep sleep{fd, stream, events, limit, is_counted, is_first && !is_stuck, is_stuck};
  const int result = sleep_in_kernel(sleep);
  if (is_counted) stream.readers.fetch_sub(1);
  if (is_stuck) {
    const Inside inside;
    OwnLink link(fd);
    end.go_on(link);
  }
  return result;
}

void note_if_stuck(const streams::End& end) {
  if (end.is_stuck()) maybe_stuck.store(true, std::memory_order_relaxed);
}

bool is_any_stuck() {
  return maybe_stuck.load(std::memory_order_relaxed);
}

void let_stuck_go_on() {
  maybe_stuck.store(false);
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) {
    const Ref stream = find_stream(fd);
    streams::End* const end = stream ? opened_end_of(*stream) : nullptr;
    if (end == nullptr || !end->is_stuck()) continue;
    {
      const Inside inside;
      OwnLink link(fd);
      end->go_on(link);
    }
    note_if_stuck(*end);
  }
}

}  // namespace ib::host_abi::stream_switch
