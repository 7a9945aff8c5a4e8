// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peers of a dead process get the errors that hardware would give them: retry exceeded after
// their own retry time, even if they have nothing to send. docs/design/0003-death.md has the rule.
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/soft_hca/objects/path_migration.h"
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
  core.trace.add(
      fmt::format("{}: {} queue pair {:#x} went to ERROR: {}", describe(*qp->file->session),
                  qp_type_name(qp->type), qp->qpn,
                  peer.cause == control::Cause::HcaRemoved
                      ? fmt::format("the HCA of its peer {:#x} was removed", qp->attr.dest_qpn)
                      : fmt::format("the process of its peer {:#x}, pid {}, has ended",
                                    qp->attr.dest_qpn, peer.detail)));
  core.memory.kick(qp->file->session->slot);
}

}  // namespace

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
