// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records by number, under one lock: written after each epoll_ctl(), used when a TCP socket gives
// its number to a link, after reads of streams in edge-triggered sets, and before reads of others.
// Changes of those that are left rung may be kept here until the kernel has to be told.
#include "host_abi/streams/epoll_records.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/set_waiters.h"
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
  epoll_event event{};      // that the program wants
  epoll_event in_kernel{};  // that the kernel has
  bool is_deleted = false;  // by the program, and not in the kernel
  bool is_checked = false;  // since the kernel was told last
  Record* next = nullptr;
};

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Changed under the lock.
constinit std::array<std::atomic<Record*>, kMostDescriptors> records{};
constinit Record* unused = nullptr;
// How many records have the same set and data, by a hash of both.
constexpr std::size_t kHashes = 65536;
constinit std::array<std::uint32_t, kHashes> same{};

constinit std::atomic<int> late_count{0};

// Not aligned: the structure is packed.
std::uint64_t data_of(const epoll_event& event) {
  return event.data.u64;
}
std::uint32_t& same_as(int set, std::uint64_t data) {
  const auto number = static_cast<std::uint64_t>(set);
  return same[((data ^ number << 40) * 0x9E37'79B9'7F4A'7C15) >> 48];
}

bool are_same(const epoll_event& one, const epoll_event& other) {
  return one.events == other.events && data_of(one) == data_of(other);
}
bool is_late(const Record& record) {
  return record.is_deleted || !are_same(record.event, record.in_kernel);
}

// A record counts from when it is as it should be until it changes.
void count(const Record& record, bool begins) {
  const std::uint32_t change = begins ? 1u : ~0u;
  same_as(record.set, data_of(record.in_kernel)) += change;
  const bool has_others = !record.is_deleted && data_of(record.event) != data_of(record.in_kernel);
  if (has_others) same_as(record.set, data_of(record.event)) += change;
  if (is_late(record)) late_count.fetch_add(begins ? 1 : -1);
}

void note_told(Record& record, const epoll_event& event, bool is_checked) {
  count(record, false);
  record.event = record.in_kernel = event;
  record.is_deleted = false;
  record.is_checked = is_checked;
  count(record, true);
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
    count(*one, false);
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
  one->event = one->in_kernel = event;
  one->is_deleted = false;
  one->is_checked = false;
  count(*one, true);
  one->next = list_of(fd).load();
  list_of(fd).store(one);
  return one;
}

// Those whose readiness memory tells of.
bool is_simple(std::uint32_t events) {
  return events != 0 && (events & ~std::uint32_t{EPOLLIN | EPOLLOUT}) == 0;
}

// Under the lock. Whether the kernel has the entry that it was told of: it was added, but the set
// may have been closed by system call since, and be another one now.
bool check(int fd, Record& record) {
  if (record.is_checked) return true;
  epoll_event event = record.in_kernel;
  const int error = errno;
  record.is_checked = real::epoll_ctl(record.set, EPOLL_CTL_MOD, fd, &event) == 0;
  errno = error;
  return record.is_checked;
}

// Under the lock. If that fails, the set is gone.
void tell(int fd) {
  for (Record* one = list_of(fd).load(); one != nullptr;) {
    Record* const next = one->next;
    if (is_late(*one)) {
      epoll_event event = one->event;
      const int operation = one->is_deleted ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
      const bool is_told = real::epoll_ctl(one->set, operation, fd, &event) == 0;
      if (is_told && !one->is_deleted) {
        note_told(*one, event, true);
      } else {
        remove_record(fd, one->set);
      }
    }
    one = next;
  }
}

}  // namespace

void record_epoll(int set, int operation, int fd, const epoll_event* event) {
  if (!has_place(fd)) return;
  const Locked locked;
  if (operation == EPOLL_CTL_DEL) {
    remove_record(fd, set);
    return;
  }
  note_added(set);
  Record* const one = find_record(fd, set);
  if (one == nullptr) {
    if (operation == EPOLL_CTL_ADD) make_record(fd, set, *event);
    return;
  }
  note_told(*one, *event, false);
}

std::optional<EpollRecord> only_record(int fd) {
  if (!has_epoll_records(fd)) return std::nullopt;
  const Locked locked;
  const Record* const one = list_of(fd).load();
  if (one == nullptr || one->next != nullptr || one->is_deleted) return std::nullopt;
  if (same_as(one->set, data_of(one->event)) != 1) return std::nullopt;
  return EpollRecord{one->set, one->event};
}

bool is_in_kernel(int fd, int set) {
  const Locked locked;
  Record* const one = find_record(fd, set);
  return one != nullptr && check(fd, *one);
}

// Errors are the kernel's: it is told at once of what it would refuse.
std::optional<bool> change_late(int set, int operation, int fd, const epoll_event* event,
                                const Socket& stream, LeftBy by) {
  const bool deletes = operation == EPOLL_CTL_DEL;
  if (!deletes && operation != EPOLL_CTL_ADD && operation != EPOLL_CTL_MOD) return std::nullopt;
  if (!has_place(fd) || (!deletes && (event == nullptr || !is_simple(event->events))))
    return std::nullopt;
  const Locked locked;
  Record* const one = list_of(fd).load();
  if (one == nullptr || one->next != nullptr || one->set != set ||
      one->is_deleted != (operation == EPOLL_CTL_ADD) || left_by(stream).word() != by.word()) {
    return std::nullopt;
  }
  const std::uint64_t in_kernel = data_of(one->in_kernel);
  const bool is_found = is_simple(one->in_kernel.events) &&
                        (one->in_kernel.events & EPOLLIN) != 0 && same_as(set, in_kernel) == 1;
  if (!is_found || !check(fd, *one)) return std::nullopt;
  Record changed = *one;
  changed.is_deleted = deletes;
  if (!deletes) changed.event = *event;
  count(*one, false);
  const bool is_new = !deletes && data_of(changed.event) != in_kernel;
  const bool is_unique = !is_new || same_as(set, data_of(changed.event)) == 0;
  if (is_unique) *one = changed;
  count(*one, true);
  if (!is_unique) return std::nullopt;
  return is_late(*one);
}

bool is_late(int fd) {
  if (!is_any_late() || !has_epoll_records(fd)) return false;
  const Locked locked;
  const Record* one = list_of(fd).load();
  while (one != nullptr && !is_late(*one)) one = one->next;
  return one != nullptr;
}

bool is_any_late() {
  return late_count.load(std::memory_order_relaxed) > 0;
}

bool may_be_mistaken(int set, int fd, std::uint64_t data) {
  const Locked locked;
  const Record* const own = has_place(fd) ? find_record(fd, set) : nullptr;
  const bool is_own = own != nullptr && data_of(own->in_kernel) == data;
  return same_as(set, data) != (is_own ? 1 : 0);
}

bool tell_and_stop_leaving(int fd, Socket& stream) {
  if (!has_epoll_records(fd)) return stop_leaving(stream);
  const int error = errno;
  const Locked locked;
  tell(fd);
  errno = error;
  return stop_leaving(stream);
}

void forget_records_of_set(int set) {
  const Locked locked;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (list_of(fd).load(std::memory_order_relaxed) != nullptr) remove_record(fd, set);
  }
  forget_waiter(set);
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
