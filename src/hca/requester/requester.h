// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requester: executes the work requests of one queue pair against its peer [IBA1 9.7, 10.7].
//
// "Whoever posts, executes": post() finds the peer's queue pair and receive in device memory, moves
// the bytes and writes both completions, before it returns. A request that cannot run now (no
// receive posted, peer not ready, pages moving, byte budget spent) waits at the head of the queue,
// all later ones behind it; progress() runs them on.
//
// Thread rule: the caller holds the queue pair's send lock and an OpScope. Being connected to the
// peer makes this the only writer of the peer's responder line (layout.h). Never blocks, but for
// path 3 and for locks of device memory, both bounded.
#pragma once

#include "hca/memory/copy.h"
#include "hca/requester/attempt.h"

#include <atomic>
#include <cstdint>

namespace ib::hca {

enum class Way : std::uint32_t { Fastest, Slow };

class Requester {
 public:
  Requester(MemoryPlane& plane, const RequesterConfig& config);

  // Accepts one request and executes it if nothing waits before it. Errors as in
  // user::QueuePair::post_send; a request that fails *in execution* is Ok here and completes in
  // error. Way::Slow: the caller has already tried the fast path.
  Status post(const SendWqe& wqe, Way way = Way::Fastest);
  // Begins to fetch the line that the next request probably writes first: another core polls it.
  // The prefetch overlaps post(). To be called about as long before as that
  // takes, 100 cycles: a line that comes earlier is polled away again. Any thread.
  void announce() const { prefetch_for_write(next_line_.load(std::memory_order_relaxed)); }
  // The same for the buffer that the next send of inline pieces into an SRQ probably writes.
  void announce_room() const { prefetch_for_write(next_room_.load(std::memory_order_relaxed)); }
  // The fast path, which post() tries first (inline, in requester_fast.h). No: it is no request
  // for it, or nothing is known of where it goes, and nothing has changed; refresh_and_post() or
  // post(). Rest: finish_fast().
  enum class Posted : std::uint32_t { No, Done, Rest };
  static bool has_fast_path(verbs::WrOpcode opcode) {
    return is_plain_send(opcode) || opcode == verbs::WrOpcode::RdmaWrite ||
           opcode == verbs::WrOpcode::RdmaRead;
  }
  // Whether more than one piece of it may have a fast path.
  static bool may_be_gathered(verbs::WrOpcode opcode, std::uint32_t flags) {
    return is_plain_send(opcode) && (flags & verbs::send_flag::kInline) != 0;
  }
  template <class Send>
  Posted post_fast(Send send);
  template <class Send>
  bool refresh_and_post(Send send);
  void finish_fast(verbs::WrOpcode opcode, std::uint32_t flags, std::uint32_t bytes) noexcept;
  bool try_fast(const SendWqe& wqe);  // all of that, for any request
  // Runs what waits, at most `most` requests, so that queue pairs can take turns. Waits: see
  // wake_at; More: only because of `most`.
  enum class Progress : std::uint32_t { Idle, Waits, More };
  Progress progress(std::uint32_t most = ~0u);
  bool waiting() const { return queue_.waiting(); }
  // When progress() is due even if nothing happens; meaningful if waiting().
  Instant wake_at() const { return retry_.wake_at(); }

  // Whether a request failed since the last reset().
  bool took_error() const { return took_error_; }
  // A peer or softibd moved the queue pair to Error: completes the waiting requests with a flush
  // error.
  void flush();
  // Back to Reset: forgets everything.
  void reset();
  void set_limits(const RetryLimits& limits) { retry_.set_limits(limits); }

  // As SendQueue's.
  bool polled(std::uint32_t position, std::uint64_t& wr_id) {
    return queue_.polled(position, wr_id);
  }
  std::uint32_t queued() const { return queue_.queued(); }

 private:
  // requester.cpp
  std::uint32_t peer_number(const SendWqe& wqe) const {
    return verbs::is_datagram(config_.type) ? wqe.remote_qpn : own_->connection.dest_qpn;
  }
  Arrival arrival_of(const SendWqe& wqe) const;
  Outcome execute(const SendWqe& wqe);
  Outcome execute_connected(Attempt& attempt);
  bool settle(const SendWqe& wqe, std::uint64_t position, const Outcome& outcome);
  bool may_wait(const Outcome& outcome);
  void finish(const SendWqe& wqe, std::uint64_t position, const Outcome& result);
  void forget_head();
  void enter_error(Cause cause, std::uint64_t detail);
  void fail_head_of_a_lost_peer();
  // requester_fast.h
  // Bytes; beyond, more is spent on moving them than on anything in the fast path.
  static constexpr std::uint32_t kShortMessage = 64 * 1024;
  static bool is_plain_send(verbs::WrOpcode opcode) {
    return opcode == verbs::WrOpcode::Send || opcode == verbs::WrOpcode::SendWithImm;
  }
  template <class Send>
  static bool is_inline(Send send) {
    return (send.flags() & verbs::send_flag::kInline) != 0;
  }
  struct Target {  // the part of a request that the fast path needs beforehand
    verbs::WrOpcode opcode;
    std::uint32_t rkey;
    std::uint64_t address;
    std::uint32_t length;
  };
  template <class Send>
  bool try_view(Send send);
  [[gnu::noinline]] bool try_gathered(const SendWqe& wqe);
  std::byte* refresh_own_key(const Sge& sge, std::uint32_t access);
  bool refresh(Target target);
  bool next_receive(Sge& room);
  template <class Send>
  std::byte* own_bytes(Send send, std::uint32_t access);
  template <class Send>
  bool write_fast(Send send);
  template <class Send>
  bool read_fast(Send send);
  template <class Send>
  bool send_fast(Send send);
  void expect_room(Peer& peer, const SrqEntry& queue, std::uint64_t head);
  template <class Send>
  void write_receive(Send send, std::uint32_t id, std::uint32_t bytes, Cqe& slot);
  template <class Send>
  bool send_shared_fast(Send send);
  template <class Send>
  bool run_fast(Send send, verbs::WcOpcode& opcode);
  template <class Send>
  Posted executed_fast(Send send, verbs::WcOpcode opcode);
  template <class Send>
  Posted post_shared_fast(Send send);

  MemoryPlane& plane_;
  RequesterConfig config_;
  bool may_be_fast_;  // RC or UC, with a completion queue
  QpEntry* own_;
  SendQueue queue_;
  PeerCache peers_;
  RetryState retry_;
  CachedLocal own_key_;                       // of the last request of the fast path
  std::atomic<const void*> next_line_{this};  // see announce(); nobody follows it
  std::atomic<const void*> next_room_{this};  // see announce_room()
  bool took_error_ = false;
  // Of the head, if it has begun:
  Transfer transfer_;
  ResponderSide responder_;
  FailureReports reports_;
};

}  // namespace ib::hca
