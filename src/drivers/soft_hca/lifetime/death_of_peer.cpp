// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peers of a dead process get the errors that hardware would give them: retry exceeded after
// their own retry time, even if they have nothing to send. docs/design/0003-death.md has the rule.
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "verbs/qp_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::drivers {
namespace {

using verbs::QpState;

constexpr Duration kLongest = std::chrono::seconds(4);
constexpr unsigned kTimeoutUnit = 4096;  // ns [IBA1 9.7.6.1.3]

Duration retry_time(const Qp& qp) {
  if (qp.attr.timeout == 0 || qp.attr.timeout > 31) return kLongest;
  const Duration once{std::int64_t{kTimeoutUnit} << qp.attr.timeout};
  return std::min(once * (qp.attr.retry_cnt + 1), kLongest);
}

struct Bereaved {
  std::uint32_t index;
  std::uint64_t serial;
  std::uint64_t connection;
  control::Cause cause;
  std::uint64_t detail;  // the pid, if a process died
};

// A request that waits for the peer fails with the queue pair: its line tells of the loss, and
// more.
bool will_report(const Qp& qp, const hca::QpEntry& entry) {
  return !verbs::is_unreliable(qp.type) && entry.requester.blocked.load() != control::Cause::None;
}

void trace_loss(Core& core, const Qp& qp, const Bereaved& peer) {
  const Session& survivor = *qp.file->session;
  const bool has_died = peer.cause == control::Cause::PeerProcessGone;
  TraceEntry entry;
  entry.node = survivor.node->name;
  entry.program = survivor.program;
  entry.pid = survivor.pid;
  if (has_died) entry.event = loss_event(survivor.pid, peer.detail);
  entry.text = fmt::format(
      "{}: {} queue pair {:#x} went to ERROR: {}", describe(survivor), qp_type_name(qp.type),
      qp.qpn,
      has_died ? fmt::format("the process of its peer {:#x}, pid {}, has ended", qp.attr.dest_qpn,
                             peer.detail)
               : fmt::format("the HCA of its peer {:#x} was removed", qp.attr.dest_qpn));
  core.trace.add(std::move(entry));
}

void break_connection(Core& core, const Bereaved& peer) {
  Qp* qp = core.qps.find(peer.index, peer.serial);
  // Gone, reset or connected to another peer: it does not wait for the dead one.
  if (qp == nullptr || qp->dying || qp->connection != peer.connection) return;
  const QpState state = current_state(core, *qp);
  if (!verbs::receives(state)) return;
  hca::QpEntry& entry = *core.arena().qp(qp->index);
  QpState expected = state;
  if (!entry.id.state.compare_exchange_strong(expected, QpState::Error,
                                              std::memory_order_seq_cst)) {
    return;  // a poster was faster
  }
  qp->attr.state = QpState::Error;
  if (!will_report(*qp, entry)) trace_loss(core, *qp, peer);
  core.memory.kick(qp->file->session->slot);
}

}  // namespace

std::string loss_event(std::uint32_t survivor, std::uint64_t dead) {
  return fmt::format("process {} has lost process {}", survivor, dead);
}

void expect_loss(Core& core, Qp& qp, control::Cause cause, std::uint64_t detail) {
  Qp* peer = connected_peer(core, qp);
  if (peer == nullptr || peer->file->session == qp.file->session) return;
  if (!verbs::receives(current_state(core, *peer))) return;
  // Said at once: what the peer sends meanwhile fails with this as the reason.
  auto& geometry = core.arena().qp(peer->index)->geometry;
  geometry.error_detail.store(detail, std::memory_order_relaxed);
  geometry.error_cause.store(cause, std::memory_order_release);
  const Bereaved bereaved{peer->index, peer->serial, peer->connection, cause, detail};
  core.later.in(retry_time(*peer), [&core, bereaved] { break_connection(core, bereaved); });
}

void notify_peers(Core& core, const Session& dead) {
  for (const auto& file : dead.files) {
    for (const std::uint32_t index : file->of(Kind::Qp)) {
      Qp& qp = *core.qps.find(index);
      // An XRC receive QP lives on with others who opened it; in two files of the dead process it
      // is looked at once. One that is dying was destroyed in order.
      const bool dies = std::all_of(qp.holders.begin(), qp.holders.end(), [&](const auto& holder) {
        return holder.file->session == &dead;
      });
      if (!qp.dying && dies && qp.file == file.get()) {
        expect_loss(core, qp, control::Cause::PeerProcessGone, dead.pid);
      }
    }
  }
}

}  // namespace ib::drivers
