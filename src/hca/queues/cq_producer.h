// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CqProducer: delivers completions into a completion queue of this or another process.
//
// One per (poster, CQ): it caches the checked ring. Rules (see layout.h, docs/design/0003):
//  - shared_producers == 0: the caller is the only producer; nothing is locked. Otherwise
//    producer.lock is taken, and a process that dies holding it is repaired by softibd.
//  - a completion exists from the store of its seq on; `producer` follows and can be recomputed.
//  - a queue that a completion did not fit into is in error and takes no more, whatever is polled:
//    `consumer_seen` stays where it is, so that it goes on being full.
//  - `producer`, `consumer_seen` and `overflowed` are relaxed: producers alone decide by them, and
//    the lock (or the queue lock of the only producer) orders these. `producer` is released for
//    softibd, which counts completions by it.
#pragma once

#include "hca/layout/arena.h"
#include "hca/layout/ring_order.h"
#include "hca/layout/shm_lock.h"
#include "hca/memory/poster_host.h"
#include "platform/barriers.h"

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

namespace ib::hca {

enum class Push : std::uint32_t { Done, Overflow, Broken };

class CqProducer {
 public:
  CqProducer() = default;
  CqProducer(const Arena& arena, std::uint32_t cq) : entry_(arena.cq(cq)), index_(cq) {}
  std::uint32_t index() const { return index_; }
  bool valid() const { return entry_ != nullptr; }
  bool has_channel() const { return entry_->id.channel != kNone; }
  bool has_timestamps() const {
    return (entry_->id.flags & verbs::control::cq_flag::kTimestamp) != 0;
  }

  // Writes `cqe` (all but seq). `intent`: the responder's cq_intent word, if a receive is being
  // completed; softibd reads there which completion was under way when this process died.
  [[gnu::always_inline]] Push push(const Arena& arena, PosterHost& host, std::uint32_t self_slot,
                                   const Cqe& cqe, Shared64* intent,
                                   const std::byte* payload = nullptr) {
    return push_with(arena, host, self_slot, intent, [&](Cqe& slot) {
      write_fields(slot, cqe);
      if (payload != nullptr) std::memcpy(slot.payload.data(), payload, cqe.inline_length);
    });
  }
  // The same, with write(Cqe&) to fill the slot.
  template <class Write>
  [[gnu::always_inline]] Push push_with(const Arena& arena, PosterHost& host,
                                        std::uint32_t self_slot, Shared64* intent, Write&& write) {
    const bool shared = entry_->id.shared_producers.load(std::memory_order_acquire) != 0;
    if (shared && !take_lock(host, self_slot)) return Push::Broken;
    const Push result = push_locked(arena, intent, write);
    if (shared) unlock(entry_->producer.lock);
    return result;
  }

  // The same without a call and without waiting. Returns false if it is not so simple; then nothing
  // has happened.
  template <class Write>
  [[gnu::always_inline]] bool push_fast(std::uint32_t self_slot, Shared64* intent, Write&& write) {
    const bool shared = entry_->id.shared_producers.load(std::memory_order_acquire) != 0;
    if (shared && !try_lock(entry_->producer.lock, lock_owner(self_slot))) return false;
    const bool pushed = push_if_room(intent, write);
    if (shared) unlock(entry_->producer.lock);
    return pushed;
  }
  // A completion did not fit. Not if push() has refused for a lock that did not become free, or a
  // ring that is nonsense.
  bool is_in_error() const {
    return entry_ != nullptr && entry_->producer.overflowed.load(std::memory_order_relaxed) != 0;
  }
  // After push() has refused, outside of locks: its owner gets the event of a queue in error, once
  // [IBA1 11.6.3.2].
  [[gnu::noinline]] void report_error(PosterHost& host) const {
    if (!is_in_error() || entry_->producer.overflowed.exchange(kReported) == kReported) return;
    host.raise({verbs::control::EventObject::Cq, index_,
                entry_->id.generation.load(std::memory_order_relaxed), verbs::EventType::CqErr});
  }
  // Refreshes the ring if it is another. Returns false if it is not, or is nonsense.
  bool look_again(const Arena& arena) { return !is_current() && refresh(arena); }

  // Fires the event if the queue is armed for this completion. After push, outside of locks.
  void fire(PosterHost& host, bool solicited) {
    if (has_channel()) [[unlikely]]
      fire_if_armed(host, solicited);
  }
  // Whether fire() may have to do something. After the push; not for a process that does not take
  // part in barriers (MemoryPlane::fenced_entries).
  [[gnu::always_inline]] bool may_fire() const {
    platform::light_barrier();  // pairs with CqConsumer::arm
    return has_channel() && entry_->arm.used.load(std::memory_order_relaxed) != 0;
  }
  // Notifies the owner of a completion queue with a channel, by the owner's kind of channel.
  static void report(PosterHost& host, const CqEntry& cq, std::uint32_t index) {
    if (cq.id.channel != verbs::control::kKernelChannel) {
      return host.notify(index);
    }
    host.raise({verbs::control::EventObject::Cq, index,
                cq.id.generation.load(std::memory_order_relaxed), verbs::EventType::Completion});
  }
  const CqEntry& entry() const { return *entry_; }
  // Where the next completion goes, if nothing changes. After a push.
  const void* next_slot() const {
    return ring_ + order_.slot(entry_->producer.producer.load(std::memory_order_relaxed));
  }

 private:
  static constexpr std::uint32_t kInError = 1;  // CqEntry::producer.overflowed
  static constexpr std::uint32_t kReported = 2;
  // Out of line, since it is not for every message: in its place it would cost the others
  // registers.
  [[gnu::noinline]] bool take_lock(PosterHost& host, std::uint32_t self_slot) {
    return lock(entry_->producer.lock, lock_owner(self_slot),
                [&host](std::uint32_t round) { host.relax(round); });
  }
  [[gnu::noinline]] void fire_if_armed(PosterHost& host, bool solicited) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with CqConsumer::arm
    std::uint32_t armed = entry_->arm.armed.load(std::memory_order_relaxed);
    do {
      if (armed == 0 || armed == CqEntry::kFiring || (armed == 2 && !solicited)) return;
    } while (!entry_->arm.armed.compare_exchange_weak(armed, CqEntry::kFiring,
                                                      std::memory_order_acq_rel));
    // Relaxed: too old a value costs an event too many. It is visible to who arms after this event.
    entry_->arm.reported.store(entry_->producer.producer.load(std::memory_order_relaxed),
                               std::memory_order_relaxed);
    report(host, *entry_, index_);
    // Unless the owner has armed the queue again.
    std::uint32_t firing = CqEntry::kFiring;
    entry_->arm.armed.compare_exchange_strong(firing, 0, std::memory_order_acq_rel);
  }
  // Reads the ring, which may be another (resize). Returns false if it is nonsense.
  [[gnu::noinline]] bool refresh(const Arena& arena) {
    const std::uint32_t epoch = entry_->id.ring_epoch.load(std::memory_order_acquire);
    const std::uint32_t slots = entry_->id.slots;
    if (slots < 2 || (slots & (slots - 1)) != 0) return false;
    const std::uint64_t offset = entry_->id.ring;
    if (offset % alignof(Cqe) != 0) return false;
    std::byte* ring = arena.heap(offset, std::uint64_t{slots} * sizeof(Cqe));
    if (ring == nullptr) return false;
    ring_ = reinterpret_cast<Cqe*>(ring);
    order_ = RingOrder(slots);
    log_slots_ = static_cast<std::uint32_t>(std::countr_zero(slots));
    limit_ = entry_->id.cqe < slots ? entry_->id.cqe : slots - 1;
    if (is_in_error()) limit_ = 0;
    epoch_ = epoch;
    return true;
  }

  [[gnu::noinline]] bool has_room(std::uint64_t position) {
    if (is_in_error()) return false;
    // Acquire, with CqConsumer::advance(): the slot was read before it is written again.
    const std::uint64_t consumed = entry_->consumer.consumer.load(std::memory_order_acquire);
    if (position - consumed < limit_ ||
        (entry_->id.flags & verbs::control::cq_flag::kIgnoreOverrun) != 0) {
      entry_->producer.consumer_seen.store(consumed, std::memory_order_relaxed);
      return true;
    }
    entry_->producer.overflowed.store(kInError, std::memory_order_relaxed);
    return false;
  }

  // Field by field, so that `cqe` stays in registers: copied as a block it would be written in
  // small stores and read in large loads, and such a load waits until the stores have left the
  // core, behind those to lines that the peer holds.
  [[gnu::always_inline]] static void write_fields(Cqe& slot, const Cqe& cqe) {
    slot.qpn = cqe.qpn;
    slot.wqe = cqe.wqe;
    slot.byte_len = cqe.byte_len;
    slot.imm = cqe.imm;
    slot.timestamp = cqe.timestamp;
    slot.src_qp = cqe.src_qp;
    slot.srq = cqe.srq;
    slot.slid = cqe.slid;
    slot.pkey_index = cqe.pkey_index;
    slot.status = cqe.status;
    slot.opcode = cqe.opcode;
    slot.flags = cqe.flags;
    slot.bits = cqe.bits;
    slot.sl = cqe.sl;
    slot.path_bits = cqe.path_bits;
    slot.inline_length = cqe.inline_length;
    slot.vendor_err = cqe.vendor_err;
  }

  bool is_current() const {
    return ring_ != nullptr && entry_->id.ring_epoch.load(std::memory_order_acquire) == epoch_;
  }
  std::uint64_t position() const {
    return entry_->producer.producer.load(std::memory_order_relaxed);
  }

  template <class Write>
  [[gnu::always_inline]] Push push_locked(const Arena& arena, Shared64* intent, Write&& write) {
    if (!is_current() && !refresh(arena)) return Push::Broken;
    const std::uint64_t at = position();
    if (at - entry_->producer.consumer_seen.load(std::memory_order_relaxed) >= limit_ &&
        !has_room(at)) {
      return Push::Overflow;
    }
    put(at, intent, write);
    return Push::Done;
  }

  // No ring: the limit is 0.
  template <class Write>
  [[gnu::always_inline]] bool push_if_room(Shared64* intent, Write&& write) {
    if (entry_->id.ring_epoch.load(std::memory_order_acquire) != epoch_) return false;
    const std::uint64_t at = position();
    if (at - entry_->producer.consumer_seen.load(std::memory_order_relaxed) >= limit_) {
      const std::uint64_t consumed = entry_->consumer.consumer.load(std::memory_order_acquire);
      if (at - consumed >= limit_ || is_in_error()) return false;
      entry_->producer.consumer_seen.store(consumed, std::memory_order_relaxed);
    }
    put(at, intent, write);
    return true;
  }

  template <class Write>
  [[gnu::always_inline]] void put(std::uint64_t at, Shared64* intent, Write&& write) {
    // The stores to the slot may become visible before `intent`, but nothing reads them without
    // `seq`, which follows both. A process that dies has made its stores in the order of its code.
    if (intent != nullptr) intent->store(at + 1, std::memory_order_release);
    Cqe& slot = ring_[order_.slot(at)];
    const std::uint32_t log_slots = log_slots_;
    write(slot);
    slot.seq.store(static_cast<std::uint32_t>(at >> log_slots) + 1, std::memory_order_release);
    entry_->producer.producer.store(at + 1, std::memory_order_release);
  }

  CqEntry* entry_ = nullptr;
  Cqe* ring_ = nullptr;
  RingOrder order_;
  std::uint32_t index_ = kNone;
  std::uint32_t log_slots_ = 0;
  std::uint32_t limit_ = 0;
  std::uint32_t epoch_ = 0;
};

}  // namespace ib::hca
