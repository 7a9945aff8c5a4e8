// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/events.h"

#include "drivers/soft_hca/handlers.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::drivers {

using verbs::EventType;

void push_event(Core& core, Session& session, const control::EventOut& event) {
  if (session.ending || session.slot == hca::kNone) return;
  // Its buffer was checked before it was parked.
  if (auto irp = session.waiters.take()) return succeed_with(*std::move(irp), event);
  if (session.events.size() < kMaxEvents) {
    session.events.push_back(event);
    return;
  }
  if (session.events.back().type != EventType::EventsLost) {
    session.events.push_back({EventType::EventsLost, control::EventObject::Device, 0, 0, 0});
  }
  ++session.events.back().index;
  if (session.events_lost++ == 0) {
    core.trace.add(
        fmt::format("{} does not take its asynchronous events: {} wait, further ones are dropped",
                    describe(session), kMaxEvents));
  }
}

void raise_cq(Core& core, Cq& cq, EventType type) {
  push_event(core, *cq.file->session,
             {type, control::EventObject::Cq, cq.file->number, cq.index, cq.cookie});
}

void raise_srq(Core& core, Srq& srq, EventType type) {
  push_event(core, *srq.file->session,
             {type, control::EventObject::Srq, srq.file->number, srq.index, srq.cookie});
}

void raise_qp(Core& core, Qp& qp, EventType type) {
  for (const Qp::Holder& holder : qp.holders) {
    push_event(core, *holder.file->session,
               {type, control::EventObject::Qp, holder.file->number, qp.index, holder.cookie});
  }
}

void raise_port(Core& core, const fabric::Hca& hca, std::uint32_t port, EventType type) {
  for (const auto& [id, session] : core.sessions) {
    for (const auto& file : session->files) {
      if (file->hca != &hca || file->closing) continue;
      push_event(core, *session, {type, control::EventObject::Port, file->number, port, 0});
    }
  }
}

void raise_ca(Core& core, const fabric::Hca& hca, EventType type) {
  for (const auto& [id, session] : core.sessions) {
    if (!session->wants_ca_events || session->node != &core.fabric.node_of(hca)) continue;
    push_event(core, *session, {type, control::EventObject::Device, 0, hca.index, hca.node_guid});
  }
}

void raise_attention(Core& core, Session& session) {
  push_event(core, session,
             {EventType::Attention, control::EventObject::Device, 0, session.slot, 0});
}

void wait_event(Core& core, Session& caller, io::IrpRef irp) {
  Session* session = &caller;
  if (const auto in = irp->input<control::GenerationIn>()) {
    session = session_of_slot(core, in->index, in->generation);
  } else if (!irp->in.empty()) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                "WaitEvent takes nothing, or slot and generation of a process");
  }
  if (session == nullptr || session->slot == hca::kNone) {
    return fail_quietly(std::move(irp), Status::Disconnected, "there is no such process attached");
  }
  if (session->pid != caller.pid) {  // the request would take them from it
    return fail(core, std::move(irp), Status::AccessDenied, "these are another process's events");
  }
  if (session->events.empty()) return session->waiters.park(std::move(irp));
  const control::EventOut event = session->events.front();
  session->events.pop_front();
  succeed_with(std::move(irp), event);
}

namespace {

bool is_qp_event(EventType type) {
  return type == EventType::QpFatal || type == EventType::QpReqErr ||
         type == EventType::QpAccessErr || type == EventType::CommEst ||
         type == EventType::SqDrained || type == EventType::PathMig ||
         type == EventType::PathMigErr || type == EventType::QpLastWqeReached;
}

void trace_overrun(Core& core, const Cq& cq) {
  if (cq.file == nullptr) return;
  const Session& session = *cq.file->session;
  TraceEntry entry;
  entry.kind = TraceKind::Error;
  entry.pid = session.pid;
  entry.program = session.program;
  if (session.node != nullptr) entry.node = session.node->name;
  entry.text = fmt::format(
      "{}: completion queue {} ran over, and its queue pairs are lost: poll it more often, or "
      "create it with as many entries as requests can be outstanding on all its queue pairs.",
      describe(session), cq.index);
  core.trace.add(std::move(entry));
}

// The queue pairs of a completion queue in error, at both of their ends, are in error too
// [IBA1 11.6.3.2].
void break_users(Core& core, const Cq& cq) {
  core.qps.for_each([&](Qp& qp) {
    const bool uses = qp.send_cq == &cq || qp.recv_cq == &cq;
    if (!uses || qp.dying || !verbs::receives(current_state(core, qp))) return;
    hca::QpEntry& entry = *core.arena().qp(qp.index);
    verbs::QpState state = entry.id.state.load(std::memory_order_acquire);
    if (!verbs::receives(state)) return;
    entry.geometry.error_cause.store(control::Cause::CqOverflow, std::memory_order_release);
    if (!entry.id.state.compare_exchange_strong(state, verbs::QpState::Error)) return;
    qp.attr.state = verbs::QpState::Error;
    core.memory.kick(qp.file->session->slot);
    raise_qp(core, qp, EventType::QpFatal);
  });
}

void lose_cq(Core& core, Cq& cq) {
  if (cq.in_error) return;
  cq.in_error = true;
  trace_overrun(core, cq);
  raise_cq(core, cq, EventType::CqErr);
  break_users(core, cq);
}

bool is_srq_event(EventType type) {
  return type == EventType::SrqErr || type == EventType::SrqLimitReached;
}

}  // namespace

// An object that is gone, or another one by now, is no error: the reporter cannot detect that.
void raise_event(Core& core, Session&, const control::RaiseEventIn& in, io::IrpRef irp) {
  bool sensible = true;
  switch (in.object) {
    case control::EventObject::Qp: {
      Qp* qp = core.qps.find(in.index);
      sensible = sensible && is_qp_event(in.type);
      if (sensible && qp != nullptr && !qp->dying && qp->generation == in.generation) {
        raise_qp(core, *qp, in.type);
      }
      break;
    }
    case control::EventObject::Cq: {
      Cq* cq = core.cqs.find(in.index);
      const bool completion = in.type == EventType::Completion;
      sensible = sensible && (completion || in.type == EventType::CqErr);
      if (sensible && cq != nullptr && !cq->dying && cq->generation == in.generation &&
          (!completion || cq->channel == control::kKernelChannel)) {
        if (completion) {
          raise_cq(core, *cq, in.type);
        } else {
          lose_cq(core, *cq);
        }
      }
      break;
    }
    case control::EventObject::Srq: {
      Srq* srq = core.srqs.find(in.index);
      sensible = sensible && is_srq_event(in.type);
      if (sensible && srq != nullptr && !srq->dying && srq->generation == in.generation) {
        raise_srq(core, *srq, in.type);
      }
      break;
    }
    case control::EventObject::Device: {
      sensible = in.type == EventType::Attention;
      Session* owner = session_of_slot(core, in.index, in.generation);
      if (sensible && owner != nullptr && owner->wants_attention) raise_attention(core, *owner);
      break;
    }
    case control::EventObject::Way:
      core.datagram_ways.find(core, hca::WayKey::of(std::uint64_t{in.index} << 32 | in.generation));
      break;
    case control::EventObject::Port:  // only softibd raises events of ports
    default: sensible = false; break;
  }
  if (!sensible) {
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        fmt::format("event {} on object kind {} cannot be raised by a process",
                    static_cast<std::uint32_t>(in.type), static_cast<std::uint32_t>(in.object)));
  }
  succeed(std::move(irp));
}

}  // namespace ib::drivers
