// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// poll(), select() and epoll are the kernel's: a link is ready when its stream is, but for those
// that are left rung (left_rung.h). These functions look for some microseconds before a sleep, as
// long as that pays, and end sleeps now and then for the sake of messages that wait for a port.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/streams/connections.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/handlers.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/left_rung.h"
#include "host_abi/streams/set_waiters.h"
#include "host_abi/streams/waiting.h"

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
  const std::uint32_t handlers_before = handlers_run();
  if (habit.pays()) {
    int found = 0;
    std::int64_t taken = 0;
    while ((found = look(0)) == 0 && taken < kSpinNs) taken = now_ns() - start;
    habit.end(found != 0, taken);
    if (found != 0) return found;
  }
  if (handlers_run() != handlers_before) {
    errno = EINTR;
    return -1;
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
  if (is_any_left() && !Inside::is()) {
    settle_left_here();
    for (nfds_t i = 0; i < count; ++i) {
      if (is_set(entries[i].fd)) settle_all_left();
      settle_left(entries[i].fd);
    }
  }
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
  if (!Inside::is()) settle_all_left();
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

// epoll_wait() in a set that may have links which are left rung (left_rung.h).
class EpollWait {
 public:
  EpollWait(int set, epoll_event* events, int room, bool has_time)
      : set_(set), events_(events), room_(room), has_time_(has_time) {}

  int look(std::int64_t ns) {
    if (ns != 0) {
      // News may be of a stream that has left the set.
      const int found = settle_left_here() ? 0 : look_in_kernel(0);
      return found != 0 ? found : sleep(ns);
    }
    const std::int64_t now = now_ns();
    if (begin_ == 0) begin_ = now;
    if (!take_changed() && !is_look_due(now) && is_any_left_here(set_)) {
      const News news = find_news(set_, *events_);
      if (news == News::OfOne) return 1;
      if (news == News::None && has_time_) return 0;
    }
    last_look = now;
    return look_in_kernel(0);
  }

 private:
  // Others than these streams wait at most so long for their turn.
  static constexpr std::int64_t kBetweenLooks = 50'000;
  // They are looked for once before the thread sleeps, and has to settle its links.
  static constexpr std::int64_t kBeforeSleep = kSpinNs / 2;
  bool is_look_due(std::int64_t now) const {
    const bool is_first = last_look < begin_ && now - begin_ >= kBeforeSleep;
    return has_others || is_first || now - last_look >= kBetweenLooks;
  }
  // Links that are left may take all the room: each is seen in as many looks as there are.
  int look_in_kernel(std::int64_t ns) {
    for (int tries = 0;; ++tries) {
      // Others may settle them while the kernel looks.
      const bool has_own = has_left_any();
      const int found = real::epoll_pwait(set_, events_, room_, ms_of(ns), nullptr);
      has_others = false;
      if (found <= 0 || (!has_own && !is_any_left())) return found;
      const Filtered some = filter_left(set_, events_, found);
      has_others = some.has_others;
      const bool may_be_more = found == room_ || some.has_told;
      if (some.kept > 0 || !may_be_more || tries == kMostLeft) return some.kept;
      ns = 0;
    }
  }
  // Events that were taken away are no end of the time.
  int sleep(std::int64_t ns) {
    const std::int64_t end = now_ns() + ns;
    while (true) {
      const int found = look_in_kernel(ns);
      if (found != 0) return found;
      if (ns == kForever) continue;
      ns = end - now_ns();
      if (ns <= 0) return 0;
    }
  }

  static constinit thread_local std::int64_t last_look;
  // The last look has found some, so there may be more.
  static constinit thread_local bool has_others;
  int set_;
  epoll_event* events_;
  int room_;
  bool has_time_;
  std::int64_t begin_ = 0;
};
constinit thread_local std::int64_t EpollWait::last_look = 0;
constinit thread_local bool EpollWait::has_others = false;

int epoll_with(int set, epoll_event* events, int room, std::int64_t timeout, const sigset_t* mask) {
  if (!Inside::is() && !note_waiter(set)) settle_all_left();
  if (mask != nullptr || room <= 0 || Inside::is() || !has_any_stream()) {
    if (!Inside::is()) settle_left_here();
    return wait_with(timeout, [&](std::int64_t ns) {
      return real::epoll_pwait(set, events, room, ms_of(ns), mask);
    });
  }
  EpollWait wait(set, events, room, timeout != 0);
  const int found = wait_with(timeout, [&](std::int64_t ns) { return wait.look(ns); });
  note_wait(set, habit.pays_now());
  return found;
}

void note_edges(int fd) {
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

int streams_epoll_create(int size) IB_STANDS_FOR("epoll_create");
int streams_epoll_create(int size) {
  const int set = real::epoll_create(size);
  if (set >= 0 && !Inside::is()) begin_set(set, false);
  return set;
}

int streams_epoll_create1(int flags) IB_STANDS_FOR("epoll_create1");
int streams_epoll_create1(int flags) {
  const int set = real::epoll_create1(flags);
  if (set >= 0 && !Inside::is()) begin_set(set, (flags & EPOLL_CLOEXEC) != 0);
  return set;
}

int streams_epoll_ctl(int set, int operation, int fd, epoll_event* event)
    IB_STANDS_FOR("epoll_ctl");
int streams_epoll_ctl(int set, int operation, int fd, epoll_event* event) {
  if (Inside::is() || !is_on()) return real::epoll_ctl(set, operation, fd, event);
  if (control_late(set, operation, fd, event)) return 0;
  begin_control(set, operation, fd, event);
  const int result = real::epoll_ctl(set, operation, fd, event);
  if (result != 0) return result;
  const int error = errno;
  record_epoll(set, operation, fd, event);
  end_control(operation, fd);
  const bool is_edge = operation != EPOLL_CTL_DEL && (event->events & EPOLLET) != 0;
  if (is_edge && is_in_table(fd)) note_edges(fd);
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
