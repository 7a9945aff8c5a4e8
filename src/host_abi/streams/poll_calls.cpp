// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// poll(), select() and epoll are the kernel's: a link is ready when its stream is. These
// functions look for some microseconds before a sleep, as long as that pays, and end sleeps now and
// then for the sake of messages that wait for a port.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/tcp_socket.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/streams/connections.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/waiting.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

constexpr std::int64_t kForever = -1;
constinit thread_local SpinHabit habit;

std::int64_t ns_of(const timespec* time) {
  if (time == nullptr) return kForever;
  constexpr std::int64_t kMost = INT64_MAX / 2'000'000'000;
  return std::min<std::int64_t>(time->tv_sec, kMost) * 1'000'000'000 + time->tv_nsec;
}
std::int64_t ns_of_ms(int ms) {
  return ms < 0 ? kForever : std::int64_t{ms} * 1'000'000;
}
timespec time_of(std::int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

// Calls `look` with a time until it finds something or `timeout` is over: first without waiting,
// then at length. Its results are those of poll().
template <class Look>
int wait_with(std::int64_t timeout, Look look) {
  tell_of_listeners();
  if (timeout == 0 || Inside::is() || !has_any_stream()) return look(timeout);
  const std::int64_t start = now_ns();
  if (habit.pays()) {
    int found = 0;
    std::int64_t taken = 0;
    while ((found = look(0)) == 0 && taken < kSpinNs) taken = now_ns() - start;
    habit.end(found != 0, taken);
    if (found != 0) return found;
  }
  while (true) {
    std::int64_t left = kForever;
    if (timeout != kForever) left = std::max<std::int64_t>(timeout - (now_ns() - start), 0);
    if (!is_any_stuck()) return look(left);
    let_stuck_go_on();
    constexpr std::int64_t kSlice = std::int64_t{kStuckMs} * 1'000'000;
    const bool is_last = left != kForever && left <= kSlice;
    const int found = look(is_last ? left : kSlice);
    if (found != 0 || is_last) return found;
  }
}

int ms_of(std::int64_t ns) {
  if (ns == kForever) return -1;
  return static_cast<int>(std::min<std::int64_t>((ns + 999'999) / 1'000'000, INT_MAX));
}

int poll_with(pollfd* entries, nfds_t count, std::int64_t timeout, const sigset_t* mask) {
  return wait_with(timeout, [&](std::int64_t ns) {
    if (mask == nullptr && (ns == kForever || ns % 1'000'000 == 0)) {
      return real::poll(entries, count, ms_of(ns));
    }
    const timespec time = time_of(ns);
    return real::ppoll(entries, count, ns == kForever ? nullptr : &time, mask);
  });
}

// The sets are results, too, so each look gets them as they were.
int select_with(int count, fd_set* in, fd_set* out, fd_set* except, std::int64_t timeout,
                const sigset_t* mask) {
  // Sets of more descriptors than fd_set has are none that can be kept here.
  if (count > FD_SETSIZE || !has_any_stream()) {
    tell_of_listeners();
    const timespec time = time_of(timeout);
    return real::pselect(count, in, out, except, timeout == kForever ? nullptr : &time, mask);
  }
  constexpr std::size_t kWordBits = CHAR_BIT * sizeof(long);
  const auto bits = static_cast<std::size_t>(std::max(count, 0));
  const std::size_t size = (bits + kWordBits - 1) / kWordBits * sizeof(long);
  fd_set wanted[3];
  fd_set* const sets[3] = {in, out, except};
  for (int i = 0; i < 3; ++i) {
    if (sets[i] != nullptr) __builtin_memcpy(&wanted[i], sets[i], size);
  }
  return wait_with(timeout, [&](std::int64_t ns) {
    for (int i = 0; i < 3; ++i) {
      if (sets[i] != nullptr) __builtin_memcpy(sets[i], &wanted[i], size);
    }
    const timespec time = time_of(ns);
    return real::pselect(count, in, out, except, ns == kForever ? nullptr : &time, mask);
  });
}

int epoll_with(int set, epoll_event* events, int room, std::int64_t timeout, const sigset_t* mask) {
  return wait_with(timeout, [&](std::int64_t ns) {
    return real::epoll_pwait(set, events, room, ms_of(ns), mask);
  });
}

// A stream by and by, whose epoll sets have to be told then.
bool may_become_stream(int fd) {
  return is_on() && sockets::option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP &&
         sockets::option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 0 &&
         sockets::remote_name(fd).length == 0;
}

void note_edges(int set, int operation, int fd, epoll_event* event) {
  const bool is_edge = operation != EPOLL_CTL_DEL && (event->events & EPOLLET) != 0;
  if (!is_edge) {
    if (has_epoll_records(fd)) record_epoll(set, EPOLL_CTL_DEL, fd, event);
    return;
  }
  record_epoll(set, EPOLL_CTL_ADD, fd, event);
  const Ref stream = find_stream(fd);
  streams::End* const end = stream ? end_of(*stream) : nullptr;
  if (end != nullptr) end->shared().wants_edges.store(1);
}

}  // namespace

extern "C" {

int streams_poll(pollfd* entries, nfds_t count, int timeout) IB_STANDS_FOR("poll");
int streams_poll(pollfd* entries, nfds_t count, int timeout) {
  return poll_with(entries, count, ns_of_ms(timeout), nullptr);
}

int streams_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask)
    IB_STANDS_FOR("ppoll");
int streams_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return poll_with(entries, count, ns_of(timeout), mask);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): it is glibc's
[[noreturn]] void __chk_fail();

int streams_poll_chk(pollfd* entries, nfds_t count, int timeout, std::size_t room)
    IB_STANDS_FOR("__poll_chk");
int streams_poll_chk(pollfd* entries, nfds_t count, int timeout, std::size_t room) {
  if (room / sizeof *entries < count) __chk_fail();
  return streams_poll(entries, count, timeout);
}

int streams_ppoll_chk(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask,
                      std::size_t room) IB_STANDS_FOR("__ppoll_chk");
int streams_ppoll_chk(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask,
                      std::size_t room) {
  if (room / sizeof *entries < count) __chk_fail();
  return streams_ppoll(entries, count, timeout, mask);
}

int streams_select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout)
    IB_STANDS_FOR("select");
int streams_select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
  if (!has_any_stream() || timeout == nullptr) {
    if (!has_any_stream()) {
      tell_of_listeners();
      return real::select(count, in, out, except, timeout);
    }
    return select_with(count, in, out, except, kForever, nullptr);
  }
  if (timeout->tv_sec < 0 || timeout->tv_usec < 0) {
    errno = EINVAL;
    return -1;
  }
  const timespec time{timeout->tv_sec + timeout->tv_usec / 1'000'000,
                      timeout->tv_usec % 1'000'000 * 1000};
  const std::int64_t start = now_ns();
  const int result = select_with(count, in, out, except, ns_of(&time), nullptr);
  // The rest of the time, as Linux has it.
  const std::int64_t left = std::max<std::int64_t>(ns_of(&time) - (now_ns() - start), 0);
  timeout->tv_sec = static_cast<time_t>(left / 1'000'000'000);
  timeout->tv_usec = static_cast<suseconds_t>(left % 1'000'000'000 / 1000);
  return result;
}

int streams_pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                    const sigset_t* mask) IB_STANDS_FOR("pselect");
int streams_pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                    const sigset_t* mask) {
  return select_with(count, in, out, except, ns_of(timeout), mask);
}

int streams_epoll_ctl(int set, int operation, int fd, epoll_event* event)
    IB_STANDS_FOR("epoll_ctl");
int streams_epoll_ctl(int set, int operation, int fd, epoll_event* event) {
  const int result = real::epoll_ctl(set, operation, fd, event);
  if (result != 0 || Inside::is() || !is_on()) return result;
  const int error = errno;
  if (is_in_table(fd)) {
    note_edges(set, operation, fd, event);
  } else if (has_epoll_records(fd) || (operation == EPOLL_CTL_ADD && may_become_stream(fd))) {
    record_epoll(set, operation, fd, event);
  }
  errno = error;
  return result;
}

int streams_epoll_wait(int set, epoll_event* events, int room, int timeout)
    IB_STANDS_FOR("epoll_wait");
int streams_epoll_wait(int set, epoll_event* events, int room, int timeout) {
  return epoll_with(set, events, room, ns_of_ms(timeout), nullptr);
}

int streams_epoll_pwait(int set, epoll_event* events, int room, int timeout, const sigset_t* mask)
    IB_STANDS_FOR("epoll_pwait");
int streams_epoll_pwait(int set, epoll_event* events, int room, int timeout, const sigset_t* mask) {
  return epoll_with(set, events, room, ns_of_ms(timeout), mask);
}

int streams_epoll_pwait2(int set, epoll_event* events, int room, const timespec* timeout,
                         const sigset_t* mask) IB_STANDS_FOR("epoll_pwait2");
int streams_epoll_pwait2(int set, epoll_event* events, int room, const timespec* timeout,
                         const sigset_t* mask) {
  return epoll_with(set, events, room, ns_of(timeout), mask);
}

#if __TIMESIZE == 32
int streams_ppoll64(pollfd* entries, nfds_t count, const sockets::Timespec64* timeout,
                    const sigset_t* mask) IB_STANDS_FOR("__ppoll64");
int streams_ppoll64(pollfd* entries, nfds_t count, const sockets::Timespec64* timeout,
                    const sigset_t* mask) {
  return poll_with(entries, count, ns_of(sockets::Narrow(timeout).get()), mask);
}

int streams_ppoll64_chk(pollfd* entries, nfds_t count, const sockets::Timespec64* timeout,
                        const sigset_t* mask, std::size_t room) IB_STANDS_FOR("__ppoll64_chk");
int streams_ppoll64_chk(pollfd* entries, nfds_t count, const sockets::Timespec64* timeout,
                        const sigset_t* mask, std::size_t room) {
  if (room / sizeof *entries < count) __chk_fail();
  return streams_ppoll64(entries, count, timeout, mask);
}

int streams_select64(int count, fd_set* in, fd_set* out, fd_set* except,
                     sockets::Timeval64* timeout) IB_STANDS_FOR("__select64");
int streams_select64(int count, fd_set* in, fd_set* out, fd_set* except,
                     sockets::Timeval64* timeout) {
  if (timeout == nullptr) return select_with(count, in, out, except, kForever, nullptr);
  const sockets::Timespec64 time{timeout->tv_sec,
                                 static_cast<std::int32_t>(timeout->tv_usec * 1000), 0};
  const int result =
      select_with(count, in, out, except, ns_of(sockets::Narrow(&time).get()), nullptr);
  if (result == 0) *timeout = {};
  return result;
}

int streams_pselect64(int count, fd_set* in, fd_set* out, fd_set* except,
                      const sockets::Timespec64* timeout, const sigset_t* mask)
    IB_STANDS_FOR("__pselect64");
int streams_pselect64(int count, fd_set* in, fd_set* out, fd_set* except,
                      const sockets::Timespec64* timeout, const sigset_t* mask) {
  return select_with(count, in, out, except, ns_of(sockets::Narrow(timeout).get()), mask);
}

int streams_epoll_pwait2_time64(int set, epoll_event* events, int room,
                                const sockets::Timespec64* timeout, const sigset_t* mask)
    IB_STANDS_FOR("__epoll_pwait2_time64");
int streams_epoll_pwait2_time64(int set, epoll_event* events, int room,
                                const sockets::Timespec64* timeout, const sigset_t* mask) {
  return epoll_with(set, events, room, ns_of(sockets::Narrow(timeout).get()), mask);
}
#endif

}  // extern "C"
}  // namespace ib::host_abi::stream_switch
