// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Edges (EPOLLET): rsockets have levels only. An event is reported once, and again when the program
// has read or has met a full buffer since, or when there is more to report: at least the edges of
// TCP, sometimes one too many, which a program must expect anyway.
#include "host_abi/sockets/cancellation.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/sockets/epoll_sets.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/sleepers.h"
#include "host_abi/sockets/switch.h"
#include "host_abi/sockets/table.h"
#include "host_abi/sockets/wait.h"

#include <netinet/in.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

namespace ib::host_abi::sockets {
namespace {

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
              EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP && EPOLLRDNORM == POLLRDNORM &&
              EPOLLWRNORM == POLLWRNORM);
constexpr std::uint32_t kConditions =
    EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM | EPOLLRDHUP | EPOLLPRI;
constexpr std::uint32_t kReading{EPOLLIN | EPOLLRDNORM};
constexpr std::uint32_t kWriting{EPOLLOUT | EPOLLWRNORM};

// A TCP socket that may become one of the switch's later.
bool may_connect(int fd) {
  int type = 0;
  int family = 0;
  socklen_t length = sizeof type;
  if (real::getsockopt(fd, SOL_SOCKET, SO_TYPE, static_cast<void*>(&type), &length) != 0) {
    return false;
  }
  length = sizeof family;
  static_cast<void>(
      real::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, static_cast<void*>(&family), &length));
  if (type != SOCK_STREAM || (family != AF_INET && family != AF_INET6)) return false;
  sockaddr_storage name{};
  length = sizeof name;
  return real::getpeername(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0;
}

// Puts the item where the state of its socket wants it: into the kernel's set or not.
void settle(Epoll& set, Item& item, const Ref& socket) {
  const State state = socket ? socket->state.load() : State::Plain;
  const bool wanted = state != State::Connecting && state != State::Connected;
  if (wanted == item.in_kernel) return;
  item.in_kernel = wanted;
  const int error = errno;
  real::epoll_ctl(set.fd, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, item.fd, &item.event);
  errno = error;
}

// The rsocket of an item and the events to poll it for; -1 if it is the kernel's, or there is no
// news.
struct Question {
  int rs = -1;
  short events = 0;
};

std::uint32_t suppressed(Item& item, const Socket& socket) {
  if ((item.event.events & EPOLLET) == 0) return 0;
  if (socket.reads.load() != item.reads) item.reported &= ~kReading;
  if (socket.full_writes.load() != item.full_writes) {
    item.reported &= ~kWriting;
  }
  return item.reported;
}

Question question_of(Item& item, const Socket& socket) {
  if (item.disabled) return {};
  const State state = socket.state.load();
  if (state == State::Connecting) return {socket.event.get(), POLLIN};
  if ((state != State::Connected && state != State::Listening) || !socket.is_own()) return {};
  const std::uint32_t without = suppressed(item, socket);
  // After a hang-up there is no other news than bytes to read.
  const std::uint32_t events = item.event.events & kConditions & ~without;
  constexpr std::uint32_t kEnd{EPOLLHUP | EPOLLERR | EPOLLRDHUP};
  if ((without & kEnd) != 0 && (events & kReading) == 0) return {};
  if (state == State::Listening) {
    return {(events & kReading) != 0 ? socket.rs.load() : -1, POLLIN};
  }
  return {socket.rs.load(), ask_for(static_cast<short>(events))};
}

std::uint32_t events_of(Item& item, Socket& socket) {
  const State state = socket.state.load();
  if (state == State::Connecting) return 0;
  const auto asked = static_cast<short>(item.event.events & kConditions);
  if (state == State::Connected && !socket.is_own()) {
    return item.disabled ? 0u : static_cast<std::uint16_t>(translate(socket, asked, POLLERR));
  }
  const Question question = question_of(item, socket);
  if (question.rs < 0) return 0;
  const short reported = look_at(socket, question.events);
  if (reported == 0) return 0;
  const std::uint32_t without = item.reported;
  const std::uint32_t events = state == State::Listening
                                   ? item.event.events & kReading
                                   : static_cast<std::uint16_t>(translate(socket, asked, reported));
  return (item.event.events & EPOLLET) != 0 ? events & ~without : events;
}

void note_report(Item& item, const Socket& socket, std::uint32_t events) {
  if ((item.event.events & EPOLLONESHOT) != 0) item.disabled = true;
  item.reported |= events;
  item.reads = socket.reads.load();
  item.full_writes = socket.full_writes.load();
}

// Returns true for an item whose descriptor the program has closed without libc: the kernel's set
// has nothing of it any more. `socket` is what the table has for the number. An item of the
// kernel's needs no look: it is silent, and goes when the number is added again.
bool has_ended(const Item& item, const Ref& socket) {
  if (socket) return socket->file != item.file;
  return !item.in_kernel && !still_means(item.fd, item.file);
}

// The report for an item, which is settled first: its events, or 0.
std::uint32_t report_of(Epoll& set, Item& item, const Ref& socket) {
  settle(set, item, socket);
  if (!socket) return 0;
  const std::uint32_t found = events_of(item, *socket);
  if (found == 0) return 0;
  if (!still_means(item.fd, item.file)) {
    item.fd = -1;
    return 0;
  }
  note_report(item, *socket, found);
  return found;
}

// Reports of rsockets. Also settles the items, and drops those that have ended.
int collect(Epoll& set, epoll_event* events, int room, std::vector<int>& new_listeners) {
  const std::lock_guard guard(set.mutex);
  int count = 0;
  bool any_ended = false;
  const std::size_t total = set.items.size();
  for (std::size_t step = 0; step < total && count < room; ++step) {
    Item& item = set.items[(set.next + step) % total];
    const Ref socket = find_unchecked(item.fd);
    if (has_ended(item, socket)) item.fd = -1;
    any_ended |= item.fd < 0;
    if (item.fd < 0) continue;
    if (socket && socket->state.load() == State::Listening &&
        (!socket->tried.load() || !socket->is_own())) {
      new_listeners.push_back(item.fd);
    }
    const std::uint32_t found = report_of(set, item, socket);
    any_ended |= item.fd < 0;
    if (found == 0) continue;
    events[count].events = found;
    events[count++].data = item.event.data;
    if (count == room) set.next = (set.next + step + 1) % total;
  }
  if (any_ended) std::erase_if(set.items, [](const Item& item) { return item.fd < 0; });
  return count;
}

// One thread's sleep. Changes of the items after the constructor end it, and so do reads and writes
// of other threads that bring back an edge.
class SetSleep {
 public:
  explicit SetSleep(Epoll& set) : set_(set), news_(count_of_news()) {
    entries_.push_back({set.fd, POLLIN, 0});
    const std::lock_guard guard(set.mutex);
    for (Item& item : set.items) {
      Ref socket = find_unchecked(item.fd);
      if (!socket) continue;
      // Before the question: what another thread does after it is told.
      socket->without_edge.fetch_add(1);
      const Question question = question_of(item, *socket);
      const bool is_asked = question.rs >= 0;
      if (is_asked) entries_.push_back({question.rs, question.events, 0});
      if (suppressed(item, *socket) != 0) {
        without_edge_.push_back(socket);
      } else {
        socket->without_edge.fetch_sub(1);
      }
      if (is_asked) sockets_.push_back(std::move(socket));
    }
    ++set.sleeping;
  }
  ~SetSleep() {
    for (const Ref& socket : without_edge_) socket->without_edge.fetch_sub(1);
    const std::lock_guard guard(set_.mutex);
    --set_.sleeping;
  }
  SetSleep(const SetSleep&) = delete;
  SetSleep& operator=(const SetSleep&) = delete;

  int until(const Deadline& deadline, const sigset_t* mask) {
    return sleep_in_rpoll(entries_.data(), entries_.size(), deadline, mask, news_);
  }

 private:
  Epoll& set_;
  std::uint32_t news_;
  std::vector<pollfd> entries_;
  std::vector<Ref> sockets_;  // alive while the thread sleeps
  std::vector<Ref> without_edge_;
};

int wait_in(Epoll& set, epoll_event* events, int room, const Deadline& deadline,
            const sigset_t* mask) {
  if (room <= 0) {
    errno = EINVAL;
    return -1;
  }
  const std::int64_t start = now();
  for (unsigned round = 0;; ++round) {
    std::vector<int> new_listeners;
    int count = collect(set, events, room, new_listeners);
    for (const int fd : new_listeners) {
      if (const Ref socket = find(fd)) listen_over_rdma(fd, *socket);
    }
    // The kernel's set costs a system call.
    if (count < room && (count > 0 || round % 8 == 0)) {
      const int more = real::epoll_pwait(set.fd, events + count, room - count, 0, nullptr);
      if (more < 0 && count == 0) return -1;
      count += std::max(more, 0);
    }
    if (count > 0 || deadline.is_zero() || deadline.is_over()) return count;
    if (now() - start < kPollTime) continue;
    round = 7;  // the kernel's set next
    end_if_cancelled();
    if (SetSleep(set).until(deadline, mask) < 0) return -1;
  }
}

// The set is locked.
int add_item(Epoll& set, int fd, const epoll_event& event) {
  Item item;
  item.fd = fd;
  item.file = os::file_word(fd);
  item.event = event;
  const Ref socket = find(fd);
  const State state = socket ? socket->state.load() : State::Plain;
  item.in_kernel = state != State::Connecting && state != State::Connected;
  if (item.in_kernel && real::epoll_ctl(set.fd, EPOLL_CTL_ADD, fd, &item.event) != 0) return -1;
  note_member(fd, item.file);
  set.items.push_back(item);
  if (set.sleeping > 0) wake_sleepers();
  return 0;
}

int change(Epoll& set, int operation, int fd, epoll_event* event) {
  const std::lock_guard guard(set.mutex);
  auto found = std::find_if(set.items.begin(), set.items.end(),
                            [fd](const Item& item) { return item.fd == fd; });
  if (found != set.items.end() && !still_means(fd, found->file)) {
    set.items.erase(found);
    found = set.items.end();
  }
  const bool exists = found != set.items.end();
  if (operation == EPOLL_CTL_ADD) {
    if (!exists) return add_item(set, fd, *event);
    errno = EEXIST;
    return -1;
  }
  if (!exists) return real::epoll_ctl(set.fd, operation, fd, event);
  const int result = found->in_kernel ? real::epoll_ctl(set.fd, operation, fd, event) : 0;
  if (result != 0) return result;
  if (operation == EPOLL_CTL_DEL) {
    set.items.erase(found);
  } else {
    found->event = *event;
    found->disabled = false;
    found->reported = 0;
  }
  if (set.sleeping > 0) wake_sleepers();
  return 0;
}

// The set of a call that waits.
class HeldSet {
 public:
  explicit HeldSet(int fd) {
    if (!may_be_set(fd)) return;
    ::pthread_testcancel();
    call_.enter(clean, this);
    set_ = find_set(fd);
  }
  explicit operator bool() const { return set_ != nullptr; }
  Epoll& operator*() const { return *set_; }

 private:
  static void clean(void* held) { static_cast<HeldSet*>(held)->set_.reset(); }

  Uncancelled call_;  // first: it leaves last
  Handle set_;
};

int wait_with(int set_fd, epoll_event* events, int room, const Deadline& deadline, int timeout,
              const sigset_t* mask) {
  {
    const HeldSet set(set_fd);
    if (set) return wait_in(*set, events, room, deadline, mask);
  }
  return real::epoll_pwait(set_fd, events, room, timeout, mask);
}

}  // namespace

extern "C" {

int sockets_epoll_ctl(int set_fd, int operation, int fd, epoll_event* event)
    IB_STANDS_FOR("epoll_ctl");
int sockets_epoll_ctl(int set_fd, int operation, int fd, epoll_event* event) {
  const int most = kMostDescriptors;
  const NotWaiting call;
  if (!is_on() || set_fd < 0 || set_fd >= most || fd < 0 || fd >= most) {
    return real::epoll_ctl(set_fd, operation, fd, event);
  }
  Handle set = find_set(set_fd);
  if (operation == EPOLL_CTL_ADD && event != nullptr && (find(fd) || may_connect(fd))) {
    if (!set) set = make_set(set_fd);
    if (set) return change(*set, operation, fd, event);
  }
  if (!set || (operation != EPOLL_CTL_DEL && event == nullptr)) {
    return real::epoll_ctl(set_fd, operation, fd, event);
  }
  if (operation == EPOLL_CTL_ADD) return real::epoll_ctl(set_fd, operation, fd, event);
  return change(*set, operation, fd, event);
}

int sockets_epoll_wait(int set, epoll_event* events, int room, int timeout)
    IB_STANDS_FOR("epoll_wait");
int sockets_epoll_wait(int set, epoll_event* events, int room, int timeout) {
  return wait_with(set, events, room, Deadline::after_ms(timeout), timeout, nullptr);
}

int sockets_epoll_pwait(int set, epoll_event* events, int room, int timeout, const sigset_t* mask)
    IB_STANDS_FOR("epoll_pwait");
int sockets_epoll_pwait(int set, epoll_event* events, int room, int timeout, const sigset_t* mask) {
  return wait_with(set, events, room, Deadline::after_ms(timeout), timeout, mask);
}

int sockets_epoll_pwait2(int set, epoll_event* events, int room, const timespec* timeout,
                         const sigset_t* mask) IB_STANDS_FOR("epoll_pwait2");
int sockets_epoll_pwait2(int set, epoll_event* events, int room, const timespec* timeout,
                         const sigset_t* mask) {
  const Deadline deadline(timeout);
  return wait_with(set, events, room, deadline, deadline.left_ms(), mask);
}

#if __TIMESIZE == 32
int sockets_epoll_pwait2_time64(int set, epoll_event* events, int room, const Timespec64* timeout,
                                const sigset_t* mask) IB_STANDS_FOR("__epoll_pwait2_time64");
int sockets_epoll_pwait2_time64(int set, epoll_event* events, int room, const Timespec64* timeout,
                                const sigset_t* mask) {
  const Deadline deadline(Narrow(timeout).get());
  return wait_with(set, events, room, deadline, deadline.left_ms(), mask);
}
#endif

}  // extern "C"
}  // namespace ib::host_abi::sockets
