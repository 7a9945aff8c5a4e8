// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Edges (EPOLLET): rsockets have levels only. An event is reported once, and again when the program
// has read or has met a full buffer since, or when there is more to report: at least the edges of
// TCP, sometimes one too many, which a program must expect anyway.
#include "host_abi/sockets/epoll.h"

#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/real_calls.h"
#include "host_abi/sockets/switch.h"
#include "host_abi/sockets/table.h"
#include "host_abi/sockets/wait.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
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

struct Item {
  int fd = -1;
  epoll_event event{};
  bool in_kernel = false;
  bool disabled = false;       // EPOLLONESHOT has fired
  std::uint32_t reported = 0;  // EPOLLET: not to be reported again
  std::uint32_t reads = 0;     // of Socket, when it was
  std::uint32_t full_writes = 0;
};

struct Epoll {
  int fd = -1;
  int kick = -1;  // an eventfd: wakes those that sleep, when an item changes
  std::mutex mutex;
  std::vector<Item> items;
  std::size_t sleeping = 0;  // threads that have listed the items, or more: some never come back
  std::size_t next = 0;      // where the next report starts, so that none starves

  ~Epoll() {
    if (kick >= 0) real::close(kick);
  }
};

using Handle = std::shared_ptr<Epoll>;

std::mutex& sets_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::vector<Handle>& sets() {
  static auto* all = new std::vector<Handle>;
  return *all;
}
constinit std::atomic<int> set_count{0};

// Descriptors that are sets, or have been members of one. librdmacm closes others, and does so
// while this file holds its locks.
constinit std::array<std::atomic<bool>, kMostDescriptors> is_concerned{};

void concern(int fd) {
  is_concerned[static_cast<std::size_t>(fd)].store(true);
}

Handle find_set(int fd) {
  if (set_count.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard guard(sets_mutex());
  for (const Handle& set : sets()) {
    if (set->fd == fd) return set;
  }
  return {};
}

Handle make_set(int fd) {
  if (Handle set = find_set(fd)) return set;
  auto set = std::make_shared<Epoll>();
  set->fd = fd;
  set->kick = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (set->kick < 0) return {};
  concern(fd);
  const std::lock_guard guard(sets_mutex());
  sets().push_back(set);
  set_count.fetch_add(1, std::memory_order_release);
  return set;
}

// The set is locked.
void wake(Epoll& set) {
  if (set.sleeping == 0) return;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(set.kick, &one, sizeof one));
}

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
  if (socket.reads.load(std::memory_order_relaxed) != item.reads) item.reported &= ~kReading;
  if (socket.full_writes.load(std::memory_order_relaxed) != item.full_writes) {
    item.reported &= ~kWriting;
  }
  return item.reported;
}

Question question_of(Item& item, const Socket& socket) {
  if (item.disabled) return {};
  const State state = socket.state.load();
  if (state == State::Connecting) return {socket.event.load(), POLLIN};
  if ((state != State::Connected && state != State::Listening) || !socket.is_own()) return {};
  const std::uint32_t without = suppressed(item, socket);
  // After a hang-up there is no other news than bytes to read.
  const std::uint32_t events = item.event.events & kConditions & ~without;
  constexpr std::uint32_t kEnd{EPOLLHUP | EPOLLERR | EPOLLRDHUP};
  if ((without & kEnd) != 0 && (events & kReading) == 0) return {};
  if (state == State::Listening && (events & kReading) == 0) return {};
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
  item.reads = socket.reads.load(std::memory_order_relaxed);
  item.full_writes = socket.full_writes.load(std::memory_order_relaxed);
}

// Reports of rsockets. Also settles the items.
int collect(Epoll& set, epoll_event* events, int room, std::vector<int>& new_listeners) {
  const std::lock_guard guard(set.mutex);
  int count = 0;
  const std::size_t total = set.items.size();
  for (std::size_t step = 0; step < total && count < room; ++step) {
    Item& item = set.items[(set.next + step) % total];
    const Ref socket = find(item.fd);
    if (socket && socket->state.load() == State::Listening &&
        (!socket->tried.load() || !socket->is_own())) {
      new_listeners.push_back(item.fd);
    }
    settle(set, item, socket);
    if (!socket) continue;
    const std::uint32_t found = events_of(item, *socket);
    if (found == 0) continue;
    note_report(item, *socket, found);
    events[count].events = found;
    events[count++].data = item.event.data;
    if (count == room) set.next = (set.next + step + 1) % total;
  }
  return count;
}

// One thread's sleep. Changes of the items after the constructor end it.
class SetSleep {
 public:
  explicit SetSleep(Epoll& set) : set_(set) {
    entries_.push_back({set.fd, POLLIN, 0});
    entries_.push_back({set.kick, POLLIN, 0});
    const std::lock_guard guard(set.mutex);
    for (Item& item : set.items) {
      Ref socket = find(item.fd);
      if (!socket) continue;
      const Question question = question_of(item, *socket);
      if (question.rs < 0) continue;
      entries_.push_back({question.rs, question.events, 0});
      sockets_.push_back(std::move(socket));
    }
    ++set.sleeping;
  }
  ~SetSleep() {
    const std::lock_guard guard(set_.mutex);
    --set_.sleeping;
  }
  SetSleep(const SetSleep&) = delete;
  SetSleep& operator=(const SetSleep&) = delete;

  int until(const Deadline& deadline, const sigset_t* mask) {
    const int result = sleep_in_rpoll(entries_.data(), entries_.size(), deadline, mask);
    if (result >= 0 && entries_[1].revents != 0) {
      std::uint64_t kicks = 0;
      static_cast<void>(!real::read(set_.kick, &kicks, sizeof kicks));
    }
    return result;
  }

 private:
  Epoll& set_;
  std::vector<pollfd> entries_;
  std::vector<Ref> sockets_;  // alive while the thread sleeps
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
    if (SetSleep(set).until(deadline, mask) < 0) return -1;
  }
}

int change(Epoll& set, int operation, int fd, epoll_event* event) {
  const std::lock_guard guard(set.mutex);
  const auto found = std::find_if(set.items.begin(), set.items.end(),
                                  [fd](const Item& item) { return item.fd == fd; });
  const bool exists = found != set.items.end();
  if (operation == EPOLL_CTL_ADD) {
    if (exists) {
      errno = EEXIST;
      return -1;
    }
    Item item;
    item.fd = fd;
    item.event = *event;
    const Ref socket = find(fd);
    const State state = socket ? socket->state.load() : State::Plain;
    item.in_kernel = state != State::Connecting && state != State::Connected;
    if (item.in_kernel && real::epoll_ctl(set.fd, operation, fd, event) != 0) return -1;
    concern(fd);
    set.items.push_back(item);
    wake(set);
    return 0;
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
  wake(set);
  return 0;
}

int wait_with(int set_fd, epoll_event* events, int room, const Deadline& deadline, int timeout,
              const sigset_t* mask) {
  const Handle set = find_set(set_fd);
  if (!set) return real::epoll_pwait(set_fd, events, room, timeout, mask);
  return wait_in(*set, events, room, deadline, mask);
}

}  // namespace

void forget_in_epolls(int fd) {
  if (set_count.load(std::memory_order_acquire) == 0 ||
      !is_concerned[static_cast<std::size_t>(fd)].load() || in_vfork_child()) {
    return;
  }
  is_concerned[static_cast<std::size_t>(fd)].store(false);
  const std::lock_guard guard(sets_mutex());
  const auto removed = std::erase_if(sets(), [fd](const Handle& set) { return set->fd == fd; });
  set_count.fetch_sub(static_cast<int>(removed), std::memory_order_release);
  for (const Handle& set : sets()) {
    const std::lock_guard items_guard(set->mutex);
    std::erase_if(set->items, [fd](const Item& item) { return item.fd == fd; });
  }
}

void release_epoll_locks_of_parent() {
  if (set_count.load() == 0) return;
  new (&sets_mutex()) std::mutex;
  for (const Handle& set : sets()) new (&set->mutex) std::mutex;
}

extern "C" {

int sockets_epoll_ctl(int set_fd, int operation, int fd, epoll_event* event)
    IB_STANDS_FOR("epoll_ctl");
int sockets_epoll_ctl(int set_fd, int operation, int fd, epoll_event* event) {
  const int most = kMostDescriptors;
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

}  // extern "C"
}  // namespace ib::host_abi::sockets
