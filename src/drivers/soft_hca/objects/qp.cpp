// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queue pairs [IBA1 11.2.5]: creation, destruction, query; XRC receive QPs are shared by those who
// open them. Changing them is in qp_modify.cpp.
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "drivers/soft_hca/objects/traffic.h"
#include "hca/layout/first_use.h"
#include "verbs/limits.h"
#include "verbs/qp_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace ib::drivers {
namespace {

namespace limits = verbs::limits;
using verbs::QpState;
using verbs::QpType;

// The objects that a new queue pair refers to, checked.
struct Parts {
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  Xrcd* xrcd = nullptr;
};

bool has_receive_side(QpType type) {
  return type == QpType::Rc || type == QpType::Uc || verbs::is_datagram(type);
}

// Any sender may write a completion for it, not only the one that it is connected to.
bool has_many_senders(const Qp& qp) {
  return verbs::is_datagram(qp.type) || qp.srq != nullptr;
}

Status find_cq(Core& core, HcaFile& file, std::uint32_t handle, std::string_view side, Cq*& out,
               std::string& reason) {
  out = find_own(core.cqs, file, handle);
  if (out != nullptr) return Status::Ok;
  const Status status = no_such(core, Kind::Cq, handle, reason);
  reason = fmt::format("{} side: {}", side, reason);
  return status;
}

Status find_parts(Core& core, HcaFile& file, const control::CreateQpIn& in, Parts& out,
                  std::string& reason) {
  if (in.type == QpType::XrcRecv) {
    out.xrcd = find_xrcd(core, file, in.xrcd);
    return out.xrcd != nullptr ? Status::Ok : no_such(core, Kind::Xrcd, in.xrcd, reason);
  }
  out.pd = find_own(core.pds, file, in.pd);
  if (out.pd == nullptr) return no_such(core, Kind::Pd, in.pd, reason);
  IB_CHECK(find_cq(core, file, in.send_cq, "send", out.send_cq, reason));
  if (in.type == QpType::XrcSend) return Status::Ok;
  IB_CHECK(find_cq(core, file, in.recv_cq, "receive", out.recv_cq, reason));
  if (in.srq == control::kNoIndex) return Status::Ok;
  out.srq = find_own(core.srqs, file, in.srq);
  if (out.srq == nullptr) return no_such(core, Kind::Srq, in.srq, reason);
  if (out.srq->type == verbs::SrqType::Basic) return Status::Ok;
  reason = fmt::format("shared receive queue {} is of type XRC; a {} queue pair takes a basic one",
                       in.srq, qp_type_name(in.type));
  return Status::InvalidParameter;
}

// The capacities that count: those of a queue that it does not have are ignored [man
// ibv_create_qp, IBA1 annex A14].
control::QpCaps wanted(const control::CreateQpIn& in) {
  if (in.type == QpType::XrcRecv) return {};
  control::QpCaps caps = in.caps;
  if (!has_receive_side(in.type) || in.srq != control::kNoIndex) {
    caps.max_recv_wr = 0;
    caps.max_recv_sge = 0;
  }
  return caps;
}

bool check_request(const control::CreateQpIn& in, std::string& reason) {
  const bool known =
      has_receive_side(in.type) || in.type == QpType::XrcSend || in.type == QpType::XrcRecv;
  const control::QpCaps caps = wanted(in);
  if (!known) {
    reason = fmt::format(
        "queue pair type {}; RC, UC, UD, XRC_SEND, XRC_RECV and, for kernel clients, SMI and GSI "
        "exist here",
        static_cast<std::uint32_t>(in.type));
  } else if ((in.flags & ~control::qp_flag::kAll) != 0) {
    reason = fmt::format("creation flags {:#x}", in.flags);
  } else if ((in.flags & control::qp_flag::kTakesLarge) != 0 && in.type != QpType::Ud) {
    reason =
        fmt::format("creation flags {:#x}: only UD queue pairs take large datagrams", in.flags);
  } else if (caps.max_send_wr > limits::kMaxQpWr || caps.max_recv_wr > limits::kMaxQpWr) {
    reason = fmt::format("max_send_wr {} and max_recv_wr {}; at most {} each (max_qp_wr)",
                         caps.max_send_wr, caps.max_recv_wr, limits::kMaxQpWr);
  } else if (caps.max_send_sge > limits::kMaxSge || caps.max_recv_sge > limits::kMaxSge) {
    reason = fmt::format("max_send_sge {} and max_recv_sge {}; at most {} each (max_sge)",
                         caps.max_send_sge, caps.max_recv_sge, limits::kMaxSge);
  } else if (caps.max_inline > limits::kMaxInline) {
    reason = fmt::format("max_inline_data {}; at most {}", caps.max_inline, limits::kMaxInline);
  } else {
    return true;
  }
  return false;
}

constexpr std::uint32_t kScatterBytes = 16;  // an entry of a scatter list in a work request
static_assert(limits::kMaxSge * kScatterBytes <= limits::kMaxInline);

control::QpCaps granted(const control::CreateQpIn& in) {
  control::QpCaps caps = wanted(in);
  if (in.type == QpType::XrcRecv) return caps;
  if (has_receive_side(in.type) && in.srq == control::kNoIndex) {
    caps.max_recv_sge = std::max(caps.max_recv_sge, 1u);
  }
  caps.max_send_sge = std::max(caps.max_send_sge, 1u);
  // As adapters have it: inline data stand where the scatter list would, and there are programs
  // that rely on it without asking.
  caps.max_inline = std::max(caps.max_inline, caps.max_send_sge * kScatterBytes);
  return caps;
}

// 24 bits: the index and, above it, a generation, so that a number does not come back soon.
std::uint32_t next_qpn(Core& core, std::uint32_t index) {
  constexpr std::uint32_t kTags = (1u << 24) / hca::kMaxQps;
  std::uint8_t& tag = core.qpn_tags[index];
  tag = static_cast<std::uint8_t>((tag + 1u) % kTags);
  return tag * hca::kMaxQps | index;
}

// Takes references and counts producers. Returns true if quiescence must come before the queue pair
// is used (see add_producers).
bool take_parts(Core& core, Qp& qp, const Parts& parts) {
  bool wait = false;
  qp.pd = parts.pd;
  qp.send_cq = parts.send_cq;
  qp.recv_cq = parts.recv_cq;
  qp.srq = parts.srq;
  qp.xrcd = parts.xrcd;
  if (qp.pd != nullptr) ++qp.pd->qps;
  if (qp.srq != nullptr) ++qp.srq->qps;
  if (qp.xrcd != nullptr) ++qp.xrcd->qps;
  // One sender at a time writes for a connected queue pair with a receive queue of its own.
  const std::uint32_t senders = has_many_senders(qp) ? 2 : 1;
  if (qp.send_cq != nullptr) ++qp.send_cq->qps;
  if (qp.recv_cq != nullptr) ++qp.recv_cq->qps;
  if (qp.send_cq != nullptr && qp.send_cq == qp.recv_cq) {
    return add_producers(core, *qp.send_cq, 1 + senders);
  }
  if (qp.send_cq != nullptr) wait |= add_producers(core, *qp.send_cq, 1);
  if (qp.recv_cq != nullptr) wait |= add_producers(core, *qp.recv_cq, senders);
  return wait;
}

void publish(Core& core, Qp& qp) {
  const auto index_of = [](const Object* object) {
    return object != nullptr ? object->index : hca::kNone;
  };
  auto* entry = new (core.arena().qp(qp.index)) hca::QpEntry;
  entry->id.type = qp.type;
  entry->id.pd = index_of(qp.pd);
  entry->id.owner_slot = qp.file->session->slot;
  entry->id.recv_cq = index_of(qp.recv_cq);
  entry->id.srq = index_of(qp.srq);
  entry->id.xrcd = index_of(qp.xrcd);
  entry->id.port = qp.file->hca->first_port;
  entry->id.takes_large = qp.takes_large;
  entry->id.generation = qp.generation;
  entry->geometry.rq_ring = qp.rq_ring;
  entry->geometry.rq_slots = qp.rq_slots;
  entry->geometry.rq_stride = qp.rq_stride;
  entry->geometry.cookie = qp.holders.front().cookie;
  entry->geometry.ca = qp.file->hca->index;
  entry->geometry.send_cq = index_of(qp.send_cq);
  store_path(core, qp);
  entry->id.state.store(QpState::Reset, std::memory_order_relaxed);
  entry->id.qpn.store(qp.qpn, std::memory_order_seq_cst);
  publish_special(core, qp);
}

control::QpOut qp_out(const Qp& qp) {
  return {qp.qpn, qp.generation, qp.caps, qp.rq_ring, qp.rq_slots, qp.rq_stride};
}

// Ring and table entry of a new queue pair.
Result<Qp*> make(Core& core, HcaFile& file, const control::CreateQpIn& in, std::string& reason) {
  if (!has_room(core, file, Kind::Qp, limits::kMaxQp, reason)) return Status::InsufficientResources;
  const control::QpCaps caps = granted(in);
  const std::uint32_t stride = hca::receive_stride(caps.max_recv_sge);
  const std::uint32_t slots = caps.max_recv_wr == 0 ? 0 : receive_slots(caps.max_recv_wr);
  std::uint64_t ring = 0;
  if (slots != 0) {
    const auto piece = core.memory.allocate(std::uint64_t{slots} * stride, reason);
    if (!piece) return piece.error();
    ring = *piece;
  }
  Qp* qp = core.qps.create();
  if (qp == nullptr) {
    if (ring != 0) core.memory.release(ring);
    reason = "the fabric's table of queue pairs is full";
    return Status::InsufficientResources;
  }
  qp->file = &file;
  qp->holders.push_back({&file, in.cookie, 1});
  qp->generation = static_cast<std::uint32_t>(1 + qp->serial % 0xffffffffu);
  qp->qpn = next_qpn(core, qp->index);
  qp->type = in.type;
  qp->takes_large = (in.flags & control::qp_flag::kTakesLarge) != 0;
  qp->caps = caps;
  qp->rq_ring = ring;
  qp->rq_slots = slots;
  qp->rq_stride = slots != 0 ? stride : 0;
  enter_special(core, *qp, in.port);
  enter(core, file, Kind::Qp, qp->index);
  return qp;
}

}  // namespace

void create_qp(Core& core, HcaFile& file, const control::CreateQpIn& in, io::IrpRef irp) {
  Parts parts;
  std::string reason;
  if (!check_request(in, reason)) {
    return fail(core, std::move(irp), Status::InvalidParameter, std::move(reason));
  }
  const Status found = find_parts(core, file, in, parts, reason);
  if (found != Status::Ok) return fail(core, std::move(irp), found, std::move(reason));
  const Status may = check_special(core, file, in, irp->requestor_mode, reason);
  if (may != Status::Ok) return fail(core, std::move(irp), may, std::move(reason));
  const Result<Qp*> made = make(core, file, in, reason);
  if (!made) return fail(core, std::move(irp), made.error(), std::move(reason));
  Qp* qp = *made;
  const bool wait = take_parts(core, *qp, parts);
  qp->making = true;
  const auto finish = [&core, index = qp->index, serial = qp->serial](io::IrpRef request) {
    Qp* ready = core.qps.find(index, serial);
    if (ready == nullptr || ready->dying) {
      return fail(core, std::move(request), Status::Cancelled, "the process ended meanwhile");
    }
    for (const Cq* cq : {ready->send_cq, ready->recv_cq}) {
      if (cq != nullptr) producers_settled(core, cq->index, cq->serial);
    }
    ready->making = false;
    publish(core, *ready);
    succeed_with(std::move(request), qp_out(*ready), ready->handle);
  };
  if (!wait) return finish(std::move(irp));
  core.after_quiescence(file.session->slot,
                        [finish, irp = std::move(irp)]() mutable { finish(std::move(irp)); });
}

void open_qp(Core& core, HcaFile& file, const control::OpenQpIn& in, io::IrpRef irp) {
  const Xrcd* xrcd = find_xrcd(core, file, in.xrcd);
  if (xrcd == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Xrcd, in.xrcd);
  }
  Qp* qp = core.qps.find(hca::qp_index(in.qpn));
  if (qp == nullptr || qp->dying || qp->qpn != in.qpn || qp->type != QpType::XrcRecv ||
      qp->xrcd != xrcd) {
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        fmt::format("there is no XRC receive queue pair {:#x} in XRC domain {}", in.qpn, in.xrcd));
  }
  const auto held = std::find_if(qp->holders.begin(), qp->holders.end(),
                                 [&](const Qp::Holder& h) { return h.file == &file; });
  if (held != qp->holders.end()) {
    ++held->count;
  } else {
    qp->holders.push_back({&file, in.cookie, 1});
    enter(core, file, Kind::Qp, qp->index);
  }
  succeed_with(std::move(irp), qp_out(*qp), qp->handle);
}

bool drop_holder(Core& core, Qp& qp, HcaFile& file) {
  const auto held = std::find_if(qp.holders.begin(), qp.holders.end(),
                                 [&](const Qp::Holder& h) { return h.file == &file; });
  IB_ASSERT(held != qp.holders.end());
  hca::QpEntry& entry = *core.arena().qp(qp.index);
  if (qp.holders.size() > 1) {
    qp.holders.erase(held);
    leave(core, file, Kind::Qp, qp.index);
    const Qp::Holder& heir = qp.holders.front();
    qp.file = heir.file;
    entry.id.owner_slot = heir.file->session->slot;
    entry.geometry.cookie = heir.cookie;
    return false;
  }
  qp.dying = true;
  hide_groups(core, qp);
  hide_special(core, qp);
  entry.id.qpn.store(0, std::memory_order_seq_cst);
  entry.id.state.store(QpState::Reset, std::memory_order_seq_cst);
  return true;
}

void after_users_left(Core& core, const Qp& qp, Once then) {
  const std::uint32_t owner = qp.file->session->slot;
  const bool is_connected = qp.type == QpType::Rc || qp.type == QpType::Uc;
  if (!is_connected || !hca::was_never_used(*core.arena().qp(qp.index))) {
    return core.after_quiescence(owner, std::move(then));
  }
  hca::advance_epoch(core.arena(), owner);
  then();
}

void destroy_qp(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Qp* qp = find_qp(core, file, in.index);
  if (qp == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Qp, in.index);
  }
  if (qp->busy || !qp->groups.empty()) {
    return fail(core, std::move(irp), Status::DeviceBusy,
                qp->busy
                    ? still_busy(Kind::Qp, in.index)
                    : fmt::format("queue pair {} is attached to {}", control::index_of(in.index),
                                  count_of(qp->groups.size(), "multicast group")));
  }
  const auto held = std::find_if(qp->holders.begin(), qp->holders.end(),
                                 [&](const Qp::Holder& h) { return h.file == &file; });
  if (held->count > 1) {  // opened several times by this process
    --held->count;
    return succeed(std::move(irp));
  }
  if (!drop_holder(core, *qp, file)) return succeed(std::move(irp));
  after_users_left(core, *qp,
                   [&core, index = qp->index, serial = qp->serial, irp = std::move(irp)]() mutable {
                     if (Qp* gone = core.qps.find(index, serial); gone != nullptr)
                       release(core, *gone);
                     succeed(std::move(irp));
                   });
}

void release(Core& core, Qp& qp) {
  count_connection(core, qp);
  release_groups(core, qp);
  leave_special(core, qp);
  if (qp.rq_ring != 0) core.memory.release(qp.rq_ring);
  if (qp.pd != nullptr) --qp.pd->qps;
  if (qp.srq != nullptr) --qp.srq->qps;
  if (qp.xrcd != nullptr) --qp.xrcd->qps;
  if (qp.send_cq != nullptr) {
    --qp.send_cq->qps;
    remove_producers(core, *qp.send_cq, 1);
  }
  if (qp.recv_cq != nullptr) {
    --qp.recv_cq->qps;
    remove_producers(core, *qp.recv_cq, has_many_senders(qp) ? 2 : 1);
  }
  leave(core, *qp.file, Kind::Qp, qp.index);
  core.qps.destroy(qp.index);
}

// Posters move a queue pair to Error, or SQE (its own); anything else in the word is garbage.
QpState current_state(Core& core, const Qp& qp) {
  const QpState word = core.arena().qp(qp.index)->id.state.load(std::memory_order_acquire);
  if (word == QpState::Error) return QpState::Error;
  if (word == QpState::Sqe && qp.attr.state == QpState::Rts) return QpState::Sqe;
  return qp.attr.state;
}

void query_qp(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  const Qp* qp = find_qp(core, file, in.index);
  if (qp == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Qp, in.index);
  }
  control::QueryQpOut out;
  out.attr = qp->attr;
  out.attr.state = current_state(core, *qp);
  out.attr.cur_state = out.attr.state;
  out.attr.sq_draining = qp->draining ? 1 : 0;
  out.caps = qp->caps;
  succeed_with(std::move(irp), out, qp->handle);
}

}  // namespace ib::drivers
