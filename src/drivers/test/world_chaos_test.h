// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the random test of this folder: accesses of the threads of processes to device memory. They
// are inside work requests for a while, with locks held, and die there.
#pragma once

#include "drivers/test/client_sessions_test.h"
#include "hca/layout/shm_lock.h"

#include <functional>
#include <vector>

namespace ib::drivers::test {

class Chaos {
 public:
  using Client = Sessions::Client;

  // `pick(n)` returns a random number below n.
  Chaos(Bench& bench, std::function<unsigned(unsigned)> pick)
      : bench_(bench), pick_(std::move(pick)) {}

  // A thread begins a work request, perhaps one that needs the lock of a completion queue.
  void enter(const Client& client) {
    hca::ProcessSlot& slot = sure(arena().slot(client.attach.slot));
    slot.words_used.store(hca::kThreadsPerSlot);
    hca::ThreadWord& word = slot.threads[pick_(4)];
    if ((word.sequence.load() & 1) != 0) return;
    word.sequence.fetch_add(1);
    Inside inside{&slot, client.attach.slot_generation, client.who.pid, &word, nullptr};
    if (pick_(3) == 0) inside.lock = take_lock(hca::lock_owner(client.attach.slot));
    inside_.push_back(inside);
  }
  // One of them finishes its request; or its process, which softibd has cut off, dies.
  void leave_some() {
    if (inside_.empty()) return;
    const auto which = inside_.begin() + pick_(static_cast<unsigned>(inside_.size()));
    leave(*which);
    inside_.erase(which);
  }
  void leave_all() {
    for (const Inside& inside : inside_) leave(inside);
    inside_.clear();
  }

  // The threads of a process stop at any point: between any two stores of a delivery, with any
  // lock.
  void die_in_the_middle(const Client& client) {
    std::erase_if(inside_, [&](const Inside& i) { return i.pid == client.who.pid; });
    if (!client.attached) return;
    const std::uint32_t slot = client.attach.slot;
    if (pick_(2) == 0) sure(arena().slot(slot)).threads[pick_(64)].sequence.fetch_or(1);
    for (unsigned i = pick_(3); i > 0; --i) (void)take_lock(hca::lock_owner(slot));
    for (unsigned i = pick_(3); i > 0; --i) leave_delivery_half_done();
    if (pick_(4) == 0) leave_bounce(slot);
  }
  void expect_no_lock_of(const Client& client) {
    if (!client.attached) return;
    const std::uint32_t owner = hca::lock_owner(client.attach.slot);
    bench_.core().cqs.for_each(
        [&](Cq& cq) { EXPECT_NE(arena().cq(cq.index)->producer.lock.load(), owner); });
    bench_.core().srqs.for_each(
        [&](Srq& srq) { EXPECT_NE(arena().srq(srq.index)->consumer.lock.load(), owner); });
    bench_.core().qps.for_each(
        [&](Qp& qp) { EXPECT_NE(arena().qp(qp.index)->lock.rq_lock.load(), owner); });
  }

  // Checks that posters find no entry of a destroyed object.
  void expect_nothing_to_find() {
    constexpr std::uint32_t kMost = 256;  // more than a run makes of any kind
    for (std::uint32_t i = 0; i < kMost; ++i) {
      EXPECT_EQ(arena().qp(i)->id.qpn.load(), 0u);
      EXPECT_EQ(arena().cq(i)->id.generation.load(), 0u);
      EXPECT_EQ(arena().srq(i)->id.generation.load(), 0u);
      EXPECT_EQ(arena().key(i)->id.key.load(), 0u);
      EXPECT_EQ(arena().mcast(i)->qpn.load(), 0u);
    }
  }

 private:
  struct Inside {
    hca::ProcessSlot* slot;
    std::uint32_t generation;
    std::uint32_t pid;
    hca::ThreadWord* word;
    hca::Shared32* lock;
  };

  const hca::Arena& arena() { return bench_.arena(); }

  void leave(const Inside& inside) {
    // softibd has given up on the process: the slot may be another's.
    if (inside.slot->generation.load() != inside.generation) return;
    if (inside.lock != nullptr) hca::unlock(*inside.lock);
    inside.word->sequence.fetch_add(1);
  }

  // Takes a free lock for the owner. Returns its word, or nullptr if the lock was not free.
  hca::Shared32* take_lock(std::uint32_t owner) {
    std::vector<hca::Shared32*> words;
    bench_.core().cqs.for_each(
        [&](Cq& cq) { words.push_back(&arena().cq(cq.index)->producer.lock); });
    bench_.core().srqs.for_each(
        [&](Srq& srq) { words.push_back(&arena().srq(srq.index)->consumer.lock); });
    bench_.core().qps.for_each([&](Qp& qp) {
      if (qp.type == verbs::QpType::Ud) words.push_back(&arena().qp(qp.index)->lock.rq_lock);
    });
    words.push_back(&arena().atomic_lock_at(pick_(hca::kAtomicLocks)));
    hca::Shared32* word = words[pick_(static_cast<unsigned>(words.size()))];
    return hca::try_lock(*word, owner) ? word : nullptr;
  }

  void leave_delivery_half_done() {
    std::vector<Qp*> all;
    bench_.core().qps.for_each([&](Qp& qp) { all.push_back(&qp); });
    if (all.empty()) return;
    const Qp& qp = *all[pick_(static_cast<unsigned>(all.size()))];
    hca::QpEntry& entry = sure(arena().qp(qp.index));
    if (qp.recv_cq != nullptr) {
      hca::CqEntry& cq = sure(arena().cq(qp.recv_cq->index));
      const std::uint64_t position = cq.producer.producer.load();
      entry.responder.cq_intent.store(position + 1);
      if (pick_(2) == 0) {
        hca::Cqe& cqe = bench_.cqe(qp.recv_cq->ring, qp.recv_cq->slots, position);
        cqe.qpn = qp.qpn;
        cqe.seq.store(static_cast<std::uint32_t>(position / qp.recv_cq->slots) + 1);
        cq.arm.armed.store(pick_(2));
      }
    }
    if (qp.srq != nullptr) entry.responder.srq_taken.store(1 + pick_(4));
  }

  // The process dies while another one touches memory for it (bounce).
  void leave_bounce(std::uint32_t requester) {
    static constexpr hca::BounceState kStates[] = {
        hca::BounceState::Claimed, hca::BounceState::Submitted, hca::BounceState::Done};
    const std::uint32_t server = pick_(std::max(1u, bench_.core().slots_used));
    hca::BounceEntry& bounce = sure(arena().bounce(server, pick_(hca::kBouncesPerSlot)));
    bounce.request.requester_slot.store(requester);
    bounce.request.state.store(kStates[pick_(3)]);
  }

  Bench& bench_;
  std::function<unsigned(unsigned)> pick_;
  std::vector<Inside> inside_;
};

}  // namespace ib::drivers::test
