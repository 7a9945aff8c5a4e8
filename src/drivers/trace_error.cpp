// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/trace_error.h"

#include "drivers/explain.h"
#include "drivers/handlers.h"

namespace ib::drivers {
namespace {

Party party(const Qp& qp) {
  const Session& session = *qp.file->session;
  return {session.node->name, qp.file->hca->name, session.program, session.pid, qp.qpn, qp.type};
}

}  // namespace

// Comes on the poster's connection of its own, which owns nothing: the queue pair says whose it is.
void trace_error(Core& core, Session&, const control::TraceErrorIn& in, io::IrpRef irp) {
  Qp* qp = core.qps.find(in.qp_index);
  if (qp == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                say("there is no queue pair ", in.qp_index));
  }
  std::optional<Party> peer;
  const Qp* other = core.qps.find(hca::qp_index(in.peer_qpn));
  if (other != nullptr && other->qpn == in.peer_qpn) peer = party(*other);
  TraceEntry entry;
  entry.kind = TraceKind::Error;
  const Party self = party(*qp);
  entry.node = self.node;
  entry.program = self.program;
  entry.pid = self.pid;
  if (peer) entry.peer = name_of(*peer);
  entry.text = explain_error(in, self, peer);
  core.trace.add(std::move(entry));
  succeed(std::move(irp));
}

}  // namespace ib::drivers
