// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// poll() and select() over descriptors of both kinds.
#include "host_abi/sockets/cancellation.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/scratch.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/sockets/data.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/sleepers.h"
#include "host_abi/sockets/switch.h"
#include "host_abi/sockets/wait.h"

#include <pthread.h>

#include <cerrno>
#include <utility>

namespace ib::host_abi::sockets {
namespace {

bool any_in_table(const pollfd* entries, nfds_t count) {
  for (nfds_t i = 0; i < count; ++i) {
    if (is_in_table(entries[i].fd)) return true;
  }
  return false;
}

// One wait of poll(): the entries of the kernel, in their places (-1: not one of those), and behind
// them those of rsockets.
class PollWait {
 public:
  PollWait(pollfd* entries, nfds_t count)
      : entries_(entries), count_(count), waits_(2 * count), sockets_(count), at_(count) {
    call_.enter(clean, this);
    for (nfds_t i = 0; valid() && i < count_; ++i) {
      sockets_[i] = find(entries_[i].fd);
      if (sockets_[i] && sockets_[i]->state.load() == State::Listening) {
        listen_over_rdma(entries_[i].fd, *sockets_[i]);
      }
    }
  }
  ~PollWait() { let_go(); }
  PollWait(const PollWait&) = delete;
  PollWait& operator=(const PollWait&) = delete;
  bool valid() {
    return waits_.get() != nullptr && sockets_.get() != nullptr && at_.get() != nullptr;
  }

  int run(const Deadline& deadline, const sigset_t* mask) {
    const std::int64_t start = now();
    while (true) {
      const std::uint32_t news = count_of_news();
      arrange();
      const int ready = check();
      if (ready != 0 || deadline.is_zero() || deadline.is_over()) return ready;
      if (now() - start < kPollTime) continue;
      end_if_cancelled();
      if (sleep_in_rpoll(waits_.get(), used_, deadline, mask, news) < 0) return -1;
    }
  }

 private:
  static void clean(void* wait) { static_cast<PollWait*>(wait)->~PollWait(); }

  void let_go() {
    for (nfds_t i = 0; valid() && i < count_; ++i) sockets_[i] = Ref();
  }

  void add(nfds_t i, int rs, short events) {
    at_[i] = used_;
    waits_[used_++] = {rs, events, 0};
  }

  void arrange() {
    used_ = count_;
    has_kernel_ = false;
    for (nfds_t i = 0; i < count_; ++i) {
      at_[i] = 0;
      waits_[i] = {entries_[i].fd, entries_[i].events, 0};
      Socket* socket = sockets_[i] ? &*sockets_[i] : nullptr;
      if (socket != nullptr) arrange(i, *socket);
      has_kernel_ |= waits_[i].fd >= 0;
    }
  }

  void arrange(nfds_t i, Socket& socket) {
    const int rs = socket.rs.load();
    switch (socket.state.load()) {
      case State::Listening:
        if (rs >= 0 && socket.is_own()) add(i, rs, POLLIN);
        break;
      case State::Connecting: waits_[i] = {socket.event.get(), POLLIN, 0}; break;
      case State::Connected:
        waits_[i].fd = -1;
        if (socket.is_own()) add(i, rs, ask_for(entries_[i].events));
        break;
      case State::Free:
      case State::Plain: break;
    }
  }

  int check() {
    int ready = 0;
    if (has_kernel_ && real::poll(waits_.get(), count_, 0) < 0) return -1;
    for (nfds_t i = 0; i < count_; ++i) {
      short events = waits_[i].fd >= 0 ? waits_[i].revents : short{0};
      if (sockets_[i]) events = result(i, *sockets_[i], events);
      entries_[i].revents = events;
      ready += events != 0 ? 1 : 0;
    }
    return ready;
  }

  short result(nfds_t i, Socket& socket, short from_kernel) {
    const short asked = entries_[i].events;
    if (socket.state.load() == State::Connecting) return 0;
    if (socket.state.load() == State::Connected && !socket.is_own()) {
      return translate(socket, asked, POLLERR);
    }
    // The attempt to connect has ended since.
    if (at_[i] == 0)
      return socket.event.get() == waits_[i].fd && waits_[i].fd >= 0 ? short{0} : from_kernel;
    const short found = look_at(socket, waits_[at_[i]].events);
    if (found == 0) return from_kernel;
    if (socket.state.load() == State::Listening) {
      return static_cast<short>(from_kernel | (asked & (POLLIN | POLLRDNORM)));
    }
    return translate(socket, asked, found);
  }

  Uncancelled call_;  // first: it leaves last
  pollfd* entries_;
  nfds_t count_;
  Scratch<pollfd, 32> waits_;
  Scratch<Ref, 16> sockets_;
  Scratch<nfds_t, 16> at_;
  nfds_t used_ = 0;
  bool has_kernel_ = false;
};

int poll_all(pollfd* entries, nfds_t count, const Deadline& deadline, const sigset_t* mask) {
  ::pthread_testcancel();
  PollWait wait(entries, count);
  if (!wait.valid()) {
    errno = ENOMEM;
    return -1;
  }
  return wait.run(deadline, mask);
}

bool set_has_any(int count, const fd_set* set) {
  if (set == nullptr) return false;
  for (int fd = next_in_table(0); fd >= 0 && fd < count; fd = next_in_table(fd + 1)) {
    if (FD_ISSET(fd, set)) return true;
  }
  return false;
}

bool any_in_table(int count, const fd_set* in, const fd_set* out, const fd_set* except) {
  return set_has_any(count, in) || set_has_any(count, out) || set_has_any(count, except);
}

// Returns the number of entries.
nfds_t list_sets(int count, const fd_set* in, const fd_set* out, const fd_set* except,
                 pollfd (&entries)[FD_SETSIZE]) {
  nfds_t used = 0;
  for (int fd = 0; fd < count && fd < FD_SETSIZE; ++fd) {
    short events = 0;
    if (in != nullptr && FD_ISSET(fd, in)) events |= POLLIN;
    if (out != nullptr && FD_ISSET(fd, out)) events |= POLLOUT;
    if (except != nullptr && FD_ISSET(fd, except)) events |= POLLPRI;
    if (events != 0) entries[used++] = {fd, events, 0};
  }
  return used;
}

int select_all(int count, fd_set* in, fd_set* out, fd_set* except, const Deadline& deadline,
               const sigset_t* mask) {
  pollfd entries[FD_SETSIZE];
  const nfds_t used = list_sets(count, in, out, except, entries);
  if (poll_all(entries, used, deadline, mask) < 0) return -1;
  for (nfds_t i = 0; i < used; ++i) {
    if ((entries[i].revents & POLLNVAL) == 0) continue;
    errno = EBADF;
    return -1;
  }
  int ready = 0;
  for (nfds_t i = 0; i < used; ++i) {
    const auto keep = [&](fd_set* set, short asked, short reasons) {
      if (set == nullptr || (entries[i].events & asked) == 0) return;
      if ((entries[i].revents & reasons) != 0) {
        ++ready;
      } else {
        FD_CLR(entries[i].fd, set);
      }
    };
    keep(in, POLLIN, POLLIN | POLLHUP | POLLERR);
    keep(out, POLLOUT, POLLOUT | POLLERR);
    keep(except, POLLPRI, POLLPRI);
  }
  return ready;
}

}  // namespace

extern "C" {

// rpoll() calls this too, with descriptors of the kernel.
int sockets_poll(pollfd* entries, nfds_t count, int timeout) IB_STANDS_FOR("poll");
int sockets_poll(pollfd* entries, nfds_t count, int timeout) {
  // By its address: a signal handler may have left a sleep with longjmp().
  if (is_in_librdmacm(__builtin_return_address(0))) {
    if (is_sleeping()) {
      return timeout == 0 ? real::poll(entries, count, 0) : poll_of_sleep(entries, count);
    }
    int result = 0;
    if (is_poll_of_abort(entries, result)) return result;
    if (is_looking_for_queue() && count == 1) found_queue(entries->fd);
    return poll_of_librdmacm(entries, count, timeout);
  }
  if (!any_in_table(entries, count)) return real::poll(entries, count, timeout);
  return poll_all(entries, count, Deadline::after_ms(timeout), nullptr);
}

// rpoll() calls it where it waits for threads that have been woken.
int sockets_sched_yield() IB_STANDS_FOR("sched_yield");
int sockets_sched_yield() {
  if (is_sleeping() && is_in_librdmacm(__builtin_return_address(0))) {
    pause_of_sleep();
    return 0;
  }
  return real::sched_yield();
}

int sockets_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask)
    IB_STANDS_FOR("ppoll");
int sockets_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (!any_in_table(entries, count)) return real::ppoll(entries, count, timeout, mask);
  return poll_all(entries, count, Deadline(timeout), mask);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): it is glibc's
[[noreturn]] void __chk_fail();

int sockets_poll_chk(pollfd* entries, nfds_t count, int timeout, std::size_t room)
    IB_STANDS_FOR("__poll_chk");
int sockets_poll_chk(pollfd* entries, nfds_t count, int timeout, std::size_t room) {
  if (room / sizeof *entries < count) __chk_fail();
  return sockets_poll(entries, count, timeout);
}

int sockets_ppoll_chk(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask,
                      std::size_t room) IB_STANDS_FOR("__ppoll_chk");
int sockets_ppoll_chk(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask,
                      std::size_t room) {
  if (room / sizeof *entries < count) __chk_fail();
  return sockets_ppoll(entries, count, timeout, mask);
}

int sockets_select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout)
    IB_STANDS_FOR("select");
int sockets_select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
  if (!any_in_table(count, in, out, except)) {
    return real::select(count, in, out, except, timeout);
  }
  if (timeout == nullptr) return select_all(count, in, out, except, Deadline(nullptr), nullptr);
  const timespec time{timeout->tv_sec, timeout->tv_usec * 1000};
  const int result = select_all(count, in, out, except, Deadline(&time), nullptr);
  if (result == 0) *timeout = {};  // the rest of the time, as Linux has it
  return result;
}

int sockets_pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                    const sigset_t* mask) IB_STANDS_FOR("pselect");
int sockets_pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                    const sigset_t* mask) {
  if (!any_in_table(count, in, out, except)) {
    return real::pselect(count, in, out, except, timeout, mask);
  }
  return select_all(count, in, out, except, Deadline(timeout), mask);
}

#if __TIMESIZE == 32
int sockets_ppoll64(pollfd* entries, nfds_t count, const Timespec64* timeout, const sigset_t* mask)
    IB_STANDS_FOR("__ppoll64");
int sockets_ppoll64(pollfd* entries, nfds_t count, const Timespec64* timeout,
                    const sigset_t* mask) {
  if (!any_in_table(entries, count)) return real::ppoll64(entries, count, timeout, mask);
  return poll_all(entries, count, Deadline(Narrow(timeout).get()), mask);
}

int sockets_ppoll64_chk(pollfd* entries, nfds_t count, const Timespec64* timeout,
                        const sigset_t* mask, std::size_t room) IB_STANDS_FOR("__ppoll64_chk");
int sockets_ppoll64_chk(pollfd* entries, nfds_t count, const Timespec64* timeout,
                        const sigset_t* mask, std::size_t room) {
  if (room / sizeof *entries < count) __chk_fail();
  return sockets_ppoll64(entries, count, timeout, mask);
}

int sockets_select64(int count, fd_set* in, fd_set* out, fd_set* except, Timeval64* timeout)
    IB_STANDS_FOR("__select64");
int sockets_select64(int count, fd_set* in, fd_set* out, fd_set* except, Timeval64* timeout) {
  if (!any_in_table(count, in, out, except)) {
    return real::select64(count, in, out, except, timeout);
  }
  if (timeout == nullptr) return select_all(count, in, out, except, Deadline(nullptr), nullptr);
  const Timespec64 time{timeout->tv_sec, static_cast<std::int32_t>(timeout->tv_usec * 1000), 0};
  const int result = select_all(count, in, out, except, Deadline(Narrow(&time).get()), nullptr);
  if (result == 0) *timeout = {};  // the rest of the time, as Linux has it
  return result;
}

int sockets_pselect64(int count, fd_set* in, fd_set* out, fd_set* except, const Timespec64* timeout,
                      const sigset_t* mask) IB_STANDS_FOR("__pselect64");
int sockets_pselect64(int count, fd_set* in, fd_set* out, fd_set* except, const Timespec64* timeout,
                      const sigset_t* mask) {
  if (!any_in_table(count, in, out, except)) {
    return real::pselect64(count, in, out, except, timeout, mask);
  }
  return select_all(count, in, out, except, Deadline(Narrow(timeout).get()), mask);
}
#endif

}  // extern "C"
}  // namespace ib::host_abi::sockets
