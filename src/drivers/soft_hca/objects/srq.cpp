// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shared receive queues [IBA1 10.2.9, 11.2.7], basic and XRC. Arming the limit is a store into
// device memory; the poster that takes the queue below it raises the event. Resizing is not
// supported, as the HCA's capabilities show (no SRQ_RESIZE).
#include "drivers/soft_hca/handlers.h"
#include "verbs/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

namespace ib::drivers {
namespace {

namespace limits = verbs::limits;
constexpr std::uint32_t kMaxWr = 1;
constexpr std::uint32_t kLimit = 2;

// The objects that a new SRQ refers to, checked.
struct Parts {
  Pd* pd = nullptr;
  Xrcd* xrcd = nullptr;
  Cq* cq = nullptr;
};

Status find_parts(Core& core, HcaFile& file, const control::CreateSrqIn& in, Parts& out,
                  std::string& reason) {
  const bool xrc = in.type == verbs::SrqType::Xrc;
  out.pd = find_own(core.pds, file, in.pd);
  if (xrc) out.xrcd = find_xrcd(core, file, in.xrcd);
  if (xrc) out.cq = find_own(core.cqs, file, in.cq);
  if (in.type != verbs::SrqType::Basic && !xrc) {
    reason = fmt::format("shared receive queue type {}", static_cast<std::uint32_t>(in.type));
    return Status::InvalidParameter;
  }
  if (out.pd == nullptr) return no_such(core, Kind::Pd, in.pd, reason);
  if (xrc && out.xrcd == nullptr) return no_such(core, Kind::Xrcd, in.xrcd, reason);
  if (xrc && out.cq == nullptr) return no_such(core, Kind::Cq, in.cq, reason);
  if (in.max_wr == 0 || in.max_wr > limits::kMaxSrqWr || in.max_sge > limits::kMaxSrqSge) {
    reason = fmt::format(
        "a shared receive queue of {} requests with {} elements each; at least 1, at most {} with "
        "{}",
        in.max_wr, in.max_sge, limits::kMaxSrqWr, limits::kMaxSrqSge);
  } else if (in.limit > in.max_wr) {
    reason = fmt::format("limit {} is above the {} requests that fit", in.limit, in.max_wr);
  }
  return reason.empty() ? Status::Ok : Status::InvalidParameter;
}

void publish(Core& core, const Srq& srq, std::uint32_t limit) {
  auto* entry = new (core.arena().srq(srq.index)) hca::SrqEntry;
  entry->id.owner_slot = srq.file->session->slot;
  entry->id.type = static_cast<std::uint32_t>(srq.type);
  entry->id.pd = srq.pd->index;
  entry->id.ring = srq.ring;
  entry->id.slots = srq.slots;
  entry->id.stride = srq.stride;
  entry->id.xrcd = srq.xrcd != nullptr ? srq.xrcd->index : hca::kNone;
  entry->id.cq = srq.cq != nullptr ? srq.cq->index : hca::kNone;
  entry->id.srqn = srq.srqn;
  entry->id.ca = srq.file->hca->index;
  entry->id.cookie = srq.cookie;
  entry->event.limit.store(limit);
  entry->id.generation.store(srq.generation, std::memory_order_seq_cst);
}

control::SrqOut srq_out(Core& core, const Srq& srq) {
  control::SrqOut out;
  out.max_wr = srq.max_wr;
  out.max_sge = srq.max_sge;
  out.limit = core.arena().srq(srq.index)->event.limit.load();
  out.slots = srq.slots;
  out.ring = srq.ring;
  out.stride = srq.stride;
  out.srqn = srq.srqn;
  return out;
}

// 24 bits, the upper ones a generation, as with queue pair numbers.
std::uint32_t next_srqn(Core& core, std::uint32_t index) {
  constexpr std::uint32_t kTags = 1u << (24 - std::bit_width(hca::kMaxSrqs - 1));
  std::uint16_t& tag = core.srqn_tags[index];
  tag = static_cast<std::uint16_t>((tag + 1u) % kTags);
  return tag * hca::kMaxSrqs | index;
}

}  // namespace

void create_srq(Core& core, HcaFile& file, const control::CreateSrqIn& in, io::IrpRef irp) {
  Parts parts;
  std::string reason;
  const Status found = find_parts(core, file, in, parts, reason);
  if (found != Status::Ok) return fail(core, std::move(irp), found, std::move(reason));
  if (!has_room(core, file, Kind::Srq, limits::kMaxSrq, reason)) {
    return fail(core, std::move(irp), Status::InsufficientResources, std::move(reason));
  }
  const std::uint32_t max_sge = std::max(in.max_sge, 1u);
  const std::uint32_t stride = hca::receive_stride(max_sge);
  const std::uint32_t slots = receive_slots(in.max_wr);
  const auto ring = core.memory.allocate(std::uint64_t{slots} * stride, reason);
  if (!ring) return fail(core, std::move(irp), ring.error(), std::move(reason));
  Srq* srq = core.srqs.create();
  if (srq == nullptr) {
    core.memory.release(*ring);
    return fail(core, std::move(irp), Status::InsufficientResources,
                "the fabric's table of shared receive queues is full");
  }
  srq->file = &file;
  srq->generation = static_cast<std::uint32_t>(1 + srq->serial % 0xffffffffu);
  srq->type = in.type;
  srq->pd = parts.pd;
  srq->xrcd = parts.xrcd;
  srq->cq = parts.cq;
  srq->srqn = next_srqn(core, srq->index);
  srq->max_wr = in.max_wr;
  srq->max_sge = max_sge;
  srq->slots = slots;
  srq->stride = stride;
  srq->ring = *ring;
  srq->cookie = in.cookie;
  ++srq->pd->srqs;
  if (srq->xrcd != nullptr) ++srq->xrcd->srqs;
  enter(core, file, Kind::Srq, srq->index);
  srq->making = true;
  bool wait = false;
  if (srq->cq != nullptr) {
    ++srq->cq->srqs;
    wait = add_producers(core, *srq->cq, 2);  // whoever sends to it
  }
  const auto finish = [&core, index = srq->index, serial = srq->serial,
                       limit = in.limit](io::IrpRef request) {
    Srq* made = core.srqs.find(index, serial);
    if (made == nullptr || made->dying) {
      return fail(core, std::move(request), Status::Cancelled, "the process ended meanwhile");
    }
    if (made->cq != nullptr) producers_settled(core, made->cq->index, made->cq->serial);
    made->making = false;
    publish(core, *made, limit);
    const control::SrqOut out = srq_out(core, *made);
    succeed_with(std::move(request), out, made->handle);
  };
  if (!wait) return finish(std::move(irp));
  core.after_quiescence(file.session->slot,
                        [finish, irp = std::move(irp)]() mutable { finish(std::move(irp)); });
}

void modify_srq(Core& core, HcaFile& file, const control::ModifySrqIn& in, io::IrpRef irp) {
  Srq* srq = find_own(core.srqs, file, in.index);
  if (srq == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Srq, in.index);
  }
  if ((in.mask & ~(kMaxWr | kLimit)) != 0) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("attribute mask {:#x}", in.mask));
  }
  if ((in.mask & kMaxWr) != 0) {
    return fail(core, std::move(irp), Status::NotSupported,
                "this HCA does not resize shared receive queues (no IBV_DEVICE_SRQ_RESIZE)");
  }
  if ((in.mask & kLimit) != 0 && in.limit > srq->max_wr) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("limit {} is above the {} requests that fit", in.limit, srq->max_wr));
  }
  if ((in.mask & kLimit) != 0) {
    hca::SrqEntry& entry = *core.arena().srq(srq->index);
    entry.event.limit.store(in.limit, std::memory_order_seq_cst);
  }
  succeed_with(std::move(irp), srq_out(core, *srq), srq->handle);
}

void query_srq(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  const Srq* srq = find_own(core.srqs, file, in.index);
  if (srq == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Srq, in.index);
  }
  succeed_with(std::move(irp), srq_out(core, *srq), srq->handle);
}

void destroy_srq(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Srq* srq = find_own(core.srqs, file, in.index);
  if (srq == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Srq, in.index);
  }
  if (srq->qps != 0) {
    return fail(core, std::move(irp), Status::DeviceBusy,
                fmt::format("shared receive queue {} is in use by {}", control::index_of(in.index),
                            count_of(srq->qps, "queue pair")));
  }
  hide(core, *srq);
  core.after_quiescence(file.session->slot, [&core, index = srq->index, serial = srq->serial,
                                             irp = std::move(irp)]() mutable {
    if (Srq* gone = core.srqs.find(index, serial); gone != nullptr) release(core, *gone);
    succeed(std::move(irp));
  });
}

void hide(Core& core, Srq& srq) {
  srq.dying = true;
  core.arena().srq(srq.index)->id.generation.store(0, std::memory_order_seq_cst);
}

void release(Core& core, Srq& srq) {
  core.memory.release(srq.ring);
  --srq.pd->srqs;
  if (srq.xrcd != nullptr) --srq.xrcd->srqs;
  if (srq.cq != nullptr) {
    --srq.cq->srqs;
    remove_producers(core, *srq.cq, 2);
  }
  leave(core, *srq.file, Kind::Srq, srq.index);
  core.srqs.destroy(srq.index);
}

}  // namespace ib::drivers
