// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Modify queue pair [IBA1 11.2.5.2]. Which attributes may come when is in verbs/qp_state; here are
// their values and what a new state means for posters: those that execute against the queue pair
// have left it when a change to Reset or Error is answered.
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/objects/connection_paths.h"
#include "hca/layout/first_use.h"
#include "verbs/gid.h"
#include "verbs/qp_state.h"
#include "verbs/qp_values.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

namespace attr = verbs::qp_attr;
using verbs::MigState;
using verbs::QpState;

constexpr std::uint16_t kFirstMulticastLid = 0xc000;

// Port and P_Key index, of the primary or the alternate path.
bool check_port(HcaFile& file, std::uint32_t number, std::uint32_t pkey_index,
                std::string& reason) {
  const fabric::Port* port = find_port(file, number);
  if (port == nullptr) {
    reason = no_such_port(file, number);
  } else if (pkey_index >= port->pkeys.size()) {
    reason =
        fmt::format("pkey_index {}; port {} has {} P_Keys", pkey_index, number, port->pkeys.size());
  } else if (port->pkeys[pkey_index] == 0) {
    reason = fmt::format("pkey_index {} of port {}: that P_Key was removed", pkey_index, number);
  }
  return reason.empty();
}

bool check_path(Core& core, HcaFile& file, verbs::AddressVector& av, std::string& reason) {
  if (!check_address(core, file, av, reason)) return false;
  if (av.is_global != 0 && verbs::is_multicast(av.dgid)) {
    reason =
        fmt::format("address vector: {} is a multicast GID; a connection needs the GID of a port",
                    verbs::address_text(av.dgid));
  } else if (av.dlid >= kFirstMulticastLid) {
    reason = fmt::format(
        "address vector: LID {:#x} is a multicast LID; a connection needs the LID of a port",
        av.dlid);
  }
  return reason.empty();
}

bool has(const control::ModifyQpIn& in, std::uint32_t bits) {
  return (in.mask & bits) != 0;
}

bool merge_path(Core& core, HcaFile& file, const control::ModifyQpIn& in, control::QpAttr& out,
                std::string& reason) {
  if (has(in, attr::kPort)) out.port = in.attr.port;
  if (has(in, attr::kPkeyIndex)) out.pkey_index = in.attr.pkey_index;
  if (has(in, attr::kPort | attr::kPkeyIndex) &&
      !check_port(file, out.port, out.pkey_index, reason)) {
    return false;
  }
  if (!has(in, attr::kAv)) return true;
  out.av = in.attr.av;
  return check_path(core, file, out.av, reason);
}

bool merge_alternate_path(Core& core, HcaFile& file, const control::ModifyQpIn& in,
                          control::QpAttr& out, std::string& reason) {
  if (!has(in, attr::kAltPath)) return true;
  out.alt_av = in.attr.alt_av;
  out.alt_port = in.attr.alt_port;
  out.alt_pkey_index = in.attr.alt_pkey_index;
  out.alt_timeout = in.attr.alt_timeout;
  if (check_port(file, out.alt_port, out.alt_pkey_index, reason) &&
      check_path(core, file, out.alt_av, reason)) {
    return true;
  }
  reason = "alternate path: " + reason;
  return false;
}

bool merge_migration(const control::ModifyQpIn& in, control::QpAttr& out, std::string& reason) {
  if (!has(in, attr::kPathMigState)) return true;
  out.mig_state = in.attr.mig_state;
  if (out.mig_state != MigState::Migrated && out.mig_state != MigState::Rearm) {
    reason = "path_mig_state: software sets MIGRATED or REARM; the HCA goes to ARMED by itself";
  } else if (out.mig_state == MigState::Rearm && out.alt_port == 0) {
    reason = "path_mig_state REARM needs an alternate path (IBV_QP_ALT_PATH)";
  }
  return reason.empty();
}

void merge_values(const control::ModifyQpIn& in, control::QpAttr& out) {
  const auto take = [&in, &out](std::uint32_t bit, auto member) {
    if (has(in, bit)) out.*member = in.attr.*member;
  };
  take(attr::kQkey, &control::QpAttr::qkey);
  take(attr::kAccessFlags, &control::QpAttr::access);
  take(attr::kPathMtu, &control::QpAttr::path_mtu);
  take(attr::kTimeout, &control::QpAttr::timeout);
  take(attr::kRetryCnt, &control::QpAttr::retry_cnt);
  take(attr::kRnrRetry, &control::QpAttr::rnr_retry);
  take(attr::kMinRnrTimer, &control::QpAttr::min_rnr_timer);
  take(attr::kRqPsn, &control::QpAttr::rq_psn);
  take(attr::kSqPsn, &control::QpAttr::sq_psn);
  take(attr::kDestQpn, &control::QpAttr::dest_qpn);
  take(attr::kMaxQpRdAtomic, &control::QpAttr::max_rd_atomic);
  take(attr::kMaxDestRdAtomic, &control::QpAttr::max_dest_rd_atomic);
  take(attr::kEnSqdAsyncNotify, &control::QpAttr::en_sqd_async_notify);
}

// The attributes as they will be; false if a value is impossible.
bool merge(Core& core, HcaFile& file, const Qp& qp, const control::ModifyQpIn& in,
           control::QpAttr& out, std::string& reason) {
  out = qp.attr;
  merge_values(in, out);
  return verbs::check_qp_values(in.mask, in.attr, reason) &&
         merge_path(core, file, in, out, reason) &&
         merge_alternate_path(core, file, in, out, reason) && merge_migration(in, out, reason);
}

// Reset and Error: stops the queue pair, answers when no poster is in it any more.
void stop(Core& core, Qp& qp, QpState from, QpState to, io::IrpRef irp) {
  qp.busy = true;
  qp.draining = false;
  qp.attr.state = to;
  hca::QpEntry& entry = *core.arena().qp(qp.index);
  // The owner itself stops it.
  entry.geometry.error_cause.store(control::Cause::None, std::memory_order_relaxed);
  entry.id.state.store(to, std::memory_order_seq_cst);
  if (to == QpState::Reset) {
    ++qp.connection;
    qp.attr = {};
    qp.attr.port = qp.special_port;
  }
  after_users_left(
      core, qp,
      [&core, index = qp.index, serial = qp.serial, from, to, irp = std::move(irp)]() mutable {
        Qp* stopped = core.qps.find(index, serial);
        if (stopped == nullptr || stopped->dying) {
          return fail(core, std::move(irp), Status::Cancelled, "the process ended meanwhile");
        }
        stopped->busy = false;
        if (to == QpState::Reset) {
          store_path(core, *stopped);
          hca::QpEntry& words = *core.arena().qp(index);
          words.responder.rq_head.store(0);
          words.responder.cq_intent.store(0);
          words.responder.srq_taken.store(0);
          words.owner.rq_tail.store(0);
          words.waiter.rnr_waiter.store(0);
          words.lock.rq_lock.store(0);
          words.requester.blocked.store(control::Cause::None);
          words.geometry.error_cause.store(control::Cause::None);
          words.geometry.error_detail.store(0);
          // A poster that broke it in the last moment.
          words.id.state.store(QpState::Reset, std::memory_order_seq_cst);
        }
        succeed_with(std::move(irp), control::ModifyQpOut{from, to}, stopped->handle);
      });
}

// RTS to SQD: requests execute when they are posted, so the queue is drained at quiescence.
void drain(Core& core, Qp& qp) {
  qp.draining = true;
  core.after_quiescence(qp.file->session->slot, [&core, index = qp.index, serial = qp.serial] {
    Qp* drained = core.qps.find(index, serial);
    if (drained == nullptr || drained->dying || !drained->draining) return;
    drained->draining = false;
    if (drained->attr.en_sqd_async_notify != 0)
      raise_qp(core, *drained, verbs::EventType::SqDrained);
  });
}

// Into the states in which posters work with it. Returns false if a poster has broken it meanwhile.
bool advance(Core& core, Qp& qp, QpState from, QpState to, const control::QpAttr& next) {
  const MigState migration = qp.attr.mig_state;
  qp.attr = next;
  qp.attr.state = from;
  if (to == QpState::Rtr && from != to) ++qp.connection;
  const bool migrates = migration == MigState::Armed && next.mig_state == MigState::Migrated;
  if (migrates) {
    qp.attr.mig_state = MigState::Armed;
    migrate(core, qp);
  } else {
    store_path(core, qp);
    if (next.mig_state == MigState::Rearm && migration != MigState::Rearm) arm_migration(core, qp);
  }
  hca::QpEntry& entry = *core.arena().qp(qp.index);
  QpState expected = from;
  if (!entry.id.state.compare_exchange_strong(expected, to, std::memory_order_seq_cst)) {
    return false;
  }
  qp.attr.state = to;
  if (to == QpState::Sqd && from == QpState::Rts) drain(core, qp);
  if (to != QpState::Sqd) qp.draining = false;
  // Its peer may have requests waiting for it, unless it has never posted any.
  if (to == QpState::Rtr && from != to) {
    const Qp* peer = connected_peer(core, qp);
    if (peer != nullptr && !hca::was_never_used(*core.arena().qp(peer->index))) {
      core.memory.kick(peer->file->session->slot);
    }
  }
  return true;
}

}  // namespace

void modify_qp(Core& core, HcaFile& file, const control::ModifyQpIn& in, io::IrpRef irp) {
  Qp* qp = find_qp(core, file, in.index);
  if (qp == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Qp, in.index);
  }
  if (qp->busy) {
    return fail(core, std::move(irp), Status::DeviceBusy, still_busy(Kind::Qp, in.index));
  }
  const QpState from = current_state(core, *qp);
  const QpState to = (in.mask & attr::kState) != 0 ? in.attr.state : from;
  const verbs::QpModifyCheck check = verbs::check_qp_modify(qp->type, from, to, in.mask);
  if (check.verdict != verbs::QpModifyVerdict::Ok) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                explain_qp_modify(qp->type, from, to, check));
  }
  if ((in.mask & attr::kCurState) != 0 && in.attr.cur_state != from) {
    return fail(core, std::move(irp), Status::InvalidState,
                fmt::format("the queue pair is in {}, not in {} (cur_qp_state)",
                            qp_state_name(from), qp_state_name(in.attr.cur_state)));
  }
  std::string reason;
  control::QpAttr next;
  if (!merge(core, file, *qp, in, next, reason)) {
    return fail(core, std::move(irp), Status::InvalidParameter, std::move(reason));
  }
  if (to == QpState::Reset || to == QpState::Error)
    return stop(core, *qp, from, to, std::move(irp));
  if (!advance(core, *qp, from, to, next)) {
    return fail(core, std::move(irp), Status::InvalidState,
                fmt::format("the queue pair went to ERROR while it was being moved from {} to {}",
                            qp_state_name(from), qp_state_name(to)));
  }
  succeed_with(std::move(irp), control::ModifyQpOut{from, to}, qp->handle);
}

}  // namespace ib::drivers
