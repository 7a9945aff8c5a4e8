// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Repair after a death. A poster may die between any two stores; the order of its stores (see
// hca/requester/responder_receive.cpp, hca/queues/cq_producer.h) leaves enough to find the step
// that it had reached (docs/design/0003-notes.md):
//   SRQ:   srq_taken = id + 1, then head + 1, then unlock
//   any:   cq_intent = position + 1, then the completion and its seq, then `producer`, unlock, then
//          rq_head + 1 or srq_taken = 0, then cq_intent = 0
// All of it is read from memory that clients can write: every value is checked before it is used.
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "hca/layout/ring_order.h"
#include "hca/layout/shm_lock.h"
#include "hca/queues/late_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <span>

namespace ib::drivers {
namespace {

using hca::Shared32;
using verbs::QpType;

// Entries whose index is in softibd's private tables exist.
template <class T>
T& sure(T* entry) {
  IB_ASSERT(entry != nullptr);
  return *entry;
}

const hca::Cqe& completion_at(Core& core, const Cq& cq, std::uint64_t position) {
  const std::byte& ring =
      sure(core.arena().heap(cq.ring, std::uint64_t{cq.slots} * sizeof(hca::Cqe)));
  return reinterpret_cast<const hca::Cqe*>(&ring)[hca::RingOrder(cq.slots).slot(position)];
}

bool is_written(const Cq& cq, std::uint64_t position, const hca::Cqe& cqe) {
  return cqe.seq.load(std::memory_order_acquire) ==
         static_cast<std::uint32_t>(position / cq.slots) + 1;
}

// `producer` follows what was written. Under the dead process's lock, or it was the only producer.
void advance_producer(Core& core, const Cq& cq) {
  hca::CqEntry& entry = *core.arena().cq(cq.index);
  std::uint64_t producer = entry.producer.producer.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < cq.slots; ++i, ++producer) {
    if (!is_written(cq, producer, completion_at(core, cq, producer))) break;
  }
  entry.producer.producer.store(producer, std::memory_order_release);
}

// The completion was delivered, but its event perhaps not: send it. One too many is no harm.
void fire_event(Core& core, const Cq& cq) {
  hca::CqEntry& entry = *core.arena().cq(cq.index);
  const Channel* channel = core.channels.find_handle(cq.channel);
  const std::uint32_t armed = entry.arm.armed.load(std::memory_order_acquire);
  if (channel == nullptr || armed == 0) return;
  const std::uint64_t producer = entry.producer.producer.load(std::memory_order_acquire);
  std::uint64_t position = entry.consumer.consumer.load(std::memory_order_acquire);
  bool wanted = armed == hca::CqEntry::kFiring;
  for (std::uint32_t i = 0; i < cq.slots && position != producer && !wanted; ++i, ++position) {
    const hca::Cqe& cqe = completion_at(core, cq, position);
    wanted = armed == 1 || cqe.status != 0 || (cqe.bits & hca::cqe_bit::kSolicited) != 0;
  }
  if (!wanted || entry.arm.armed.exchange(0) == 0) return;
  const std::uint64_t number = cq.index;
  const auto event = std::as_bytes(std::span(&number, 1));
  if (!hca::has_late_events(entry) && core.memory.host().write_pipe(channel->write_end, event)) {
    return;
  }
  if (hca::ProcessSlot* owner = core.arena().slot(cq.file->session->slot)) {
    hca::add_late_event(entry, *owner);
  }
}

// Its owner looks after late events that the dead process may have counted and not looked after.
void wake_for_late_events(Core& core, const Cq& cq) {
  if (hca::has_late_events(*core.arena().cq(cq.index))) core.memory.kick(cq.file->session->slot);
}

std::optional<std::uint32_t> receive_id_at(Core& core, std::uint64_t ring, std::uint32_t slots,
                                           std::uint32_t stride, std::uint64_t position) {
  if (slots == 0) return std::nullopt;
  const std::byte* bytes = core.arena().heap(ring, std::uint64_t{slots} * stride);
  if (bytes == nullptr) return std::nullopt;
  hca::ReceiveWqe wqe;
  std::memcpy(&wqe, bytes + std::uint64_t{hca::RingOrder(slots).slot(position)} * stride,
              sizeof wqe);
  return wqe.id;
}

// The message in progress was delivered: its receive is used up. `id`: of that receive, if the
// completion can still be read.
void finish_delivery(Core& core, const Qp& qp, std::optional<std::uint32_t> id) {
  auto& responder = sure(core.arena().qp(qp.index)).responder;
  if (responder.srq_taken.load() != 0) {
    responder.srq_taken.store(0, std::memory_order_release);
    return;
  }
  if (qp.rq_slots == 0 || !id) return;
  // rq_head may have moved already, just before cq_intent would have been cleared. It has not if
  // the completion names the receive there, whose id is its position (hca/queues/receive_ring.h);
  // the owner may have polled it, and posted another receive in its place.
  const std::uint64_t head = responder.rq_head.load(std::memory_order_acquire);
  if (static_cast<std::uint32_t>(head) == id) {
    responder.rq_head.store(head + 1, std::memory_order_release);
  }
}

// Traces of a dead process, collected first: completion queues that it may have
// written to, and queue pairs in whose responder it may have been.
struct Traces {
  std::set<Cq*> cqs;
  std::set<Qp*> qps;
};

void add_receive_cqs(Core& core, const Qp& qp, std::set<Cq*>& cqs) {
  if (qp.recv_cq != nullptr) cqs.insert(qp.recv_cq);
  if (qp.type != QpType::XrcRecv) return;
  core.srqs.for_each([&](Srq& srq) {  // any of the domain: the message named it
    if (srq.xrcd == qp.xrcd && srq.cq != nullptr) cqs.insert(srq.cq);
  });
}

Traces collect(Core& core, const Session& dead) {
  const std::uint32_t owner = hca::lock_owner(dead.slot);
  Traces traces;
  const auto responder_of = [&](Qp* peer) {
    if (peer == nullptr || !traces.qps.insert(peer).second) return;
    add_receive_cqs(core, *peer, traces.cqs);
  };
  core.qps.for_each([&](Qp& qp) {
    if (qp.file->session == &dead) responder_of(connected_peer(core, qp));
    if (core.arena().qp(qp.index)->lock.rq_lock.load() == owner) responder_of(&qp);
  });
  core.cqs.for_each([&](Cq& cq) {
    if (core.arena().cq(cq.index)->producer.lock.load() == owner) traces.cqs.insert(&cq);
  });
  return traces;
}

void repair_responder(Core& core, const Qp& qp, std::uint32_t owner) {
  auto& responder = sure(core.arena().qp(qp.index)).responder;
  const std::uint64_t intent = responder.cq_intent.load(std::memory_order_acquire);
  if (intent == 0) return;
  const std::uint64_t position = intent - 1;
  std::set<Cq*> candidates;
  add_receive_cqs(core, qp, candidates);
  for (const Cq* cq : candidates) {
    const hca::Cqe& cqe = completion_at(core, *cq, position);
    const bool legible = is_written(*cq, position, cqe) && cqe.qpn == qp.qpn;
    // A poster that set an intent under the lock and has left it has written the completion; others
    // may have written over it since.
    const bool left_the_lock = cq->shared && cq == qp.recv_cq &&
                               sure(core.arena().cq(cq->index)).producer.lock.load() != owner;
    if (!legible && !left_the_lock) continue;
    finish_delivery(core, qp, legible ? std::optional(cqe.wqe) : std::nullopt);
    break;
  }
  responder.cq_intent.store(0, std::memory_order_release);
}

// Under its lock it was taking a receive, or putting one back: whatever is still at the head of the
// queue is not taken.
void repair_srq(Core& core, const Srq& srq, const Traces& traces) {
  hca::SrqEntry& entry = *core.arena().srq(srq.index);
  const auto at_head = receive_id_at(core, srq.ring, srq.slots, srq.stride,
                                     entry.consumer.head.load(std::memory_order_acquire));
  for (const Qp* qp : traces.qps) {
    const bool uses = qp->srq == &srq || (qp->type == QpType::XrcRecv && qp->xrcd == srq.xrcd);
    auto& taken = core.arena().qp(qp->index)->responder.srq_taken;
    if (uses && at_head && taken.load() == *at_head + std::uint64_t{1}) taken.store(0);
  }
  hca::unlock(entry.consumer.lock);
}

// A datagram's receive that was taken from an SRQ: no error will flush it, so it goes back if it is
// still the newest that was taken.
void put_back(Core& core, const Qp& qp) {
  auto& taken = core.arena().qp(qp.index)->responder.srq_taken;
  const std::uint64_t held = taken.load();
  if (held == 0 || qp.srq == nullptr || !verbs::is_datagram(qp.type)) return;
  hca::SrqEntry& entry = *core.arena().srq(qp.srq->index);
  bool done = false;
  if (hca::try_lock(entry.consumer.lock, hca::kDaemonOwner)) {
    const std::uint64_t head = entry.consumer.head.load(std::memory_order_acquire);
    done = head > 0 && receive_id_at(core, qp.srq->ring, qp.srq->slots, qp.srq->stride, head - 1) ==
                           static_cast<std::uint32_t>(held - 1);
    if (done) entry.consumer.head.store(head - 1, std::memory_order_release);
    hca::unlock(entry.consumer.lock);
  }
  taken.store(0, std::memory_order_release);
  if (!done) {
    core.trace.add(fmt::format(
        "a receive of shared receive queue {} of {} was lost: its sender died while it filled it",
        qp.srq->index, describe(*qp.file->session)));
  }
}

}  // namespace

void repair_after(Core& core, const Session& dead) {
  const std::uint32_t owner = hca::lock_owner(dead.slot);
  const Traces traces = collect(core, dead);
  // An atomic of the dead process: it was executed, or it was not; no client got a result of it.
  for (std::uint32_t i = 0; i < hca::kAtomicLocks; ++i) {
    Shared32& word = core.arena().atomic_lock_at(i);
    if (word.load() == owner) hca::unlock(word);
  }
  for (const Cq* cq : traces.cqs) {
    hca::CqEntry& entry = *core.arena().cq(cq->index);
    const std::uint32_t lock = entry.producer.lock.load();
    // The lock of another process: then that one keeps it consistent.
    if (lock == owner || (lock == 0 && !cq->shared)) advance_producer(core, *cq);
  }
  // Before the completion queues are unlocked: until then no other process writes at the position
  // that an intent names.
  for (const Qp* qp : traces.qps) repair_responder(core, *qp, owner);
  core.srqs.for_each([&](Srq& srq) {
    if (core.arena().srq(srq.index)->consumer.lock.load() == owner) repair_srq(core, srq, traces);
  });
  for (const Qp* qp : traces.qps) {
    hca::QpEntry& entry = *core.arena().qp(qp->index);
    if (entry.lock.rq_lock.load() != owner) continue;
    put_back(core, *qp);
    hca::unlock(entry.lock.rq_lock);
  }
  for (const Cq* cq : traces.cqs) {
    hca::CqEntry& entry = *core.arena().cq(cq->index);
    if (entry.producer.lock.load() == owner) hca::unlock(entry.producer.lock);
    fire_event(core, *cq);
    wake_for_late_events(core, *cq);
  }
}

std::vector<std::uint32_t> settle_bounces(Core& core, std::vector<std::uint32_t>& dead) {
  enum : std::uint8_t { kLives, kDead, kNamed };
  std::vector<std::uint8_t> is_dead(core.slots_used, kLives);
  for (const std::uint32_t slot : dead) is_dead[slot] = kDead;
  for (std::uint32_t slot = 0; slot < core.slots_used; ++slot) {
    const Session* server = core.by_slot[slot];
    const bool is_served = server != nullptr && !server->buried;
    for (std::uint32_t i = 0; i < hca::kBouncesPerSlot; ++i) {
      hca::BounceEntry& entry = *core.arena().bounce(slot, i);
      hca::BounceState state = entry.request.state.load(std::memory_order_acquire);
      if (state == hca::BounceState::Free) continue;
      // Requesters of the dead process see its generation and give up by themselves.
      const std::uint32_t requester = entry.request.requester_slot.load();
      if (requester >= is_dead.size() || is_dead[requester] == kLives || slot == requester)
        continue;
      // A request that a dead server was working on stays as it is, and two that died together
      // would wait for each other.
      const bool running = is_served && state == hca::BounceState::Running;
      if (running || !entry.request.state.compare_exchange_strong(state, hca::BounceState::Free)) {
        is_dead[requester] = kNamed;
      }
    }
  }
  const auto settled = std::partition(dead.begin(), dead.end(),
                                      [&](std::uint32_t slot) { return is_dead[slot] == kNamed; });
  std::vector<std::uint32_t> result(settled, dead.end());
  dead.erase(settled, dead.end());
  return result;
}

}  // namespace ib::drivers
