// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics [IBA1 9.4.5], ATOMIC WRITE and FLUSH [IBA1 1.6 annex A19], and the depths that READ
// shares with them.
#include "hca/requester/attempt.h"

#include <atomic>

namespace ib::hca {

namespace access = verbs::access;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

constexpr std::uint32_t kWord = sizeof(std::uint64_t);

Outcome check_alignment(Attempt& a) {
  if (a.arrival.address % kWord == 0) return Outcome::done();
  return a.responder.refuse(a.peer(), a.arrival, WcStatus::RemInvReqErr,
                            {Cause::RemoteAlignment, false, a.arrival.address});
}

}  // namespace

Outcome check_own_depth(const Attempt& a) {
  return a.limits.max_rd_atomic != 0 ? Outcome::done()
                                     : Outcome::fail(WcStatus::LocQpOpErr, Cause::ReadDepth);
}

Outcome check_peer_depth(Attempt& a) {
  if (a.peer().entry->id.max_dest_rd_atomic != 0) return Outcome::done();
  return a.responder.refuse(a.peer(), a.arrival, WcStatus::RemInvReqErr,
                            {Cause::ReadDepth, false, 0});
}

Outcome atomic(Attempt& a) {
  if (const Outcome depth = check_own_depth(a); !depth.is_done()) return depth;
  const std::uint64_t bytes = asked_for(a.wqe);
  if (bytes != kWord) return Outcome::fail(WcStatus::LocLenErr, Cause::LocalLength, bytes);
  if (const Outcome aligned = check_alignment(a); !aligned.is_done()) return aligned;
  if (const Outcome depth = check_peer_depth(a); !depth.is_done()) return depth;
  Stretch target;
  const Outcome granted =
      a.responder.find_memory(a.peer(), a.arrival, kWord, access::kRemoteAtomic, target);
  if (!granted.is_done()) return granted;
  // Before the word changes: on an adapter it has, by the time the old value finds no place.
  const Outcome gathered = gather(a, access::kLocalWrite);
  if (!gathered.is_done()) return gathered;
  const bool swap = a.wqe.opcode == WrOpcode::AtomicCmpSwap;
  std::uint64_t old = 0;
  const Access acted = a.plane.mover().atomic(target, swap ? &a.wqe.compare_add : nullptr,
                                              swap ? a.wqe.swap : a.wqe.compare_add, old);
  if (!acted.ok()) return a.responder.transfer_failed(a.peer(), a.arrival, acted);
  Stretch value;
  value.pointer = reinterpret_cast<std::byte*>(&old);
  const Access stored =
      a.plane.mover().read(a.pieces, 0, value, 0, sizeof old);  // from this very stack
  return stored.ok() ? Outcome::done(kWord)
                     : a.responder.transfer_failed(a.peer(), a.arrival, stored);
}

// Needs remote write.
Outcome atomic_write(Attempt& a) {
  if (const Outcome depth = check_own_depth(a); !depth.is_done()) return depth;
  if (const Outcome aligned = check_alignment(a); !aligned.is_done()) return aligned;
  if (const Outcome depth = check_peer_depth(a); !depth.is_done()) return depth;
  Stretch target;
  const Outcome granted =
      a.responder.find_memory(a.peer(), a.arrival, kWord, access::kRemoteWrite, target);
  if (!granted.is_done()) return granted;
  std::uint64_t value = a.wqe.compare_add;
  LocalPiecesOf<1> piece;
  piece.add(reinterpret_cast<std::byte*>(&value), sizeof value);
  const Access moved = a.plane.mover().write(piece, 0, target, 0, sizeof value);
  return moved.ok() ? Outcome::done(kWord)
                    : a.responder.transfer_failed(a.peer(), a.arrival, moved);
}

// Its completion says that all earlier writes of the queue pair to a range of memory, or to a
// region, are where the placement types want them.
//
// Earlier requests of the queue pair are over, so their bytes are in the responder's memory.
// Nothing is left to move; what a flush adds is the responder's checks, and that no store of them
// is still on its way out of this CPU. Persistence: no region grants it.
Outcome flush_memory(Attempt& a) {
  namespace flush = verbs::flush;
  if (const Outcome depth = check_own_depth(a); !depth.is_done()) return depth;
  const bool whole = flush::level_of(a.wqe.imm) == flush::kRegion;
  const std::uint64_t bytes = a.wqe.compare_add;
  if (!whole && bytes > kMaxMessage) {
    return Outcome::fail(WcStatus::LocLenErr, Cause::LocalLength, bytes);
  }
  if (const Outcome depth = check_peer_depth(a); !depth.is_done()) return depth;
  const std::uint32_t access = flush::access_for(flush::type_of(a.wqe.imm));
  const Outcome granted = a.responder.check_flush(a.peer(), a.arrival, bytes, whole, access);
  if (!granted.is_done()) return granted;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Outcome::done();
}

}  // namespace ib::hca
