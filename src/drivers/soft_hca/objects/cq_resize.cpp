// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Resizing a completion queue [IBA1 11.2.6.3] under the eyes of its producers: make them all take
// the lock, wait until they do, take it, move what was not polled to a new ring, let go.
// The owner does not poll meanwhile: it holds its own lock until the answer.
#include "drivers/soft_hca/handlers.h"
#include "hca/layout/ring_order.h"
#include "hca/layout/shm_lock.h"
#include "verbs/limits.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace ib::drivers {
namespace {

namespace limits = verbs::limits;
constexpr Duration kRetry = std::chrono::microseconds(50);
constexpr int kMaxTries = 20'000;  // tries: a second at least

// Passed from step to step.
struct Resize {
  std::uint32_t index = 0;
  std::uint64_t serial = 0;
  std::uint32_t cqe = 0;
  std::uint32_t slots = 0;
  std::uint64_t ring = 0;  // the new one
  int tries = 0;
};

void give_up(Core& core, Cq* cq, const Resize& resize, io::IrpRef irp, Status status,
             std::string reason) {
  core.memory.release(resize.ring);
  if (cq != nullptr) {
    cq->busy = false;
    // One producer needs no lock.
    if (cq->producers <= 1) {
      cq->shared = false;
      core.arena().cq(cq->index)->id.shared_producers.store(0, std::memory_order_seq_cst);
    }
  }
  fail(core, std::move(irp), status, std::move(reason));
}

// Copies the completions at [consumer, producer). Returns false if device memory holds nonsense.
bool move_completions(Core& core, const Cq& cq, const Resize& resize, std::uint64_t consumer,
                      std::uint64_t producer) {
  const auto bytes = [&](std::uint64_t ring, std::uint32_t slots) {
    return reinterpret_cast<hca::Cqe*>(
        core.arena().heap(ring, std::uint64_t{slots} * sizeof(hca::Cqe)));
  };
  const hca::Cqe* from = bytes(cq.ring, cq.slots);
  hca::Cqe* to = bytes(resize.ring, resize.slots);
  if (from == nullptr || to == nullptr) return false;
  const hca::RingOrder old_order(cq.slots);
  const hca::RingOrder new_order(resize.slots);
  for (std::uint64_t p = consumer; p != producer; ++p) {
    const hca::Cqe& source = from[old_order.slot(p)];
    hca::Cqe& target = to[new_order.slot(p)];
    if (source.seq.load(std::memory_order_acquire) !=
        static_cast<std::uint32_t>(p / cq.slots) + 1) {
      return false;
    }
    std::memcpy(static_cast<void*>(&target), static_cast<const void*>(&source),
                offsetof(hca::Cqe, seq));
    target.payload = source.payload;
    target.seq.store(static_cast<std::uint32_t>(p / resize.slots) + 1, std::memory_order_release);
  }
  return true;
}

void finish(Core& core, Cq& cq, Resize resize, io::IrpRef irp) {
  hca::CqEntry& entry = *core.arena().cq(cq.index);
  const std::uint64_t consumer = entry.consumer.consumer.load(std::memory_order_acquire);
  const std::uint64_t producer = entry.producer.producer.load(std::memory_order_acquire);
  const std::uint64_t waiting = producer - consumer;
  const bool sane = waiting < cq.slots;
  if (!sane || waiting > resize.cqe || !move_completions(core, cq, resize, consumer, producer)) {
    hca::unlock(entry.producer.lock);
    return give_up(
        core, &cq, resize, std::move(irp), Status::InvalidParameter,
        sane && waiting > resize.cqe
            ? fmt::format(
                  "completion queue {} holds {} completions; poll some before you make it {}",
                  cq.index, waiting, resize.cqe)
            : fmt::format("completion queue {} is damaged", cq.index));
  }
  const std::uint64_t old_ring = cq.ring;
  cq.ring = resize.ring;
  cq.slots = resize.slots;
  cq.cqe = resize.cqe;
  entry.id.ring = cq.ring;
  entry.id.slots = cq.slots;
  entry.id.cqe = cq.cqe;
  entry.id.ring_epoch.fetch_add(1, std::memory_order_release);
  hca::unlock(entry.producer.lock);
  cq.busy = false;
  if (cq.producers <= 1) {
    cq.shared = false;
    entry.id.shared_producers.store(0, std::memory_order_seq_cst);
  }
  core.after_quiescence(cq.file->session->slot,
                        [&core, old_ring] { core.memory.release(old_ring); });
  succeed_with(std::move(irp), control::CqOut{cq.cqe, cq.slots, cq.ring}, cq.handle);
}

// Every producer takes the lock by now.
void try_to_lock(Core& core, Resize resize, io::IrpRef irp) {
  Cq* cq = core.cqs.find(resize.index, resize.serial);
  if (cq == nullptr || cq->dying) {
    return give_up(core, nullptr, resize, std::move(irp), Status::Cancelled,
                   "the process ended meanwhile");
  }
  hca::CqEntry& entry = *core.arena().cq(cq->index);
  if (hca::try_lock(entry.producer.lock, hca::kDaemonOwner)) {
    return finish(core, *cq, resize, std::move(irp));
  }
  if (++resize.tries > kMaxTries) {
    const std::uint32_t holder = entry.producer.lock.load() - 1;
    const Session* session = session_of_slot(core, holder);
    return give_up(
        core, cq, resize, std::move(irp), Status::Timeout,
        fmt::format("completion queue {} is locked by {}, which does not move on", cq->index,
                    session != nullptr ? describe(*session) : fmt::format("slot {}", holder)));
  }
  core.later.in(kRetry, [&core, resize, irp = std::move(irp)]() mutable {
    try_to_lock(core, resize, std::move(irp));
  });
}

}  // namespace

void resize_cq(Core& core, HcaFile& file, const control::ResizeCqIn& in, io::IrpRef irp) {
  Cq* cq = find_own(core.cqs, file, in.index);
  if (cq == nullptr) return fail_no_such(core, std::move(irp), Kind::Cq, in.index);
  if (in.cqe == 0 || in.cqe > limits::kMaxCqe) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("a completion queue of {} entries; from 1 to {} are possible", in.cqe,
                            limits::kMaxCqe));
  }
  if (cq->busy) {
    return fail(core, std::move(irp), Status::DeviceBusy, still_busy(Kind::Cq, in.index));
  }
  Resize resize{cq->index, cq->serial, in.cqe, std::bit_ceil(in.cqe + 1), 0, 0};
  std::string reason;
  const auto ring = core.memory.allocate(std::uint64_t{resize.slots} * sizeof(hca::Cqe), reason);
  if (!ring) return fail(core, std::move(irp), ring.error(), std::move(reason));
  resize.ring = *ring;
  cq->busy = true;
  if (!cq->shared) {
    cq->shared = true;
    cq->shared_settled = false;
    core.arena().cq(cq->index)->id.shared_producers.store(1, std::memory_order_seq_cst);
  }
  core.after_quiescence(file.session->slot, [&core, resize, irp = std::move(irp)]() mutable {
    producers_settled(core, resize.index, resize.serial);
    try_to_lock(core, resize, std::move(irp));
  });
}

}  // namespace ib::drivers
