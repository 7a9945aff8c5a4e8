// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Explorer: runs a protocol of a few threads in every way that C++ allows, weak memory included.
//
// The threads are fibers, which stop before each atomic operation; the explorer chooses who goes
// on. Each atomic keeps all values that it ever had, in their modification order, and a thread a
// view: how far it must see each of them. A load returns any value from there on. A release store
// stores the view of its thread with the value, an acquire load takes it over, and fences of order
// seq_cst exchange views in one total order. So a thread may read what is old, a store may take
// effect before an older one of another thread, but no load returns what is stored later (C++
// permits that for relaxed operations; no protocol here has it both ways).
//
// All choices are tried, but for those that only swap two steps that do not concern each other
// (sleep sets). Data that is not atomic is touched (touch_read, touch_write): two accesses, one of
// them a write, that no synchronisation orders are a race, and an error.
//
// Not for sanitizers: threads that a run leaves in the middle are dropped with all they hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace ib::models {

// A mistake that is made at run time, to show that a model detects it.
struct Weakened {
  const void* place = nullptr;  // operations on this atomic are relaxed
  bool places = false;          // all are
  bool fences = false;          // fences of order seq_cst do nothing
  bool barriers = false;        // barriers in other threads do nothing
};

// The threads of one run; each run has its own.
class Scene {
 public:
  void thread(std::function<void()> body) { threads_.push_back(std::move(body)); }
  // After all threads have ended.
  void finally(std::function<void()> check) { finally_ = std::move(check); }
  // The newest thread may end before any of its atomic operations, as by SIGKILL.
  void may_be_killed() { mortal_.insert(threads_.size() - 1); }
  // A thread that waits in a loop goes around so often as it likes; then when nobody else can go
  // on.
  void most_rounds(unsigned rounds) { most_rounds_ = rounds; }
  void weaken(const Weakened& what) { weakened_ = what; }

 private:
  friend class Search;
  std::vector<std::function<void()>> threads_;
  std::set<std::size_t> mortal_;
  std::function<void()> finally_;
  Weakened weakened_;
  unsigned most_rounds_ = 1;
};

struct Outcome {
  std::string failure;  // empty: none, with the steps that lead to it
  std::uint64_t runs = 0;
  bool complete = false;  // every way was tried
};

// Tries every way through what `build` makes, until one fails.
Outcome explore(const std::function<void(Scene&)>& build, std::uint64_t most_runs = 3'000'000);

// For the threads of a run:
inline constexpr std::size_t kNoThread = ~std::size_t{0};  // it is being set up, or over
std::size_t this_thread_number();
void require(bool holds, const char* what);
void touch_read(const void* place);
void touch_write(const void* place);
void fence(std::memory_order order);
// membarrier(2): a fence here, one in each other thread, whenever that is, and one here.
void barrier_everywhere();
// Once around a loop that waits for another thread.
void spin();
// futex(2): sleeps while the word has this value. Wakes all who sleep on it.
void sleep_on(const void* word, unsigned size, std::uint64_t value);
void wake(const void* word);
// Waits until a thread has ended or was killed, as the kernel reports it.
void await_end(std::size_t thread);

// An atomic operation on `size` bytes at `place`. change() gets the value that is read and returns
// whether it stores `next`. Returns the value that was read.
struct Access {
  void* place;
  unsigned size;
  std::memory_order order;
  std::memory_order failed;  // if nothing is stored
};
std::uint64_t load(const Access& access);
void store(const Access& access, std::uint64_t value);
using Change = std::function<bool(std::uint64_t value, std::uint64_t& next)>;
std::uint64_t modify(const Access& access, const Change& change);

}  // namespace ib::models
