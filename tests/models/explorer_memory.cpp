// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations of a thread on memory, in all the ways in which they may end.
#include "tests/models/explorer_internal.h"

#include <cstring>

namespace ib::models {

using std::memory_order;

Search* running();

namespace {

bool acquires(memory_order order) {
  return order == memory_order::acquire || order == memory_order::acq_rel ||
         order == memory_order::seq_cst || order == memory_order::consume;
}
bool releases(memory_order order) {
  return order == memory_order::release || order == memory_order::acq_rel ||
         order == memory_order::seq_cst;
}
std::uint64_t raw_load(const void* place, unsigned size) {
  std::uint64_t value = 0;
  std::memcpy(&value, place, size);
  return value;
}
std::string at(std::size_t place, std::uint64_t value) {
  return " atomic " + std::to_string(place) + ": " + std::to_string(value);
}

}  // namespace

History& Search::history(const void* place, unsigned size, std::size_t& index) {
  const auto [found, is_new] = places_.try_emplace(place, places_.size());
  index = found->second;
  if (is_new) {
    if (index >= kMaxPlaces) std::abort();
    histories_.emplace_back().messages.push_back({0, raw_load(place, size), false, {}});
  }
  return histories_[index];
}

memory_order Search::effective(const Access& access, memory_order order) const {
  return scene_.weakened_.places || access.place == scene_.weakened_.place ? memory_order::relaxed
                                                                           : order;
}

void Search::take(Fiber& fiber, const Message& message, memory_order order) {
  fiber.acquired.join(message.view);
  if (acquires(order)) fiber.now.join(message.view);
}

std::uint64_t Search::load(const Access& access) {
  const memory_order order = effective(access, access.order);
  const bool ordered = order == memory_order::seq_cst;
  if (fibers_[self_].loaded == access.place && fibers_[self_].repeated >= 2) spin();
  announce({Step::Kind::Load, access.place, ordered});
  std::size_t place = 0;
  const History& all = history(access.place, access.size, place);
  Fiber& fiber = fibers_[self_];
  Time& seen = fiber.now.seen[place];
  if (ordered) seen = std::max(seen, ordered_.seen[place]);
  const std::size_t oldest = all.first_from(seen);
  // The newest first.
  const std::size_t back = choose_value(all.messages.size() - oldest);
  const Message& message = all.messages[all.messages.size() - 1 - back];
  seen = message.time;
  take(fiber, message, order);
  note("thread " + std::to_string(self_) + " loads" + at(place, message.value) +
       (back != 0 ? ", which is old" : ""));
  const std::uint64_t value = message.value;
  const bool again = fiber.loaded == access.place && fiber.loaded_at == message.time;
  fiber.repeated = again ? fiber.repeated + 1 : 0;
  fiber.loaded = access.place;
  fiber.loaded_at = message.time;
  return value;
}

void Search::put(std::size_t place, const Access& access, std::size_t after, std::uint64_t value,
                 const Message* read) {
  const memory_order order = effective(access, access.order);
  Fiber& fiber = fibers_[self_];
  // A release sequence goes on in a read-modify-write, and in nothing else.
  const View inherited = read != nullptr ? read->view : View();
  History& all = histories_[place];
  Message& message = all.insert_after(after);
  message.value = value;
  message.attached = read != nullptr;
  fiber.now.seen[place] = message.time;
  message.view = releases(order) ? fiber.now : fiber.released;
  message.view.seen[place] = message.time;
  message.view.join(inherited);
  if (order == memory_order::seq_cst) {
    ordered_.seen[place] = std::max(ordered_.seen[place], message.time);
  }
  ++stores_;
  const std::uint64_t newest = all.messages.back().value;
  std::memcpy(access.place, &newest, access.size);
  note("thread " + std::to_string(self_) + (read != nullptr ? " changes" : " stores") +
       at(place, value));
}

void Search::store(const Access& access, std::uint64_t value) {
  const bool ordered = effective(access, access.order) == memory_order::seq_cst;
  announce({Step::Kind::Store, access.place, ordered});
  std::size_t place = 0;
  const History& all = history(access.place, access.size, place);
  Time& seen = fibers_[self_].now.seen[place];
  if (ordered) seen = std::max(seen, ordered_.seen[place]);
  std::vector<std::size_t> after;
  for (std::size_t i = all.messages.size(); i-- > all.first_from(seen);) {
    if (all.takes_after(i)) after.push_back(i);
  }
  put(place, access, after[choose_value(after.size())], value, nullptr);
}

std::uint64_t Search::modify(const Access& access, const Change& change) {
  const memory_order order = effective(access, access.order);
  const bool ordered = order == memory_order::seq_cst;
  announce({Step::Kind::Modify, access.place, ordered});
  std::size_t place = 0;
  const History& all = history(access.place, access.size, place);
  Fiber& fiber = fibers_[self_];
  if (ordered) fiber.now.seen[place] = std::max(fiber.now.seen[place], ordered_.seen[place]);
  std::vector<std::size_t> from;
  std::uint64_t next = 0;
  for (std::size_t i = all.messages.size(); i-- > all.first_from(fiber.now.seen[place]);) {
    if (!change(all.messages[i].value, next) || all.takes_after(i)) from.push_back(i);
  }
  const std::size_t index = from[choose_value(from.size())];
  const Message read = all.messages[index];
  const bool stores = change(read.value, next);
  fiber.now.seen[place] = read.time;
  take(fiber, read, stores ? order : effective(access, access.failed));
  fiber.loaded = nullptr;
  if (stores) {
    put(place, access, index, next, &read);
  } else {
    note("thread " + std::to_string(self_) + " leaves" + at(place, read.value));
  }
  return read.value;
}

void Search::full_fence(Fiber& fiber) {
  fiber.now.join(fiber.acquired);
  fiber.now.join_seen(ordered_);
  ordered_.join_seen(fiber.now);
  fiber.released = fiber.now;
}

void Search::fence(memory_order order) {
  Fiber& fiber = fibers_[self_];
  if (order != memory_order::seq_cst || scene_.weakened_.fences) {
    if (acquires(order)) fiber.now.join(fiber.acquired);
    if (releases(order)) fiber.released = fiber.now;
    return;
  }
  announce({Step::Kind::Fence, nullptr, true});
  full_fence(fiber);
  note("thread " + std::to_string(self_) + " passes a fence");
}

void Search::barrier_in(std::size_t thread) {
  if (scene_.weakened_.barriers) return;
  announce({Step::Kind::Barrier, nullptr, true, thread});
  full_fence(fibers_[thread]);
  note("thread " + std::to_string(thread) + " is made to pass a fence");
}

void Search::spin() {
  Fiber& fiber = fibers_[self_];
  fiber.repeated = 0;
  if (++fiber.rounds <= scene_.most_rounds_) return;
  fiber.spins = true;
  announce({});
}

// The kernel passes a full barrier before it looks at the word, and whoever wakes waits for its
// lock.
void Search::sleep_on(const void* word, unsigned size, std::uint64_t value) {
  announce({Step::Kind::Anything});
  Fiber& fiber = fibers_[self_];
  full_fence(fiber);
  std::size_t place = 0;
  const History& all = history(word, size, place);
  Time& seen = fiber.now.seen[place];
  const std::size_t back = choose_value(all.messages.size() - all.first_from(seen));
  const Message& message = all.messages[all.messages.size() - 1 - back];
  seen = message.time;
  const bool sleeps = message.value == value;
  note("thread " + std::to_string(self_) + (sleeps ? " sleeps" : " does not sleep") + " on" +
       at(place, message.value));
  if (!sleeps) return;
  fiber.asleep_on = word;
  announce({Step::Kind::Anything});
}

void Search::wake(const void* word) {
  announce({Step::Kind::Anything});
  full_fence(fibers_[self_]);
  for (Fiber& fiber : fibers_) {
    if (fiber.asleep_on == word) fiber.asleep_on = nullptr;
  }
  note("thread " + std::to_string(self_) + " wakes");
}

void Search::await_end(std::size_t thread) {
  fibers_[self_].awaits = thread;
  announce({Step::Kind::Anything});
  fibers_[self_].now.join(fibers_[thread].now);
}

void Search::touch(const void* place, bool write) {
  if (self_ >= fibers_.size()) return;
  Touched& touched = touched_[place];
  auto& clock = fibers_[self_].now.clock;
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    if (i == self_) continue;
    if (touched.written[i] > clock[i] || (write && touched.read[i] > clock[i])) {
      return fail("two threads race for data that is not atomic");
    }
  }
  (write ? touched.written : touched.read)[self_] = ++clock[self_];
}

// The interface for models. Outside of threads, atomics are plain memory.

namespace {
Search* in_thread() {
  return running() != nullptr && running()->self() < running()->threads() ? running() : nullptr;
}
}  // namespace

std::size_t this_thread_number() {
  return in_thread() != nullptr ? running()->self() : kNoThread;
}
void require(bool holds, const char* what) {
  if (!holds && running() != nullptr) running()->fail(what);
}
void touch_read(const void* place) {
  if (in_thread() != nullptr) running()->touch(place, false);
}
void touch_write(const void* place) {
  if (in_thread() != nullptr) running()->touch(place, true);
}
void fence(memory_order order) {
  if (in_thread() != nullptr) running()->fence(order);
}
void barrier_everywhere() {
  if (in_thread() == nullptr) return;
  const std::size_t self = running()->self();
  running()->barrier_in(self);
  for (std::size_t i = 0; i < running()->threads(); ++i) {
    if (i != self) running()->barrier_in(i);
  }
  running()->barrier_in(self);
}
void spin() {
  if (in_thread() != nullptr) running()->spin();
}
void sleep_on(const void* word, unsigned size, std::uint64_t value) {
  running()->sleep_on(word, size, value);
}
void wake(const void* word) {
  running()->wake(word);
}
void await_end(std::size_t thread) {
  running()->await_end(thread);
}
std::uint64_t load(const Access& access) {
  return in_thread() != nullptr ? running()->load(access) : raw_load(access.place, access.size);
}
void store(const Access& access, std::uint64_t value) {
  if (in_thread() != nullptr) return running()->store(access, value);
  std::memcpy(access.place, &value, access.size);
}
std::uint64_t modify(const Access& access, const Change& change) {
  if (in_thread() != nullptr) return running()->modify(access, change);
  const std::uint64_t old = raw_load(access.place, access.size);
  std::uint64_t next = 0;
  if (change(old, next)) std::memcpy(access.place, &next, access.size);
  return old;
}

}  // namespace ib::models
