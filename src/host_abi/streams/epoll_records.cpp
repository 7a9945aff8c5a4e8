// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records by number, under one lock: written after each epoll_ctl(), used when a TCP socket gives
// its number to a link, and after reads of streams in edge-triggered sets.
#include "host_abi/streams/epoll_records.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/table.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <new>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

struct Record {
  int set = -1;
  epoll_event event{};
  Record* next = nullptr;
};

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Changed under the lock.
constinit std::array<std::atomic<Record*>, kMostDescriptors> records{};
constinit Record* unused = nullptr;

class Locked {
 public:
  Locked() { ::pthread_mutex_lock(&lock); }
  ~Locked() { ::pthread_mutex_unlock(&lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Inside inside_;
};

std::atomic<Record*>& list_of(int fd) {
  return records[static_cast<std::size_t>(fd)];
}

Record* find_record(int fd, int set) {
  Record* one = list_of(fd).load();
  while (one != nullptr && one->set != set) one = one->next;
  return one;
}

void remove_record(int fd, int set) {
  Record* before = nullptr;
  for (Record* one = list_of(fd).load(); one != nullptr; before = one, one = one->next) {
    if (one->set != set) continue;
    if (before == nullptr) {
      list_of(fd).store(one->next);
    } else {
      before->next = one->next;
    }
    one->next = unused;
    unused = one;
    return;
  }
}

// Nothing if memory is short: then the set does without the stream.
Record* make_record(int fd, int set) {
  Record* one = unused;
  if (one != nullptr) {
    unused = one->next;
  } else {
    one = new (std::nothrow) Record;
  }
  if (one == nullptr) return nullptr;
  one->set = set;
  one->next = list_of(fd).load();
  list_of(fd).store(one);
  return one;
}

}  // namespace

void record_epoll(int set, int operation, int fd, const epoll_event* event) {
  if (!has_place(fd)) return;
  const Locked locked;
  if (operation == EPOLL_CTL_DEL) {
    remove_record(fd, set);
    return;
  }
  Record* one = find_record(fd, set);
  if (one == nullptr && operation == EPOLL_CTL_ADD) one = make_record(fd, set);
  if (one != nullptr) one->event = *event;
}

bool has_epoll_records(int fd) {
  return has_place(fd) && list_of(fd).load(std::memory_order_relaxed) != nullptr;
}

void forget_epoll_records(int fd) {
  if (!has_epoll_records(fd)) return;
  const Locked locked;
  while (const Record* one = list_of(fd).load()) remove_record(fd, one->set);
}

// The kernel looks at a file whose entry is changed, and reports it if it is ready. An entry with
// EPOLLONESHOT would report more than once; its program changes the entry itself.
void make_edges(int fd) {
  if (!has_epoll_records(fd)) return;
  const int error = errno;
  const Locked locked;
  for (Record* one = list_of(fd).load(); one != nullptr;) {
    Record* const next = one->next;
    epoll_event event = one->event;
    const bool is_edge = (event.events & EPOLLET) != 0 && (event.events & EPOLLONESHOT) == 0;
    if (is_edge && real::epoll_ctl(one->set, EPOLL_CTL_MOD, fd, &event) != 0) {
      remove_record(fd, one->set);  // the set is gone, or does without the stream
    }
    one = next;
  }
  errno = error;
}

EpollMove::EpollMove(int fd) : fd_(fd) {
  if (!has_epoll_records(fd)) return;
  const int error = errno;
  {
    const Locked locked;
    for (const Record* one = list_of(fd).load(); one != nullptr && count_ < kMost;
         one = one->next) {
      entries_[count_++] = {one->set, one->event};
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    epoll_event none{};
    if (real::epoll_ctl(entries_[i].set, EPOLL_CTL_DEL, fd, &none) == 0) {
      entries_[kept++] = entries_[i];
    }
  }
  count_ = kept;
  forget_epoll_records(fd);
  errno = error;
}

bool EpollMove::done() {
  const int error = errno;
  bool has_edges = false;
  for (std::size_t i = 0; i < count_; ++i) {
    Entry& one = entries_[i];
    const bool is_edge = (one.event.events & EPOLLET) != 0;
    if (real::epoll_ctl(one.set, EPOLL_CTL_ADD, fd_, &one.event) == 0 && is_edge) {
      record_epoll(one.set, EPOLL_CTL_ADD, fd_, &one.event);
    }
    has_edges |= is_edge;
  }
  errno = error;
  return has_edges;
}

void lock_epoll_records() {
  ::pthread_mutex_lock(&lock);
}

void unlock_epoll_records() {
  ::pthread_mutex_unlock(&lock);
}

void begin_epoll_records_as_child() {
  lock = PTHREAD_MUTEX_INITIALIZER;
}

}  // namespace ib::host_abi::stream_switch
