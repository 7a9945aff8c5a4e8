// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FastPath: executes what nearly every request is: one piece of memory, written, read or sent over
// RC or UC to a peer that was there at the last request and whose memory is mapped here, or will
// never be. docs/design/0005 has the reasons.
//
// It has two results: done, or not its case. In the second case nothing has changed (but bytes of a
// receive's buffer, if then the completion queue was full, or of memory that went while it was
// written), and the slow path (Requester), which handles every case and gives every refusal its
// reason, decides. The parts that both work on are owned here, since an operation of this one reads
// them: the queue, the peer, what the queue's head waits for, and the receive that is held for it.
//
// Thread rule: that of Requester.
#pragma once

#include "hca/fast_path/fast_requests.h"
#include "hca/fast_path/next_lines.h"
#include "hca/fast_path/own_piece.h"
#include "hca/requester/peer_cache.h"
#include "hca/requester/responder_side.h"
#include "hca/requester/retry_state.h"
#include "hca/requester/send_queue.h"

#include <cstdint>

namespace ib::hca {

class FastPath {
 public:
  FastPath(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own);

  // The parts that both paths work on.
  SendQueue& queue() { return queue_; }
  const SendQueue& queue() const { return queue_; }
  PeerCache& peers() { return peers_; }
  RetryState& retry() { return retry_; }
  const RetryState& retry() const { return retry_; }
  ResponderSide& responder() { return responder_; }
  // The prefetches overlap post().
  const NextLines& next_lines() const { return next_; }

  // Inline, in fast_path_post.h. No: it is no request for the fast path, or nothing is known of
  // where it goes, and nothing has changed; refresh_and_post() or the slow path. Rest: finish().
  enum class Posted : std::uint32_t { No, Done, Rest };
  template <class Send>
  Posted post(Send send);
  template <class Send>
  bool refresh_and_post(Send send);
  void finish(verbs::WrOpcode opcode, std::uint32_t flags, std::uint32_t bytes) noexcept;
  bool try_post(const SendWqe& wqe);  // all of that, for any request

 private:
  // Bytes; beyond, more is spent on moving them than on anything in the fast path.
  static constexpr std::uint32_t kShortMessage = 64 * 1024;
  struct Target {  // the part of a request that is needed beforehand
    verbs::WrOpcode opcode;
    std::uint32_t rkey;
    std::uint64_t address;
    std::uint32_t length;
  };
  template <class Send>
  bool try_view(Send send);
  [[gnu::noinline]] bool try_gathered(const SendWqe& wqe);
  bool refresh(Target target);
  bool next_receive(Sge& room);
  template <class Send>
  bool write(Send send);
  template <class Send>
  bool read(Send send);
  template <class Send>
  bool send_to_own(Send send);
  void expect_room(Peer& peer, const SrqEntry& queue, std::uint64_t head);
  template <class Send>
  void write_receive(Send send, std::uint32_t id, std::uint32_t bytes, Cqe& slot);
  template <class Send>
  bool send_to_shared(Send send);
  template <class Send>
  bool run(Send send, verbs::WcOpcode& opcode);
  template <class Send>
  Posted executed(Send send, verbs::WcOpcode opcode);
  template <class Send>
  Posted post_to_shared(Send send);

  MemoryPlane& plane_;
  QpEntry& own_;
  verbs::QpType type_;
  bool may_be_fast_;  // RC or UC, with a completion queue
  SendQueue queue_;
  PeerCache peers_;
  RetryState retry_;
  OwnPiece own_piece_;
  NextLines next_;
  ResponderSide responder_;
};

}  // namespace ib::hca
