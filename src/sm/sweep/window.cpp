// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/sweep/window.h"

#include "base/assert.h"

namespace ib::sm {

Window::Window(const Limits& limits, std::uint32_t random)
    : limits_(limits), random_(random & 0x0fff'ffff), slots_(limits.size) {
  IB_ASSERT(limits.size > 0 && limits.size <= 0xffff);
  for (std::uint32_t i = limits.size; i-- > 0;) free_.push_back(i);
}

// The id: 28 random bits, 20 of the generation, 16 of the slot.
const mad::Smp& Window::open(const Request& request, const mad::Smp& smp, Instant now) {
  IB_ASSERT(!free_.empty());
  const std::uint32_t at = free_.back();
  free_.pop_back();
  Slot& slot = slots_[at];
  slot.request = request;
  slot.smp = smp;
  slot.generation = ++last_generation_ & 0xfffff;
  slot.retries_left = limits_.retries;
  slot.is_open = true;
  slot.smp.header.transaction_id =
      std::uint64_t{random_} << 36 | std::uint64_t{slot.generation} << 16 | at;
  drop_stale();
  deadlines_.push_back({now + limits_.timeout, at, slot.generation});
  return slot.smp;
}

std::optional<Request> Window::close(const mad::Smp& response) {
  const std::uint64_t id = response.header.transaction_id;
  const auto at = static_cast<std::uint32_t>(id & 0xffff);
  if (at >= slots_.size()) return std::nullopt;
  const Slot& slot = slots_[at];
  const mad::MadHeader& asked = slot.smp.header;
  const bool is_it = slot.is_open && asked.transaction_id == id &&
                     asked.attribute == response.header.attribute &&
                     asked.modifier == response.header.modifier;
  if (!is_it) return std::nullopt;
  release(at);
  return slot.request;
}

void Window::release(std::uint32_t slot) {
  slots_[slot].is_open = false;
  free_.push_back(slot);
}

void Window::drop_stale() {
  while (!deadlines_.empty()) {
    const Slot& slot = slots_[deadlines_.front().slot];
    if (slot.is_open && slot.generation == deadlines_.front().generation) return;
    deadlines_.pop_front();
  }
}

std::optional<Window::Due> Window::poll(Instant now) {
  drop_stale();
  if (deadlines_.empty() || deadlines_.front().at > now) return std::nullopt;
  const Deadline due = deadlines_.front();
  deadlines_.pop_front();
  Slot& slot = slots_[due.slot];
  if (slot.retries_left == 0) {
    release(due.slot);
    return Due{nullptr, slot.request};
  }
  --slot.retries_left;
  deadlines_.push_back({now + limits_.timeout, due.slot, due.generation});
  return Due{&slot.smp};
}

std::optional<Instant> Window::deadline() {
  drop_stale();
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.front().at;
}

// The id stays: an answer to the first one will do as well.
void Window::redirect(const Anew& anew, Instant now) {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (!slot.is_open) continue;
    auto smp = anew(slot.request);
    if (!smp) continue;
    const bool is_same = smp->paths == slot.smp.paths &&
                         smp->header.class_specific == slot.smp.header.class_specific;
    if (is_same) continue;
    smp->header.transaction_id = slot.smp.header.transaction_id;
    slot.smp = *smp;
    slot.generation = ++last_generation_ & 0xfffff;
    slot.retries_left = limits_.retries + 1;
    deadlines_.push_front({now, i, slot.generation});
  }
}

void Window::clear() {
  deadlines_.clear();
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].is_open) release(i);
  }
}

}  // namespace ib::sm
