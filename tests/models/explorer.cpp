// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The search: which thread goes on, and all ways that are left.
#include "tests/models/explorer_internal.h"

#include <cstdlib>

namespace ib::models {

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kMostSteps = 400;

Search* current = nullptr;  // the one that runs

void fiber_main(unsigned low, unsigned high) {
  auto* fiber = reinterpret_cast<Fiber*>(std::uintptr_t{low} | std::uintptr_t{high} << 32);
  fiber->body();
  fiber->ended = true;
}

bool is_write(Step::Kind kind) {
  return kind == Step::Kind::Store || kind == Step::Kind::Modify;
}

}  // namespace

Search* running() {
  return current;
}

bool are_independent(std::size_t thread, const Step& step, std::size_t other, const Step& next) {
  using Kind = Step::Kind;
  if (step.kind == Kind::Anything || next.kind == Kind::Anything) return false;
  if (step.target == other || next.target == thread) return false;
  if (step.kind == Kind::Begin || next.kind == Kind::Begin) return true;
  // Fences are in one order with all that is seq_cst.
  if (step.ordered && next.ordered && (step.place == nullptr || next.place == nullptr))
    return false;
  return step.place != next.place || (!is_write(step.kind) && !is_write(next.kind));
}

Outcome Search::go() {
  Outcome outcome;
  do {
    run_once();
    ++outcome.runs;
    if (!failure_.empty()) {
      outcome.failure = failure_;
      for (const std::string& note : notes_) outcome.failure += "\n  " + note;
      return outcome;
    }
  } while (next_way() && outcome.runs < most_);
  outcome.complete = choices_.empty();
  return outcome;
}

void Search::run_once() {
  current = nullptr;  // atomics that are set up are plain
  scene_ = Scene();
  fibers_.clear();
  places_.clear();
  histories_.clear();
  touched_.clear();
  ordered_ = View();
  stores_ = 0;
  notes_.clear();
  asleep_.clear();
  depth_ = 0;
  build_(scene_);
  fibers_.resize(scene_.threads_.size());
  if (fibers_.size() > kMaxThreads) std::abort();
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    if (stacks_.size() <= i) stacks_.push_back(std::make_unique<char[]>(kStackBytes));
    Fiber& fiber = fibers_[i];
    fiber.body = scene_.threads_[i];
    fiber.mortal = scene_.mortal_.contains(i);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks_[i].get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<std::uintptr_t>(&fiber);
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(fiber_main), 2,
                static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
  }
  current = this;
  // To the first step of each.
  for (std::size_t i = 0; i < fibers_.size() && failure_.empty(); ++i) resume(i);
  for (std::size_t steps = 0; steps < kMostSteps && schedule(); ++steps) {}
  current = nullptr;
  const bool all =
      std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& f) { return f.ended; });
  if (failure_.empty() && all && scene_.finally_) {
    current = this;  // for require()
    self_ = kMaxThreads;
    scene_.finally_();
    current = nullptr;
  }
}

// One step of one thread. Returns false at the end of the run.
bool Search::schedule() {
  if (!failure_.empty()) return false;
  if (std::none_of(fibers_.begin(), fibers_.end(),
                   [this](const Fiber& f) { return can_go_on(f); })) {
    give_spinners_a_chance();
  }
  const std::vector<std::size_t> options = ready();
  if (options.empty()) {
    const bool waits =
        std::any_of(fibers_.begin(), fibers_.end(), [](const Fiber& f) { return !f.ended; });
    if (waits) fail("a thread waits for ever");
    return false;
  }
  if (depth_ == choices_.size()) choices_.push_back({options, 0, asleep_});
  Choice& choice = choices_[depth_];
  // Those that sleep were tried before, from a state that differs by steps which do not matter to
  // them.
  while (choice.taken < choice.options.size() &&
         choice.asleep.contains(choice.options[choice.taken])) {
    ++choice.taken;
  }
  if (choice.taken == choice.options.size()) return false;
  ++depth_;
  const std::size_t option = choice.options[choice.taken];
  const std::size_t thread = option % kKill;
  const Step step = step_of(option);
  asleep_.clear();
  for (const std::size_t other : choice.asleep) {
    if (other % kKill != thread && are_independent(other % kKill, step_of(other), thread, step)) {
      asleep_.insert(other);
    }
  }
  if (option >= kKill) {
    note("thread " + std::to_string(thread) + " is killed");
    fibers_[thread].ended = true;
    return true;
  }
  resume(thread);
  return true;
}

Step Search::step_of(std::size_t option) const {
  return option < kKill ? fibers_[option].step : Step{Step::Kind::Anything};
}

void Search::resume(std::size_t thread) {
  self_ = thread;
  swapcontext(&scheduler_, &fibers_[thread].context);
}

bool Search::can_go_on(const Fiber& fiber) const {
  if (fiber.ended || fiber.asleep_on != nullptr) return false;
  if (fiber.awaits < fibers_.size() && !fibers_[fiber.awaits].ended) return false;
  return !fiber.spins;
}

std::vector<std::size_t> Search::ready() const {
  std::vector<std::size_t> options;
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    if (can_go_on(fibers_[i])) options.push_back(i);
  }
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    if (fibers_[i].mortal && !fibers_[i].ended) options.push_back(i + kKill);
  }
  return options;
}

// All values get everywhere in the end: a thread that spins on an old one sees the newest once.
void Search::give_spinners_a_chance() {
  for (Fiber& fiber : fibers_) {
    if (fiber.ended || !fiber.spins || fiber.chance_at == stores_) continue;
    for (std::size_t i = 0; i < histories_.size(); ++i) {
      fiber.now.seen[i] = histories_[i].messages.back().time;
    }
    fiber.chance_at = stores_;
    fiber.spins = false;
  }
}

std::size_t Search::choose_value(std::size_t count) {
  if (count == 1) return 0;
  if (depth_ == choices_.size()) {
    Choice choice;
    for (std::size_t i = 0; i < count; ++i) choice.options.push_back(i);
    choices_.push_back(choice);
  }
  Choice& choice = choices_[depth_++];
  return choice.options[choice.taken];
}

// Returns false if all ways were tried.
bool Search::next_way() {
  choices_.resize(std::min(depth_ + 1, choices_.size()));
  while (!choices_.empty()) {
    Choice& choice = choices_.back();
    if (choice.taken < choice.options.size()) {
      choice.asleep.insert(choice.options[choice.taken]);
      if (++choice.taken < choice.options.size()) return true;
    }
    choices_.pop_back();
  }
  return false;
}

void Search::announce(const Step& step) {
  Fiber& fiber = fibers_[self_];
  fiber.step = step;
  swapcontext(&fiber.context, &scheduler_);
}

void Search::stop_here() {
  swapcontext(&fibers_[self_].context, &scheduler_);
}

void Search::note(std::string text) {
  notes_.push_back(std::move(text));
}

void Search::fail(const std::string& what) {
  if (failure_.empty()) failure_ = what;
  if (self_ < fibers_.size()) stop_here();
}

Outcome explore(const std::function<void(Scene&)>& build, std::uint64_t most_runs) {
  Search search(build, most_runs);
  return search.go();
}

}  // namespace ib::models
