// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ResponderSide: what the responder does with a message [IBA1 9.7.4]: it takes a receive, finds the
// memory that a key grants, puts the bytes in place, completes the receive, or breaks. "Whoever
// posts, executes": that is the sender. It is handed the arrival and never the sender's members;
// the outcome is the answer to the sender:
//   Done; Wait (not now: RNR, or for no cause: soon); Fail (a NAK; the queue pair is broken);
//   Dropped (no answer at all).
//
// The order of stores here is what softibd's repair after a death relies on
// (docs/design/0003-notes.md): SRQ: srq_taken before head; any: cq_intent before the completion's
// seq, seq before rq_head moves or srq_taken clears, cq_intent last.
//
// Thread rule: the sender is connected to the peer, which makes it the only one here, or holds the
// peer's receive lock.
#pragma once

#include "hca/memory/memory_plane.h"
#include "hca/queues/receive_source.h"
#include "hca/requester/arrival.h"
#include "hca/requester/outcome.h"
#include "hca/requester/peer_cache.h"
#include "hca/requester/transfer.h"

#include <cstdint>

namespace ib::hca {

class ResponderSide {
 public:
  explicit ResponderSide(MemoryPlane& plane) : plane_(plane), arena_(plane.arena()) {}

  // --- memory ---

  // `length` bytes at the arrival's address, by its key. `access`: all of these flags are needed.
  Outcome find_memory(Peer& peer, const Arrival& arrival, std::uint64_t length,
                      std::uint32_t access, Stretch& out);

  // The same of a FLUSH, which looks at a key also for no bytes. `whole`: the region, whatever the
  // address.
  Outcome check_flush(Peer& peer, const Arrival& arrival, std::uint64_t length, bool whole,
                      std::uint32_t access);

  // --- a receive, held from take_receive() until it is completed or forgotten ---

  Outcome take_receive(Peer& peer, const Arrival& arrival);
  bool holds_receive() const { return static_cast<bool>(receive_); }
  // Takes the receive `id` at the head of a shared queue, whose lock the caller holds.
  static void take_from_shared(QpEntry& peer, SrqEntry& srq, std::uint64_t head, std::uint32_t id) {
    peer.responder.srq_taken.store(id + std::uint64_t{1}, std::memory_order_release);
    srq.consumer.head.store(head + 1, std::memory_order_release);
  }
  // Holds a receive of one piece that take_from_shared() has taken.
  void hold(std::uint32_t srq, std::uint32_t id, const Sge& room) {
    TakenReceive& taken = receive_.emplace();
    taken.id = id;
    taken.num_sge = 1;
    taken.srq = srq;
    taken.sge[0] = room;
  }
  void forget_receive() { receive_.reset(); }
  // Gives the held receive back. Returns false if others have taken later ones of the shared queue.
  bool put_back_receive(Peer& peer);
  // A small message that goes into the receive's completion, since its buffer is not mapped here.
  // The owner puts it in place when it polls.
  struct Carried {
    bool used = false;
    std::byte bytes[kInlineScatter];
  };
  // Fills the held receive's buffers with the message, from transfer.moved on.
  Outcome place(Peer& peer, const Arrival& arrival, const LocalPieces& pieces, Transfer& transfer,
                Carried& carried);
  // The same for a datagram, all at once; `pieces` begins with the GRH, whose room in the buffer is
  // left alone if it has none [IBA1 11.4.1.2].
  Access place_datagram(const Peer& peer, const Arrival& arrival, const LocalPieces& pieces);
  // Completes the held receive with the message, of which all is in place.
  Outcome deliver(Peer& peer, const Arrival& arrival, verbs::WcOpcode opcode, std::uint32_t bytes,
                  const Carried* carried = nullptr);
  // Writes the completion of the held receive and releases it; its event is due then (fire_due()).
  // Returns false if the CQ refuses it: then lose_queue().
  bool push_receive(Peer& peer, Cqe& cqe, bool solicited, const std::byte* payload = nullptr);
  const TakenReceive& receive() const { return *receive_; }
  // A queue pair without its CQ is broken; an unreliable one only loses the message if the CQ
  // itself is not in error.
  void lose_queue(Peer& peer);
  // SEND with invalidate, before its completion.
  Outcome invalidate(Peer& peer, const Arrival& arrival);

  // --- refusals ---

  Outcome refuse(Peer& peer, const Arrival& arrival, verbs::WcStatus status, const Access& why);
  // The receive itself is at fault.
  Outcome receive_failed(Peer& peer, const Arrival& arrival, verbs::WcStatus peer_status,
                         verbs::WcStatus status, Cause cause, std::uint64_t detail);
  // A copy failed half-way: the memory or the process behind a checked key is gone.
  Outcome transfer_failed(Peer& peer, const Arrival& arrival, const Access& access);
  // Moves a message up to byte `end` in steps: move(done, bytes) copies those behind `done`. Wait:
  // this call may move no more.
  template <class Move>
  Outcome transfer_until(std::uint64_t end, Transfer& transfer, Peer& peer, const Arrival& arrival,
                         Move&& move) {
    while (transfer.moved < end) {
      std::uint64_t step = 0;
      if (!transfer.spend(end - transfer.moved, step)) return Outcome::wait();
      const Access moved = move(transfer.moved, step);
      if (!moved.ok()) return transfer_failed(peer, arrival, moved);
      transfer.moved += step;
    }
    return Outcome::done();
  }
  // Fires the event of the receive that was completed last. An acknowledgement reaches the sender
  // before an answer of the receiver: so the sender's own completion and event come first.
  void fire_due();

 private:
  Outcome take_shared(Peer& peer, const Arrival& arrival, SrqEntry& srq, std::uint32_t index);
  Outcome answer(Peer& peer, const Arrival& arrival, const Access& granted);
  Outcome no_receive(Peer& peer, const Arrival& arrival, Shared32& waiter, const Shared64& tail);
  void responder_of(const Peer& peer, const Arrival& arrival, std::uint32_t srq,
                    Responder& responder) const;
  static bool has_left(const Peer& peer);
  verbs::WcStatus fail_receive_of_write(Peer& peer, const Arrival& arrival, Cause cause);
  void complete_receive_in_error(Peer& peer, verbs::WcStatus status, Cause cause);
  MemoryPlane& plane_;
  const Arena& arena_;
  HeldReceive receive_;
  std::uint32_t due_cq_ = kNone;  // its event: fire_due()
  bool due_solicited_ = false;
};

// Takes a window's memory away; its region may be deregistered when none is left.
void unbind_window(const Arena& arena, KeyEntry& window);

}  // namespace ib::hca
