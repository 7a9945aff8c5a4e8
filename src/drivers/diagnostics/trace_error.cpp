// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/diagnostics/trace_error.h"

#include "drivers/diagnostics/explain.h"
#include "drivers/soft_hca/handlers.h"
#include "verbs/post_refusal.h"
#include "verbs/report_count.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

using verbs::control::Cause;
using verbs::control::PostRefusal;

Party party(const HcaFile& file, std::uint32_t qpn, verbs::QpType type) {
  const Session& session = *file.session;
  return {session.node->name, file.hca->name, session.program, session.pid, qpn, type};
}

// The party that posted the request; none, if its queue is not there.
std::optional<Party> poster_of(Core& core, const control::TraceErrorIn& in) {
  const auto why = static_cast<PostRefusal>(in.cause);
  if (why == PostRefusal::SrqSges || why == PostRefusal::SrqQueueFull) {
    const Srq* srq = core.srqs.find(in.qp_index);
    if (srq == nullptr) return std::nullopt;
    Party self = party(*srq->file, srq->index, verbs::QpType::Rc);
    self.is_srq = true;
    return self;
  }
  const Qp* qp = core.qps.find(in.qp_index);
  if (qp == nullptr) return std::nullopt;
  return party(*qp->file, qp->qpn, qp->type);
}

// "1 (node0, softib0, port 1), 2 (node1, softib0, port 1)"
std::string lids_of(Core& core) {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t count = 0;
  for (const fabric::Node& node : core.fabric.nodes()) {
    for (const fabric::Hca& hca : node.hcas) {
      for (const fabric::Port& port : hca.ports) {
        if (!hca.present) continue;
        if (++count > kShown) return text + ", ...";
        text += fmt::format("{}{} ({}, {}, port {})", count == 1 ? "" : ", ", port.lid, node.name,
                            hca.name, port.number);
      }
    }
  }
  return text;
}

}  // namespace

// Comes on the poster's connection of its own, which owns nothing: the queue says whose it is.
void trace_error(Core& core, Session&, const control::TraceErrorIn& in, io::IrpRef irp) {
  const std::optional<Party> self = poster_of(core, in);
  if (!self) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("there is no queue pair {}", in.qp_index));
  }
  std::optional<Party> peer;
  const Qp* other = core.qps.find(hca::qp_index(in.peer_qpn));
  if (other != nullptr && other->qpn == in.peer_qpn) {
    peer = party(*other->file, other->qpn, other->type);
  }
  TraceEntry entry;
  entry.kind = TraceKind::Error;
  entry.node = self->node;
  entry.program = self->program;
  entry.pid = self->pid;
  entry.count = verbs::times_of(in);
  if (peer) entry.peer = name_of(*peer);
  const bool nowhere = in.cause == Cause::PeerUnknown && in.detail != 0 &&
                       core.fabric.find_port(static_cast<std::uint16_t>(in.detail)) == nullptr;
  entry.text = explain_error(in, *self, peer, nowhere ? lids_of(core) : "");
  core.trace.add(std::move(entry));
  succeed(std::move(irp));
}

}  // namespace ib::drivers
