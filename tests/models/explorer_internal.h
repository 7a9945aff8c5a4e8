// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One search and the run that it is at (explorer.h).
#pragma once

#include "tests/models/explorer.h"
#include "tests/models/views.h"

#include <ucontext.h>

#include <map>
#include <memory>

namespace ib::models {

// The next operation of a thread.
struct Step {
  enum class Kind { Begin, Load, Store, Modify, Fence, Barrier, Anything };
  Kind kind = Kind::Begin;
  const void* place = nullptr;
  bool ordered = false;        // seq_cst
  std::size_t target = ~0ull;  // Barrier: in which thread
};

// Whether two steps of different threads have the same effect in both orders.
bool are_independent(std::size_t thread, const Step& step, std::size_t other, const Step& next);

struct Fiber {
  std::function<void()> body;
  ucontext_t context{};
  Step step;
  View now;       // what it must see
  View acquired;  // and after an acquire fence
  View released;  // as of its last release fence
  bool ended = false;
  bool mortal = false;
  const void* asleep_on = nullptr;
  std::size_t awaits = ~0ull;
  bool spins = false;  // often enough; it goes on when nobody else can
  unsigned rounds = 0;
  // A thread that loads one value again and again spins, whether it says so or not.
  const void* loaded = nullptr;
  Time loaded_at = 0;
  unsigned repeated = 0;
  std::uint64_t chance_at = ~0ull;  // after which store it was shown all values
};

// A choice of the run: of a thread to go on, or of a value. Kept from run to run.
struct Choice {
  std::vector<std::size_t> options;
  std::size_t taken = 0;
  std::set<std::size_t> asleep;  // of a thread: those that were tried before in an equal state
};

class Search {
 public:
  Search(const std::function<void(Scene&)>& build, std::uint64_t most)
      : build_(build), most_(most) {}
  Outcome go();

  // Of the running fiber:
  std::size_t self() const { return self_; }
  void announce(const Step& step);
  std::uint64_t load(const Access& access);
  void store(const Access& access, std::uint64_t value);
  std::uint64_t modify(const Access& access, const Change& change);
  void fence(std::memory_order order);
  void barrier_in(std::size_t thread);
  void spin();
  void sleep_on(const void* word, unsigned size, std::uint64_t value);
  void wake(const void* word);
  void await_end(std::size_t thread);
  void touch(const void* place, bool write);
  void fail(const std::string& what);
  std::size_t threads() const { return fibers_.size(); }

 private:
  struct Touched {
    std::array<std::uint32_t, kMaxThreads> read{}, written{};
  };
  static constexpr std::size_t kKill = kMaxThreads;  // added to a thread's number

  void run_once();
  bool schedule();
  void resume(std::size_t thread);
  bool can_go_on(const Fiber& fiber) const;
  std::vector<std::size_t> ready() const;
  void give_spinners_a_chance();
  Step step_of(std::size_t option) const;
  std::size_t choose_value(std::size_t count);
  bool next_way();
  History& history(const void* place, unsigned size, std::size_t& index);
  std::memory_order effective(const Access& access, std::memory_order order) const;
  void full_fence(Fiber& fiber);
  void take(Fiber& fiber, const Message& message, std::memory_order order);
  void put(std::size_t place, const Access& access, std::size_t after, std::uint64_t value,
           const Message* read);
  void note(std::string text);
  void stop_here();

  const std::function<void(Scene&)>& build_;
  std::uint64_t most_;
  std::vector<std::unique_ptr<char[]>> stacks_;

  // Of this run:
  Scene scene_;
  std::vector<Fiber> fibers_;
  ucontext_t scheduler_{};
  std::size_t self_ = 0;
  std::map<const void*, std::size_t> places_;
  std::vector<History> histories_;
  std::map<const void*, Touched> touched_;
  View ordered_;  // of the total order of seq_cst
  std::uint64_t stores_ = 0;
  std::vector<std::string> notes_;
  std::string failure_;
  std::set<std::size_t> asleep_;  // before the next choice of a thread

  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
};

}  // namespace ib::models
