// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The queue of a requester: acceptance, waiting, completion, error and flush. What the requests do
// is in requester_{connected,receive,local,datagram}.cpp.
#include "hca/requester/requester.h"

#include "hca/requester/rnr_timer.h"
#include "verbs/report_count.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::hca {

using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

// What one post or progress call may move before it lets the application run on.
constexpr std::uint64_t kBudgetBytes = 8ull << 20;
constexpr Duration kRetryTick = std::chrono::milliseconds(1);
constexpr Duration kSleepTick = std::chrono::milliseconds(500);
constexpr Duration kUnreliablePatience = std::chrono::seconds(1);

WcOpcode completion_opcode(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm: return WcOpcode::RdmaWrite;
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv: return WcOpcode::Send;
    case WrOpcode::RdmaRead: return WcOpcode::RdmaRead;
    case WrOpcode::AtomicCmpSwap: return WcOpcode::CompSwap;
    case WrOpcode::AtomicFetchAdd: return WcOpcode::FetchAdd;
    case WrOpcode::LocalInv: return WcOpcode::LocalInv;
    case WrOpcode::BindMw: return WcOpcode::BindMw;
    case WrOpcode::AtomicWrite: return WcOpcode::AtomicWrite;
  }
  return WcOpcode::Send;
}

// Which operations a transport has [IBA1 table 43, o10-2].
bool allowed(QpType type, WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::Send:
    case WrOpcode::SendWithImm: return true;
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm:
    case WrOpcode::SendWithInv:
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: return !verbs::is_datagram(type);
    case WrOpcode::RdmaRead:
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd:
    case WrOpcode::AtomicWrite: return type == QpType::Rc || type == QpType::XrcSend;
  }
  return false;
}

// SMPs bring a port up, so they do not wait for that [IBA1 14.2.5.6].
bool carries(QpType type, std::uint32_t port_state) {
  const auto active = static_cast<std::uint32_t>(verbs::PortState::Active);
  const auto init = static_cast<std::uint32_t>(verbs::PortState::Init);
  return port_state == active || (type == QpType::Smi && port_state >= init && port_state < active);
}

bool needs_no_peer(WrOpcode opcode) {
  return opcode == WrOpcode::LocalInv || opcode == WrOpcode::BindMw;
}

}  // namespace

Requester::Requester(MemoryPlane& plane, const RequesterConfig& config)
    : plane_(plane),
      arena_(plane.arena()),
      config_(config),
      own_(plane.arena().qp(config.qp)),
      send_cq_(plane.arena(), config.send_cq),
      mask_(std::bit_ceil(std::max(config.max_wr, 1u)) - 1),
      records_(mask_ + std::size_t{1}),
      slot_size_(sizeof(SendWqe) +
                 std::max<std::size_t>(std::size_t{config.max_sge} * sizeof(Sge),
                                       (std::size_t{config.max_inline} + 15) / 16 * 16)) {
  IB_ASSERT(own_ != nullptr);
}

Status Requester::check(const SendWqe& wqe) const {
  if (!allowed(config_.type, wqe.opcode)) return Status::InvalidParameter;
  if (wqe.inline_data) {
    if (!verbs::may_be_inline(wqe.opcode)) return Status::InvalidParameter;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < wqe.num_sge; ++i) bytes += wqe.sge[i].length;
    if (bytes > config_.max_inline || wqe.num_sge > kMaxSge) return Status::InvalidParameter;
  } else if (wqe.num_sge > config_.max_sge) {
    return Status::InvalidParameter;
  }
  return queued() >= config_.max_wr ? Status::LimitExceeded : Status::Ok;
}

Status Requester::post(const SendWqe& wqe, Way way) {
  if (way == Way::Shortest && try_short(wqe)) return Status::Ok;
  IB_CHECK(check(wqe));
  const auto state = static_cast<QpState>(own_->id.state.load(std::memory_order_acquire));
  if (state == QpState::Reset || state == QpState::Init || state == QpState::Rtr) {
    return Status::InvalidState;
  }
  const std::uint64_t position = posted_.load(std::memory_order_relaxed);
  posted_.store(position + 1, std::memory_order_release);
  records_[position & mask_] = {wqe.wr_id};
  if (waiting_ > 0 || state == QpState::Sqd) {
    store(wqe, position);
    ++waiting_;
    return Status::Ok;
  }
  if (state != QpState::Rts) {
    complete(wqe, position, WcStatus::WrFlushErr, Cause::QpFlushed, 0);
    return Status::Ok;
  }
  budget_ = kBudgetBytes;
  const Outcome outcome = execute(wqe);
  if (!settle(wqe, position, outcome)) {
    store(wqe, position);
    waiting_ = 1;
  }
  return Status::Ok;
}

Requester::Progress Requester::progress(std::uint32_t most) {
  budget_ = kBudgetBytes;
  for (; waiting_ > 0 && most > 0; --most) {
    const auto state = static_cast<QpState>(own_->id.state.load(std::memory_order_acquire));
    if (state == QpState::Sqd) {
      wake_at_ = plane_.host().now() + kRetryTick;
      return Progress::Waits;
    }
    if (state != QpState::Rts) {
      flush();
      return Progress::Idle;
    }
    const std::uint64_t position = posted_.load(std::memory_order_relaxed) - waiting_;
    const SendWqe wqe = load(position);
    const Outcome outcome = execute(wqe);
    if (outcome.kind == Outcome::Kind::Fail) --waiting_;  // settle() flushes the others
    if (!settle(wqe, position, outcome)) return Progress::Waits;
    if (outcome.kind != Outcome::Kind::Wait && outcome.kind != Outcome::Kind::Fail) --waiting_;
  }
  return waiting_ > 0 ? Progress::More : Progress::Idle;
}

// True: the request is over. False: it waits.
bool Requester::settle(const SendWqe& wqe, std::uint64_t position, const Outcome& outcome) {
  if (outcome.kind != Outcome::Kind::Wait) {
    const bool lost = outcome.kind == Outcome::Kind::Dropped && outcome.cause == Cause::NoReceive;
    if (outcome.kind != Outcome::Kind::Fail && !lost) lost_one_ = false;
    finish(wqe, position, outcome);
    return true;
  }
  if (patience_left(outcome)) return false;
  const bool rnr = outcome.cause == Cause::NoReceive;
  const Outcome lost = rnr && is_unreliable()
                           ? dropped(outcome.cause, outcome.detail)
                           : fail(rnr ? WcStatus::RnrRetryExcErr : WcStatus::RetryExcErr,
                                  outcome.cause, rnr ? limits_.rnr_retry : outcome.detail);
  if (waiting_ > 0) --waiting_;
  lost_one_ = lost.kind == Outcome::Kind::Dropped;
  finish(wqe, position, lost);
  return true;
}

void Requester::finish(const SendWqe& wqe, std::uint64_t position, const Outcome& result) {
  moved_ = 0;
  const Cause waited_for = waiting_for_;
  waiting_for_ = Cause::None;
  own_->requester.blocked.store(0, std::memory_order_relaxed);
  if (result.kind != Outcome::Kind::Fail) {
    receive_.reset();
    if (result.kind == Outcome::Kind::Dropped) report_drop(wqe, result, peer_number(wqe));
    if (!completed_) complete(wqe, position, WcStatus::Success, Cause::None, result.byte_len);
    completed_ = false;
    return;
  }
  Outcome told = result;
  // Its key was good before it began to wait: programs that end deregister, and see no completion.
  if (result.cause == Cause::LocalKeyUnknown) told.detail = static_cast<std::uint64_t>(waited_for);
  report(wqe, told, peer_number(wqe));
  complete(wqe, position, result.status, result.cause, 0);
  enter_error(result.cause, result.detail);
}

// A message that waited is executed by another thread than its sender's, and the peer may answer
// before that thread gets on. The sender must not see the answer before its own completion, which
// an unreliable transport gives as soon as the message has left.
void Requester::complete_before_delivery(const SendWqe& wqe, std::uint32_t bytes) {
  if (!is_unreliable() || !waiting() || completed_) return;
  const std::uint64_t position = posted_.load(std::memory_order_relaxed) - waiting_;
  complete(wqe, position, WcStatus::Success, Cause::None, bytes);
  completed_ = true;
}

void Requester::complete(const SendWqe& wqe, std::uint64_t position, WcStatus status, Cause cause,
                         std::uint32_t bytes) {
  if (status == WcStatus::Success) {
    count(own_->requester, bytes);
    if (!config_.signal_all && (wqe.flags & verbs::send_flag::kSignaled) == 0) return;
  }
  if (!send_cq_.valid()) return;
  Cqe cqe;
  cqe.qpn = own_->id.qpn.load(std::memory_order_relaxed);
  cqe.wqe = static_cast<std::uint32_t>(position);
  cqe.byte_len = bytes;
  cqe.status = static_cast<std::uint32_t>(status);
  cqe.opcode = static_cast<std::uint32_t>(completion_opcode(wqe.opcode));
  cqe.vendor_err = static_cast<std::uint32_t>(cause);
  if ((send_cq_.entry().id.flags & verbs::control::cq_flag::kTimestamp) != 0) {
    cqe.timestamp = static_cast<std::uint64_t>(plane_.host().now().time_since_epoch().count());
  }
  const Push pushed = send_cq_.push(arena_, plane_.host(), plane_.slot(), cqe, nullptr);
  if (pushed == Push::Done) {
    send_cq_.fire(plane_.host(), status != WcStatus::Success);
  } else {
    send_cq_refused();
  }
}

void Requester::send_cq_refused() {
  const CqEntry& cq = send_cq_.entry();
  plane_.host().raise({verbs::control::EventObject::Cq, send_cq_.index(),
                       cq.id.generation.load(std::memory_order_relaxed), verbs::EventType::CqErr});
  own_->id.state.store(static_cast<std::uint32_t>(QpState::Error), std::memory_order_release);
}

void Requester::report(const SendWqe& wqe, const Outcome& outcome, std::uint32_t peer,
                       std::uint32_t times) {
  verbs::control::TraceErrorIn error;
  error.qp_index = config_.qp;
  error.peer_qpn = peer;
  verbs::set_times(error, times);
  error.status = outcome.status;
  error.peer_status = outcome.peer_status;
  error.opcode = wqe.opcode;
  error.cause = outcome.cause;
  error.detail = outcome.detail;
  error.wr_id = wqe.wr_id;
  error.address = wqe.remote_address;
  error.length = wqe.inline_bytes;
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) error.length += wqe.sge[i].length;
  error.key = wqe.rkey;
  const bool local =
      outcome.cause == Cause::LocalKeyUnknown || outcome.cause == Cause::LocalKeyOtherPd ||
      outcome.cause == Cause::LocalKeyAccess || outcome.cause == Cause::LocalKeyRange;
  if (local && wqe.num_sge > 0) {
    error.key = wqe.sge[0].lkey;
    error.address = wqe.sge[0].address;
  }
  plane_.host().trace(error);
}

// The sender's completion says success, as on a wire; so the trace is the only one to tell. Queue
// pairs 0 and 1 ask ports that may be silent: what they lose is their protocol's matter.
void Requester::report_drop(const SendWqe& wqe, const Outcome& lost, std::uint32_t peer) {
  const auto cause = static_cast<std::size_t>(lost.cause);
  if (lost.cause == Cause::None || cause >= drops_.size() || verbs::is_special(config_.type))
    return;
  const std::uint32_t times = verbs::report_count(++drops_[cause]);
  if (times != 0) report(wqe, lost, peer, times);
}

// Send errors stop a UC or UD queue in SQE and break the others [IBA1 10.3.1, 10.10.2].
void Requester::enter_error(Cause cause, std::uint64_t detail) {
  const QpState next = is_unreliable() ? QpState::Sqe : QpState::Error;
  own_->geometry.error_cause.store(static_cast<std::uint32_t>(cause), std::memory_order_relaxed);
  own_->geometry.error_detail.store(detail, std::memory_order_relaxed);
  auto current = static_cast<std::uint32_t>(QpState::Rts);
  own_->id.state.compare_exchange_strong(current, static_cast<std::uint32_t>(next),
                                         std::memory_order_acq_rel);
  took_error_ = true;
  flush();
}

// The first request that nobody answered any more fails for that reason, as on a wire.
void Requester::fail_head_of_a_lost_peer() {
  if (waiting_ == 0 || took_error_ || is_unreliable()) return;
  const auto why = static_cast<Cause>(own_->geometry.error_cause.load(std::memory_order_relaxed));
  const std::uint64_t detail = own_->geometry.error_detail.load(std::memory_order_relaxed);
  const bool peers_hca = why == Cause::HcaRemoved && detail == kPeersHca;
  if (why != Cause::PeerProcessGone && !peers_hca) return;
  const std::uint64_t position = posted_.load(std::memory_order_relaxed) - waiting_;
  const SendWqe wqe = load(position);
  --waiting_;
  took_error_ = true;
  report(wqe, fail(WcStatus::RetryExcErr, why, detail), peer_number(wqe));
  complete(wqe, position, WcStatus::RetryExcErr, why, 0);
}

void Requester::flush() {
  fail_head_of_a_lost_peer();
  while (waiting_ > 0) {
    const std::uint64_t position = posted_.load(std::memory_order_relaxed) - waiting_;
    const SendWqe wqe = load(position);
    --waiting_;
    complete(wqe, position, WcStatus::WrFlushErr, Cause::QpFlushed, 0);
  }
  moved_ = 0;
  receive_.reset();
  waiting_for_ = Cause::None;
}

void Requester::reset() {
  waiting_ = 0;
  moved_ = 0;
  receive_.reset();
  waiting_for_ = Cause::None;
  peer_ = Peer{};
  took_error_ = false;
  freed_.store(posted_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Requester::Outcome Requester::check_port(std::uint32_t port) const {
  const PortEntry* entry = arena_.port(port);
  const std::uint32_t state = entry == nullptr ? 0 : entry->state.load(std::memory_order_acquire);
  if (carries(config_.type, state)) return done(0);
  return wait(state == kPortAsleep ? Cause::HcaAsleep : Cause::PortDown);
}

// How long the head may go on waiting [IBA1 9.7.5.2.8, 9.9.2.1]; also says when to try again.
bool Requester::patience_left(const Outcome& outcome) {
  const Instant now = plane_.host().now();
  if (outcome.cause == Cause::None) {  // pages moving, budget spent: a matter of moments
    wake_at_ = now;
    return true;
  }
  if (waiting_for_ != outcome.cause) {
    waiting_for_ = outcome.cause;
    waiting_since_ = now;
    own_->requester.blocked.store(static_cast<std::uint32_t>(outcome.cause),
                                  std::memory_order_relaxed);
  }
  if (outcome.cause == Cause::HcaAsleep) {
    wake_at_ = now + kSleepTick;  // resume kicks us; this is for a kick that got lost
    return true;
  }
  if (outcome.cause == Cause::NoReceive && is_unreliable()) {
    // On a wire the message would be lost. Here the sender is as fast as memory and programs that
    // count on the pace of a link would lose most of what they send, so a receiver gets some time,
    // unless it let the message before this one expire.
    wake_at_ = now + kRetryTick;
    return !lost_one_ && now < waiting_since_ + kUnreliablePatience;
  }
  if (outcome.cause == Cause::NoReceive) {
    const Duration timer = rnr_delay(static_cast<std::uint8_t>(outcome.detail));
    wake_at_ = now + std::min(timer, Duration(kRetryTick));
    return limits_.rnr_retry == 7 || now < waiting_since_ + timer * limits_.rnr_retry;
  }
  const Duration transport = limits_.timeout == 0
                                 ? Duration::max()
                                 : Duration(4096ll << std::min<std::uint8_t>(limits_.timeout, 31)) *
                                       (limits_.retry_count + 1);
  wake_at_ = now + std::min(transport, Duration(kRetryTick));
  return limits_.timeout == 0 || now < waiting_since_ + transport;
}

std::byte* Requester::slot_bytes(std::uint64_t position) const {
  return slots_.get() + (position & mask_) * slot_size_;
}

void Requester::store(const SendWqe& wqe, std::uint64_t position) {
  if (!slots_) slots_.reset(new std::byte[(mask_ + std::size_t{1}) * slot_size_]);
  std::byte* at = slot_bytes(position);
  SendWqe kept = wqe;
  std::byte* tail = at + sizeof kept;
  if (wqe.inline_data) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < wqe.num_sge; ++i) {
      std::memcpy(tail + bytes, std::bit_cast<const void*>(wqe.sge[i].address), wqe.sge[i].length);
      bytes += wqe.sge[i].length;
    }
    kept.inline_bytes = static_cast<std::uint32_t>(bytes);
  } else if (wqe.num_sge > 0) {
    std::memcpy(tail, wqe.sge, wqe.num_sge * sizeof(Sge));
  }
  kept.stored = true;
  std::memcpy(at, &kept, sizeof kept);
}

SendWqe Requester::load(std::uint64_t position) const {
  SendWqe wqe;
  const std::byte* at = slot_bytes(position);
  std::memcpy(&wqe, at, sizeof wqe);
  const std::byte* tail = at + sizeof wqe;
  wqe.sge = wqe.inline_data ? nullptr : reinterpret_cast<const Sge*>(tail);
  if (wqe.inline_data) wqe.num_sge = 0;  // the elements were the poster's; only the bytes are kept
  wqe.kept_inline = wqe.inline_data ? tail : nullptr;
  return wqe;
}

Requester::Outcome Requester::execute(const SendWqe& wqe) {
  if (verbs::is_datagram(config_.type)) return execute_datagram(wqe);
  if (needs_no_peer(wqe.opcode)) {
    return wqe.opcode == WrOpcode::BindMw ? bind_window(wqe) : invalidate_local(wqe.imm);
  }
  return execute_connected(wqe);
}

}  // namespace ib::hca
