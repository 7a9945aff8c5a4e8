// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records by number, under one lock: written after each epoll_ctl(), used when a TCP socket gives
// its number to a link, after reads of streams in edge-triggered sets, and before reads of others.
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
  bool is_checked = false;  // since it was made or changed
  Record* next = nullptr;
};

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Changed under the lock.
constinit std::array<std::atomic<Record*>, kMostDescriptors> records{};
constinit Record* unused = nullptr;
constinit std::array<std::atomic<bool>, kMostDescriptors> sets{};
// How many records have the same set and data, by a hash of both.
constexpr std::size_t kHashes = 65536;
constinit std::array<std::uint32_t, kHashes> same{};

std::uint32_t& same_as(const Record& record) {
  const std::uint64_t data = record.event.data.u64;  // not aligned: the structure is packed
  const auto set = static_cast<std::uint64_t>(record.set);
  return same[((data ^ set << 40) * 0x9E37'79B9'7F4A'7C15) >> 48];
}

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
    --same_as(*one);
    one->next = unused;
    unused = one;
    return;
  }
}

// Nothing if memory is short: then the set does without the stream.
Record* make_record(int fd, int set, const epoll_event& event) {
  Record* one = unused;
  if (one != nullptr) {
    unused = one->next;
  } else {
    one = new (std::nothrow) Record;
  }
  if (one == nullptr) return nullptr;
  one->set = set;
  one->event = event;
  one->is_checked = false;
  ++same_as(*one);
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
  if (has_place(set)) sets[static_cast<std::size_t>(set)].store(true, std::memory_order_relaxed);
  Record* const one = find_record(fd, set);
  if (one == nullptr) {
    if (operation == EPOLL_CTL_ADD) make_record(fd, set, *event);
    return;
  }
  --same_as(*one);
  one->event = *event;
  one->is_checked = false;
  ++same_as(*one);
}

std::optional<EpollRecord> only_record(int fd) {
  if (!has_epoll_records(fd)) return std::nullopt;
  const Locked locked;
  const Record* const one = list_of(fd).load();
  if (one == nullptr || one->next != nullptr || same_as(*one) != 1) return std::nullopt;
  return EpollRecord{one->set, one->event, one->is_checked};
}

void note_checked(int fd, int set) {
  const Locked locked;
  if (Record* const one = find_record(fd, set)) one->is_checked = true;
}

bool was_set(int set) {
  return has_place(set) && sets[static_cast<std::size_t>(set)].load(std::memory_order_relaxed);
}

void forget_records_of_set(int set) {
  const Locked locked;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (list_of(fd).load(std::memory_order_relaxed) != nullptr) remove_record(fd, set);
  }
  sets[static_cast<std::size_t>(set)].store(false, std::memory_order_relaxed);
}

bool has_epoll_records(int fd) {
  return has_place(fd) && list_of(fd).load(std::memory_order_relaxed) != nullptr;
}

void forget_epoll_records(int fd) {
  if (!has_epoll_records(fd)) return;
  const Locked locked;
  while (const Record* one = list_of(fd).load()) remove_record(fd, one->set);
}

void leave_epoll_sets(int fd) {
  if (!has_epoll_records(fd)) return;
  const int error = errno;
  const Locked locked;
  while (const Record* one = list_of(fd).load()) {
    epoll_event none{};
    real::epoll_ctl(one->set, EPOLL_CTL_DEL, fd, &none);
    remove_record(fd, one->set);
  }
  errno = error;
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
    if (real::epoll_ctl(one.set, EPOLL_CTL_ADD, fd_, &one.event) == 0) {
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
