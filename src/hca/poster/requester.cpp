// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From acceptance to the end of each request: executing, waiting, error and flush. The operations
// are in send.cpp, rdma.cpp, atomics.cpp, datagrams.cpp and memory_window_bind.cpp.
#include "hca/poster/requester.h"

#include "hca/requester/message_count.h"

namespace ib::hca {

using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

QpEntry& existing(QpEntry* entry) {
  IB_ASSERT(entry != nullptr);
  return *entry;
}

}  // namespace

Requester::Requester(MemoryPlane& plane, const RequesterConfig& config)
    : plane_(plane),
      config_(config),
      own_(existing(plane.arena().qp(config.qp))),
      fast_path_(plane, config, own_),
      queue_(fast_path_.queue()),
      peers_(fast_path_.peers()),
      retry_(fast_path_.retry()),
      responder_(fast_path_.responder()),
      reports_(plane.host(), config) {}

Status Requester::post(const SendWqe& wqe, Way way) {
  if (way == Way::Fastest && fast_path_.try_post(wqe)) return Status::Ok;
  IB_CHECK(queue_.check(wqe));
  const auto state = own_.id.state.load(std::memory_order_acquire);
  if (state == QpState::Reset || state == QpState::Init || state == QpState::Rtr) {
    return Status::InvalidState;
  }
  const std::uint64_t position = queue_.posted().append(wqe.wr_id);
  if (waiting() || state == QpState::Sqd) {
    queue_.keep(wqe, position);
    return Status::Ok;
  }
  if (state != QpState::Rts) {
    queue_.complete(wqe, position, WcStatus::WrFlushErr, Cause::QpFlushed, 0);
    return Status::Ok;
  }
  transfer_.begin_call();
  if (!settle(wqe, position, execute(wqe))) queue_.keep(wqe, position);
  return Status::Ok;
}

Requester::Tried Requester::try_now(const SendWqe& wqe) {
  const auto state = own_.id.state.load(std::memory_order_acquire);
  if (state == QpState::Sqd) return {Tried::NotNow, Cause::None};
  if (state != QpState::Rts) return {Tried::Failed, Cause::QpFlushed};
  transfer_.begin_call();
  const Outcome outcome = execute(wqe);
  if (outcome.kind == Outcome::Kind::Wait) {
    forget_head();
    responder_.fire_due();
    return {Tried::NotNow, outcome.cause};
  }
  finish(wqe, 0, outcome);
  responder_.fire_due();
  if (outcome.kind == Outcome::Kind::Fail) return {Tried::Failed, outcome.cause};
  return {};
}

Requester::Progress Requester::progress(std::uint32_t most) {
  transfer_.begin_call();
  for (; waiting() && most > 0; --most) {
    const auto state = own_.id.state.load(std::memory_order_acquire);
    if (state == QpState::Sqd) {
      retry_.try_again_soon(plane_.host().now());
      return Progress::Waits;
    }
    if (state != QpState::Rts) {
      flush();
      return Progress::Idle;
    }
    const std::uint64_t position = queue_.head();
    const SendWqe wqe = queue_.load(position);
    const Outcome outcome = execute(wqe);
    if (outcome.kind == Outcome::Kind::Fail) queue_.drop_head();  // settle() flushes the others
    if (!settle(wqe, position, outcome)) return Progress::Waits;
    if (outcome.kind != Outcome::Kind::Wait && outcome.kind != Outcome::Kind::Fail) {
      queue_.drop_head();
    }
  }
  return waiting() ? Progress::More : Progress::Idle;
}

// Returns true if the request is over, false if it waits.
bool Requester::settle(const SendWqe& wqe, std::uint64_t position, const Outcome& outcome) {
  const bool is_over = finish_or_wait(wqe, position, outcome);
  responder_.fire_due();
  return is_over;
}

bool Requester::finish_or_wait(const SendWqe& wqe, std::uint64_t position, const Outcome& outcome) {
  if (outcome.kind != Outcome::Kind::Wait) {
    const bool lost = outcome.kind == Outcome::Kind::Dropped && outcome.cause == Cause::NoReceive;
    if (outcome.kind != Outcome::Kind::Fail && !lost) retry_.message_ended(false);
    finish(wqe, position, outcome);
    return true;
  }
  if (may_wait(outcome)) return false;
  const Outcome last = retry_.exhausted(outcome);
  if (waiting()) queue_.drop_head();
  retry_.message_ended(last.kind == Outcome::Kind::Dropped);
  finish(wqe, position, last);
  return true;
}

// Also shows others what this queue pair waits for.
bool Requester::may_wait(const Outcome& outcome) {
  const Cause before = retry_.waits_for();
  const bool may = retry_.may_wait(outcome, plane_.host().now());
  if (retry_.waits_for() != before) {
    own_.requester.blocked.store(retry_.waits_for(), std::memory_order_relaxed);
  }
  return may;
}

void Requester::finish(const SendWqe& wqe, std::uint64_t position, const Outcome& result) {
  const Cause waited_for = retry_.waits_for();
  transfer_.moved = 0;
  retry_.forget_head();
  own_.requester.blocked.store(Cause::None, std::memory_order_relaxed);
  if (result.kind != Outcome::Kind::Fail) {
    responder_.forget_receive();
    const bool dropped = result.kind == Outcome::Kind::Dropped;
    if (dropped) reports_.dropped(wqe, result, peer_number(wqe));
    if (transfer_.way != nullptr || transfer_.more_packets != 0 || dropped) {
      count_packets(wqe, dropped && !verbs::control::is_of_way(result.cause));
    }
    if (!queue_.end_of_head()) {
      const std::uint64_t bytes = dropped ? payload_of(wqe) : result.byte_len;
      queue_.complete(wqe, position, WcStatus::Success, Cause::None,
                      static_cast<std::uint32_t>(bytes));
    }
    return;
  }
  Outcome told = result;
  // Its key was good before it began to wait: programs that end deregister, and see no completion.
  if (result.cause == Cause::LocalKeyUnknown) told.detail = static_cast<std::uint64_t>(waited_for);
  reports_.failed(wqe, told, peer_number(wqe));
  queue_.complete(wqe, position, result.status, result.cause, 0);
  enter_error(result.cause, result.detail);
}

// The packets of a datagram besides its first at this end, and all of them where they have passed.
// Here, since a message that waits is tried several times. `dropped`: at the port of its receiver.
void Requester::count_packets(const SendWqe& wqe, bool dropped) {
  if (!verbs::is_datagram(config_.type)) return;
  const Arena& arena = plane_.arena();
  const std::uint32_t more = transfer_.more_packets;
  if (more != 0) count_more_of_datagram(arena, own_, wqe, more);
  if (transfer_.way == nullptr && !dropped) return;
  const DatagramSize size{static_cast<std::uint32_t>(payload_of(wqe)), more};
  if (transfer_.way != nullptr) count_on_way(arena, own_, wqe, size, *transfer_.way);
  if (dropped) count_dropped(arena, own_, wqe, size);
}

// Send errors stop a UC or UD queue in SQE and break the others [IBA1 10.3.1, 10.10.2].
void Requester::enter_error(Cause cause, std::uint64_t detail) {
  const QpState next = verbs::is_unreliable(config_.type) ? QpState::Sqe : QpState::Error;
  own_.geometry.error_cause.store(cause, std::memory_order_relaxed);
  own_.geometry.error_detail.store(detail, std::memory_order_relaxed);
  auto current = QpState::Rts;
  own_.id.state.compare_exchange_strong(current, next, std::memory_order_acq_rel);
  took_error_ = true;
  flush();
}

// The first request without an answer fails for that reason, as on a wire.
void Requester::fail_head_of_a_lost_peer() {
  if (!waiting() || took_error_ || verbs::is_unreliable(config_.type)) return;
  const auto why = own_.geometry.error_cause.load(std::memory_order_relaxed);
  const std::uint64_t detail = own_.geometry.error_detail.load(std::memory_order_relaxed);
  const bool peers_hca = why == Cause::HcaRemoved && detail == kPeersHca;
  if (why != Cause::PeerProcessGone && !peers_hca) return;
  const std::uint64_t position = queue_.head();
  const SendWqe wqe = queue_.load(position);
  queue_.drop_head();
  took_error_ = true;
  reports_.failed(wqe, Outcome::fail(WcStatus::RetryExcErr, why, detail), peer_number(wqe));
  queue_.complete(wqe, position, WcStatus::RetryExcErr, why, 0);
}

void Requester::flush() {
  fail_head_of_a_lost_peer();
  while (waiting()) {
    const std::uint64_t position = queue_.head();
    const SendWqe wqe = queue_.load(position);
    queue_.drop_head();
    queue_.complete(wqe, position, WcStatus::WrFlushErr, Cause::QpFlushed, 0);
  }
  forget_head();
}

void Requester::forget_head() {
  transfer_.moved = 0;
  responder_.forget_receive();
  retry_.forget_head();
}

void Requester::reset() {
  queue_.reset();
  forget_head();
  peers_.forget();
  took_error_ = false;
}

namespace {

// A port has as many LIDs as its LMC says; path bits beyond those do not count [IBA1 4.1.3].
std::uint16_t source_lid(const Arena& arena, const QpEntry& own, const verbs::AddressVector& av) {
  const std::uint16_t base = own.id.lid;
  const auto wanted = static_cast<std::uint16_t>(base + av.src_path_bits);
  return wanted != base && arena.port_with_lid(wanted) == own.id.port ? wanted : base;
}

}  // namespace

Arrival Requester::arrival_of(const SendWqe& wqe) const {
  Arrival arrival;
  arrival.service = config_.type;
  arrival.opcode = wqe.opcode;
  arrival.solicited = (wqe.flags & verbs::send_flag::kSolicited) != 0;
  arrival.imm = wqe.imm;
  arrival.source_qpn = verbs::is_special(config_.type)
                           ? static_cast<std::uint32_t>(config_.type)
                           : own_.id.qpn.load(std::memory_order_relaxed);
  arrival.source_lid = own_.id.lid;
  arrival.rkey = wqe.rkey;
  arrival.address = wqe.remote_address;
  arrival.srqn = wqe.remote_srqn;
  if (!verbs::is_datagram(config_.type)) return arrival;
  arrival.is_global = wqe.av.is_global != 0;
  arrival.sl = wqe.av.sl;
  arrival.source_lid = source_lid(plane_.arena(), own_, wqe.av);
  return arrival;
}

Outcome Requester::execute(const SendWqe& wqe) {
  LocalPiecesOf<LocalPieces::kFew> pieces;
  const Outcome outcome = execute(wqe, pieces);
  return outcome.cause == Cause::LocalPieces ? execute_in_many_pieces(wqe) : outcome;
}

// Of a driver with physical regions. Out of line, for the sake of the stacks of programs.
[[gnu::noinline]] Outcome Requester::execute_in_many_pieces(const SendWqe& wqe) {
  LocalPiecesOf<LocalPieces::kMost> pieces;
  return execute(wqe, pieces);
}

Outcome Requester::execute(const SendWqe& wqe, LocalPieces& pieces) {
  Attempt attempt{plane_,     config_,   retry_.limits(), own_, queue_, peers_,
                  responder_, transfer_, reports_,        wqe,  pieces, arrival_of(wqe)};
  if (verbs::is_datagram(config_.type)) return send_datagram(attempt);
  if (wqe.opcode == WrOpcode::BindMw) return bind_window(attempt);
  if (wqe.opcode == WrOpcode::LocalInv) return invalidate_local(attempt);
  return execute_connected(attempt);
}

Outcome Requester::execute_connected(Attempt& attempt) {
  Outcome found = peers_.resolve(retry_.waits_for());
  if (found.cause == Cause::RemoteInvalidate) found.detail = attempt.wqe.imm;
  if (found.is_done()) found = peers_.check_way(payload_of(attempt.wqe));
  if (!found.is_done()) {
    const bool same_peer = found.cause == Cause::PortDown || found.cause == Cause::HcaAsleep;
    if (!same_peer) {  // whoever answers next gets the message from its start
      transfer_.moved = 0;
      responder_.forget_receive();
    }
    if (config_.type != QpType::Uc || found.cause == Cause::HcaAsleep) return found;
    // UC has no answers, so the sender does not wait: the message is lost on the way [IBA1 9.8.2].
    const Outcome gathered = gather(attempt, 0);
    return gathered.is_done() ? Outcome::dropped(found.cause, found.detail) : gathered;
  }
  switch (attempt.wqe.opcode) {
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm: return rdma_write(attempt);
    case WrOpcode::RdmaRead: return rdma_read(attempt);
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd: return atomic(attempt);
    case WrOpcode::AtomicWrite: return atomic_write(attempt);
    case WrOpcode::Flush: return flush_memory(attempt);
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv: return send_message(attempt);
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: break;  // execute() runs them: they have no peer
  }
  return Outcome::fail(WcStatus::LocQpOpErr, Cause::None);
}

}  // namespace ib::hca
