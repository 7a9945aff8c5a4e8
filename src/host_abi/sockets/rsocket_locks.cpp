// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/rsocket_locks.h"

#include "host_abi/sockets/table.h"
#include "linux/process/cpu_pause.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <utility>

namespace ib::host_abi::sockets {
namespace {

struct Lock {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> endings{0};
};
constinit std::array<Lock, kMostDescriptors> locks{};

constexpr int kTries = 200;
constexpr long kNap = 50'000;  // ns
constexpr int kFewNaps = 1'000;

bool has_lock(int rs) {
  return rs >= 0 && rs < kMostDescriptors;
}

Lock& lock_of(int rs) {
  return locks[static_cast<std::size_t>(rs)];
}

// Most calls are shorter than a sleep.
bool lock_briefly(Lock& lock) {
  for (int i = 0; i < kTries; ++i) {
    if (::pthread_mutex_trylock(&lock.mutex) == 0) return true;
    os::cpu_pause();
  }
  return false;
}

// Naps: ThreadSanitizer takes pthread_mutex_clocklock() for no lock.
template <class Continue>
bool lock_while(Lock& lock, const Continue& may_go_on) {
  while (may_go_on()) {
    if (lock_briefly(lock)) return true;
    const timespec nap{0, kNap};
    const int error = errno;
    ::nanosleep(&nap, nullptr);
    errno = error;
  }
  return false;
}

bool lock_unless_ending(Lock& lock) {
  return lock_while(lock, [&] { return lock.endings.load() == 0; });
}

bool lock_with(Alone::Patience patience, Lock& lock) {
  int naps = kFewNaps;
  switch (patience) {
    case Alone::Patience::UnlessEnding: return lock_unless_ending(lock);
    case Alone::Patience::Endless: return ::pthread_mutex_lock(&lock.mutex) == 0;
    case Alone::Patience::Short: return lock_while(lock, [&] { return naps-- > 0; });
  }
  return false;
}

}  // namespace

Alone::Alone(int rs, Patience patience)
    : rs_(rs), valid_(!has_lock(rs) || lock_with(patience, lock_of(rs))) {}

Alone::~Alone() {
  if (valid_ && has_lock(rs_)) ::pthread_mutex_unlock(&lock_of(rs_).mutex);
}

Ending::Ending(int rs) : rs_(rs) {
  if (has_lock(rs)) lock_of(rs).endings.fetch_add(1);
}

Ending::~Ending() {
  if (has_lock(rs_)) lock_of(rs_).endings.fetch_sub(1);
}

AllAlone::AllAlone(const pollfd* entries, nfds_t count) : numbers_(count), held_(count) {
  if (!valid()) return;
  for (nfds_t i = 0; i < count; ++i) {
    if (has_lock(entries[i].fd)) numbers_[count_++] = entries[i].fd;
  }
  int* const end = numbers_.get() + count_;
  if (!std::is_sorted(numbers_.get(), end)) std::sort(numbers_.get(), end);
  count_ = static_cast<std::size_t>(std::unique(numbers_.get(), end) - numbers_.get());
}

void AllAlone::take() {
  for (std::size_t i = 0; i < count_; ++i) held_[i] = lock_unless_ending(lock_of(numbers_[i]));
}

void AllAlone::release() {
  for (std::size_t i = 0; i < count_; ++i) {
    if (!std::exchange(held_[i], false)) continue;
    ::pthread_mutex_unlock(&lock_of(numbers_[i]).mutex);
  }
}

bool AllAlone::has(int rs) {
  if (!has_lock(rs)) return true;
  const int* const begin = numbers_.get();
  const int* const found = std::lower_bound(begin, begin + count_, rs);
  return found != begin + count_ && *found == rs && held_[static_cast<std::size_t>(found - begin)];
}

}  // namespace ib::host_abi::sockets
