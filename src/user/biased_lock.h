// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// BiasedLock: a SpinLock that costs its usual thread no atomic exchange.
//
// A queue is posted to and polled by one thread, nearly always, and an exchange there waits until
// all earlier stores have left the core: after a message, the time of a cache line from the peer's.
// The first thread that locks it so often that it is not only setting the queue up owns the bias,
// and takes the lock with plain stores. Any other takes the spin lock, shuts the owner out, and
// lets barriers_.threads() do the exchange's work. That costs a hundred exchanges: if others come
// more than a few times, the bias is given up and does not return.
//
// Where there are no asymmetric barriers it is a SpinLock. The service thread's try_lock() never
// counts against the bias.
//
// Memory order. Those who come by the spin lock are ordered by it, so `owner_`, `by_spin_lock_` and
// the fields under it are relaxed: a thread finds its own number in `owner_` only if it stored it
// itself, and reads `by_spin_lock_` while it holds the lock. Owner and others meet in two words:
// `inside_` and `shut_` are stored and read crosswise, with the barrier between, and whoever waits
// for a zero acquires what was released with it.
#pragma once

#include "platform/barriers.h"
#include "platform/this_thread.h"
#include "user/spin_lock.h"

#include <atomic>
#include <cstdint>
#include <thread>  // tidy: allow(layers) yield only

namespace ib::user {

class BiasedLock {
 public:
  static constexpr std::uint32_t kLocksToOwn = 16;  // in a row
  static constexpr std::uint32_t kMostForeignLocks = 8;

  explicit BiasedLock(platform::Barriers& barriers)
      : barriers_(barriers), owner_(barriers.joined() ? kNotYet : kNobody) {}
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  void lock() {
    if (!enter()) [[unlikely]]
      lock_slowly();
  }
  void unlock() {
    if (by_spin_lock_.load(std::memory_order_relaxed)) [[unlikely]]
      return unlock_slowly();
    leave();
  }
  // Returns false if it is held, by any thread.
  bool try_lock();

  // The owner's way in and out by itself, for code that has no register left for the others: if
  // enter() fails, lock(). unlock() may stand in for leave().
  bool enter() {
    return owner_.load(std::memory_order_relaxed) == this_thread() && enter_as_owner();
  }
  void leave() { inside_.store(0, std::memory_order_release); }

 private:
  static constexpr std::uintptr_t kNotYet = 0;
  static constexpr std::uintptr_t kNobody = 1;  // ever again

  static std::uintptr_t this_thread() { return platform::this_thread(); }
  // Returns false if the owner is shut out at present.
  bool enter_as_owner() {
    inside_.store(1, std::memory_order_relaxed);
    platform::light_barrier();  // pairs with shut_out()
    if (shut_.load(std::memory_order_acquire) == 0) [[likely]]
      return true;
    leave();
    return false;
  }
  // Out of line, since they would cost those who do not need them registers.
  [[gnu::noinline]] void lock_slowly() {
    spin_.lock();
    const std::uintptr_t owner = owner_.load(std::memory_order_relaxed);
    if (owner == kNotYet) {
      if (candidate_ != this_thread()) locks_in_a_row_ = 0;
      candidate_ = this_thread();
      if (++locks_in_a_row_ >= kLocksToOwn) owner_.store(candidate_, std::memory_order_relaxed);
    } else if (owner != kNobody && owner != this_thread()) {
      (void)shut_out(true);
      if (++strangers_ > kMostForeignLocks) owner_.store(kNobody, std::memory_order_relaxed);
    }
    by_spin_lock_.store(true, std::memory_order_relaxed);
  }
  [[gnu::noinline]] void unlock_slowly() {
    by_spin_lock_.store(false, std::memory_order_relaxed);
    // Without an owner the shutter stays down: a former one may just be on its way in.
    if (owner_.load(std::memory_order_relaxed) != kNobody)
      shut_.store(0, std::memory_order_release);
    spin_.unlock();
  }
  bool shut_out(bool wait);

  platform::Barriers& barriers_;
  std::atomic<std::uintptr_t> owner_;
  std::atomic<std::uint32_t> inside_{0};   // owner: holds it, by bias
  std::atomic<std::uint32_t> shut_{0};     // holder of spin_: the bias does not count
  std::atomic<bool> by_spin_lock_{false};  // how the holder took it
  // Under spin_:
  std::uintptr_t candidate_ = kNotYet;
  std::uint32_t locks_in_a_row_ = 0;
  std::uint32_t strangers_ = 0;
  SpinLock spin_;
};

inline bool BiasedLock::try_lock() {
  const std::uintptr_t owner = owner_.load(std::memory_order_relaxed);
  if (inside_.load(std::memory_order_relaxed) != 0 ||
      by_spin_lock_.load(std::memory_order_relaxed)) {
    return false;
  }
  if (owner == this_thread() && enter_as_owner()) return true;
  if (!spin_.try_lock()) return false;
  if (owner_.load(std::memory_order_relaxed) > kNobody && !shut_out(false)) {
    spin_.unlock();
    return false;
  }
  by_spin_lock_.store(true, std::memory_order_relaxed);
  return true;
}

// The holder of spin_ becomes the only one, or not, if the owner is inside and `wait` is false.
inline bool BiasedLock::shut_out(bool wait) {
  shut_.store(1, std::memory_order_relaxed);
  barriers_.threads();  // the owner has either stored inside_ or will see shut_
  while (inside_.load(std::memory_order_acquire) != 0) {
    if (!wait) {
      shut_.store(0, std::memory_order_release);
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

}  // namespace ib::user
