// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/sleepers.h"

#include "host_abi/sockets/common/file_identity.h"
#include "host_abi/sockets/common/real_calls.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <new>

namespace ib::host_abi::sockets {

// One for each thread that has slept at the same time as others.
struct SleepersPlace {
  OwnDescriptor event;
  SleepersPlace* next = nullptr;
  bool in_use = false;
  bool told = false;  // `event` is readable
};

namespace {

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit SleepersPlace* places = nullptr;
constinit std::atomic<std::uint32_t> news{0};

// Holds the lock, and keeps errno.
class Locked {
 public:
  Locked() : error_(errno) { ::pthread_mutex_lock(&lock); }
  ~Locked() {
    ::pthread_mutex_unlock(&lock);
    errno = error_;
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  int error_;
};

SleepersPlace* take_place() {
  for (SleepersPlace* place = places; place != nullptr; place = place->next) {
    if (!place->in_use && place->event.is_intact()) return place;
  }
  auto* place = new (std::nothrow) SleepersPlace;
  if (place == nullptr) return nullptr;
  place->event = OwnDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (place->event.get() < 0) {
    delete place;
    return nullptr;
  }
  place->next = places;
  return places = place;
}

}  // namespace

std::uint32_t count_of_news() {
  return news.load();
}

void wake_sleepers() {
  news.fetch_add(1);
  const Locked locked;
  for (SleepersPlace* place = places; place != nullptr; place = place->next) {
    if (!place->in_use || place->told || !place->event.is_intact()) continue;
    const std::uint64_t one = 1;
    static_cast<void>(!real::write(place->event.get(), static_cast<const void*>(&one), sizeof one));
    place->told = true;
  }
}

Sleeper::Sleeper() : place_(nullptr) {
  const Locked locked;
  place_ = take_place();
  if (place_ != nullptr) place_->in_use = true;
}

Sleeper::~Sleeper() {
  if (place_ == nullptr) return;
  const Locked locked;
  std::uint64_t count = 0;
  if (place_->told && place_->event.is_intact()) {
    static_cast<void>(!real::read(place_->event.get(), static_cast<void*>(&count), sizeof count));
  }
  place_->told = false;
  place_->in_use = false;
}

int Sleeper::fd() const {
  return place_ == nullptr ? -1 : place_->event.get();
}

void forget_sleepers_of_parent() {
  lock = PTHREAD_MUTEX_INITIALIZER;
  places = nullptr;
}

}  // namespace ib::host_abi::sockets
