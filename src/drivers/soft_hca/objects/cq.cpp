// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion queues [IBA1 11.2.6]. The ring is in the heap of device memory; producers write into
// it directly, and take a lock only if there can be more than one of them.
#include "drivers/soft_hca/handlers.h"
#include "verbs/limits.h"

#include <fmt/format.h>

#include <bit>
#include <new>

namespace ib::drivers {

namespace limits = verbs::limits;

void create_cq(Core& core, HcaFile& file, const control::CreateCqIn& in, io::IrpRef irp) {
  constexpr std::uint32_t kKnownFlags =
      control::cq_flag::kTimestamp | control::cq_flag::kIgnoreOverrun;
  if (in.cqe == 0 || in.cqe > limits::kMaxCqe || (in.flags & ~kKnownFlags) != 0) {
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        fmt::format(
            "a completion queue of {} entries, flags {:#x}; from 1 to {} entries are possible",
            in.cqe, in.flags, limits::kMaxCqe));
  }
  Channel* channel = nullptr;
  const bool of_kernel =
      in.channel == control::kKernelChannel && irp->requestor_mode == io::RequestorMode::Kernel;
  if (in.channel != control::kNoIndex && !of_kernel) {
    channel = core.channels.find_handle(in.channel);
    if (channel == nullptr || channel->session != file.session) {
      return fail(core, std::move(irp), Status::InvalidParameter,
                  fmt::format("there is no completion channel {} in this process",
                              control::index_of(in.channel)));
    }
  }
  std::string reason;
  if (!has_room(core, file, Kind::Cq, limits::kMaxCq, reason)) {
    return fail(core, std::move(irp), Status::InsufficientResources, std::move(reason));
  }
  const std::uint32_t slots = std::bit_ceil(in.cqe + 1);
  const auto ring = core.memory.allocate(std::uint64_t{slots} * sizeof(hca::Cqe), reason);
  if (!ring) return fail(core, std::move(irp), ring.error(), std::move(reason));
  Cq* cq = core.cqs.create();
  if (cq == nullptr) {
    core.memory.release(*ring);
    return fail(core, std::move(irp), Status::InsufficientResources,
                "the fabric's table of completion queues is full");
  }
  cq->file = &file;
  cq->generation = static_cast<std::uint32_t>(1 + cq->serial % 0xffffffffu);
  cq->channel = in.channel;
  cq->cqe = in.cqe;
  cq->slots = slots;
  cq->ring = *ring;
  cq->cookie = in.cookie;
  if (channel != nullptr) ++channel->cqs;
  enter(core, file, Kind::Cq, cq->index);

  auto* entry = new (core.arena().cq(cq->index)) hca::CqEntry;
  entry->id.owner_slot = file.session->slot;
  entry->id.ring = cq->ring;
  entry->id.slots = slots;
  entry->id.cqe = in.cqe;
  entry->id.flags = in.flags;
  entry->id.channel = channel != nullptr ? channel->index
                      : of_kernel        ? control::kKernelChannel
                                         : hca::kNone;
  entry->id.channel_generation = channel != nullptr ? channel->generation : 0;
  entry->id.ca = file.hca->index;
  entry->id.cookie = in.cookie;
  entry->id.generation.store(cq->generation, std::memory_order_release);
  succeed_with(std::move(irp), control::CqOut{cq->cqe, cq->slots, cq->ring}, cq->handle);
}

void destroy_cq(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Cq* cq = find_own(core.cqs, file, in.index);
  if (cq == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Cq, in.index);
  }
  const std::string users =
      list(count_of(cq->qps, "queue pair queue"), count_of(cq->srqs, "shared receive queue"));
  if (cq->busy || !users.empty()) {
    return fail(core, std::move(irp), Status::DeviceBusy,
                cq->busy ? still_busy(Kind::Cq, in.index)
                         : fmt::format("completion queue {} is in use by {}",
                                       control::index_of(in.index), users));
  }
  hide(core, *cq);
  core.after_quiescence(file.session->slot, [&core, index = cq->index, serial = cq->serial,
                                             irp = std::move(irp)]() mutable {
    if (Cq* gone = core.cqs.find(index, serial); gone != nullptr) release(core, *gone);
    succeed(std::move(irp));
  });
}

void hide(Core& core, Cq& cq) {
  cq.dying = true;
  core.arena().cq(cq.index)->id.generation.store(0, std::memory_order_seq_cst);
}

void release(Core& core, Cq& cq) {
  if (Channel* channel = core.channels.find_handle(cq.channel); channel != nullptr) --channel->cqs;
  core.memory.release(cq.ring);
  leave(core, *cq.file, Kind::Cq, cq.index);
  core.cqs.destroy(cq.index);
}

bool add_producers(Core& core, Cq& cq, std::uint32_t n) {
  const bool had_none = cq.producers == 0;
  cq.producers += n;
  if (cq.producers <= 1) return false;
  if (!cq.shared) {
    cq.shared = true;
    cq.shared_settled = had_none;  // the new ones find it so
    core.arena().cq(cq.index)->id.shared_producers.store(1, std::memory_order_seq_cst);
  }
  return !cq.shared_settled;
}

void producers_settled(Core& core, std::uint32_t index, std::uint64_t serial) {
  if (Cq* cq = core.cqs.find(index, serial); cq != nullptr && cq->shared) cq->shared_settled = true;
}

// One producer that is left goes on taking the lock: whether the others have really stopped is
// certain only when none is left (the caller has waited for quiescence).
void remove_producers(Core& core, Cq& cq, std::uint32_t n) {
  IB_ASSERT(cq.producers >= n);
  cq.producers -= n;
  if (cq.producers != 0 || !cq.shared || cq.busy) return;
  cq.shared = false;
  core.arena().cq(cq.index)->id.shared_producers.store(0, std::memory_order_seq_cst);
}

}  // namespace ib::drivers
