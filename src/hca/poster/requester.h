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

#include "hca/fast_path/fast_path.h"
#include "hca/requester/attempt.h"

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
  // The fast path, which post() tries first.
  FastPath& fast_path() { return fast_path_; }
  // Begins to fetch the line that the next request probably writes first (next_lines.h).
  void announce() const { fast_path_.next_lines().prefetch(); }
  // For queue pairs that several processes send from in turn (streams/): executes a request now, or
  // not at all. NotNow leaves nothing behind at either end, and `cause` says what it would wait
  // for. There is no completion, of failed ones neither; those leave the queue pair in Error.
  struct Tried {
    enum Kind : std::uint8_t { Done, NotNow, Failed } kind = Done;
    Cause cause = Cause::None;
  };
  Tried try_now(const SendWqe& wqe);
  // Runs what waits, at most `most` requests, so that queue pairs can take turns. Waits: see
  // wake_at; More: only because of `most`.
  enum class Progress : std::uint32_t { Idle, Waits, More };
  Progress progress(std::uint32_t most = ~0u);
  bool waiting() const { return fast_path_.queue().waiting(); }
  // When progress() is due even if nothing happens; meaningful if waiting().
  Instant wake_at() const { return fast_path_.retry().wake_at(); }

  // Whether a request failed since the last reset().
  bool took_error() const { return took_error_; }
  // A peer or softibd moved the queue pair to Error: completes the waiting requests with a flush
  // error.
  void flush();
  // Back to Reset: forgets everything.
  void reset();
  const RetryLimits& limits() const { return fast_path_.retry().limits(); }
  void set_limits(const RetryLimits& limits) { fast_path_.retry().set_limits(limits); }

  // As those of PostedRequests.
  bool polled(std::uint32_t position, std::uint64_t& wr_id) {
    return fast_path_.queue().posted().polled(position, wr_id);
  }
  std::uint32_t queued() const { return fast_path_.queue().posted().queued(); }

 private:
  std::uint32_t peer_number(const SendWqe& wqe) const {
    return verbs::is_datagram(config_.type) ? wqe.remote_qpn : own_.connection.dest_qpn;
  }
  Arrival arrival_of(const SendWqe& wqe) const;
  Outcome execute(const SendWqe& wqe);
  Outcome execute(const SendWqe& wqe, LocalPieces& pieces);
  Outcome execute_in_many_pieces(const SendWqe& wqe);
  Outcome execute_connected(Attempt& attempt);
  bool settle(const SendWqe& wqe, std::uint64_t position, const Outcome& outcome);
  bool finish_or_wait(const SendWqe& wqe, std::uint64_t position, const Outcome& outcome);
  bool may_wait(const Outcome& outcome);
  void finish(const SendWqe& wqe, std::uint64_t position, const Outcome& result);
  void count_packets(const SendWqe& wqe, bool dropped);
  void forget_head();
  void enter_error(Cause cause, std::uint64_t detail);
  void fail_head_of_a_lost_peer();

  MemoryPlane& plane_;
  RequesterConfig config_;
  QpEntry& own_;
  FastPath fast_path_;
  // Of the fast path:
  SendQueue& queue_;
  PeerCache& peers_;
  RetryState& retry_;
  ResponderSide& responder_;
  bool took_error_ = false;
  Transfer transfer_;  // of the head, if it has begun
  FailureReports reports_;
};

}  // namespace ib::hca
