// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The short way through a requester, for what nearly every request is: one piece of memory,
// written, read or sent over RC or UC to a peer that was there at the last request and whose memory
// is mapped here.
//
// It only ever says "done" or "not my case". In the second case nothing has changed (but bytes of a
// receive's buffer, if then the completion queue was full), and the long way
// (requester_connected.cpp, requester_receive.cpp), which knows every case and gives every refusal
// its reason, decides. So each check of the long way stands here too, in whatever order is
// cheapest. A small message costs about a third of the instructions this way.
#include "hca/copy.h"
#include "hca/requester.h"

#include <bit>

namespace ib::hca {

namespace access = verbs::access;
using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

// More is spent on moving the bytes than on anything here.
constexpr std::uint32_t kShortMessage = 64 * 1024;

bool is(const Shared32& word, QpState state) {
  return word.load(std::memory_order_acquire) == static_cast<std::uint32_t>(state);
}

bool is_active(const PortEntry* port) {
  return port != nullptr && port->state.load(std::memory_order_acquire) ==
                                static_cast<std::uint32_t>(verbs::PortState::Active);
}

}  // namespace

// Whether bind_peer() would find the peer that it found last. Its type cannot have changed: that
// takes another generation.
bool Requester::peer_stands() const {
  if (peer_.entry == nullptr) return false;
  const auto& own = own_->id;
  const auto& peer = peer_.entry->id;
  return peer.qpn.load(std::memory_order_acquire) == peer_.qpn && own.dest_qpn == peer_.qpn &&
         peer.generation == peer_.generation &&
         (is(peer.state, QpState::Rts) || is(peer.state, QpState::Rtr)) &&
         peer.dest_qpn == own.qpn.load(std::memory_order_relaxed) && peer.lid == own.dlid &&
         verbs::share_partition(peer.pkey, own.pkey) && is_active(arena_.port(own.port)) &&
         is_active(arena_.port(peer.port));
}

std::byte* Requester::own_bytes(const SendWqe& wqe, std::uint32_t access) const {
  const Sge& sge = wqe.sge[0];
  if (!wqe.inline_data) return plane_.reach_local(sge, config_.pd, access);
  return sge.length <= config_.max_inline ? std::bit_cast<std::byte*>(sge.address) : nullptr;
}

bool Requester::post_short(const SendWqe& wqe) {
  const bool connected = config_.type == QpType::Rc || config_.type == QpType::Uc;
  if (wqe.num_sge != 1 || !connected || wqe.sge[0].length == 0 ||
      wqe.sge[0].length > kShortMessage || waiting() || queued() >= config_.max_wr ||
      !is(own_->id.state, QpState::Rts) || !peer_stands()) {
    return false;
  }
  const std::uint64_t position = posted_.load(std::memory_order_relaxed);
  switch (wqe.opcode) {
    case WrOpcode::RdmaWrite:
      if (!write_short(wqe)) return false;
      break;
    case WrOpcode::RdmaRead:
      if (!read_short(wqe)) return false;
      break;
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
      if (!send_short(wqe)) return false;
      break;
    case WrOpcode::RdmaWriteWithImm:
    case WrOpcode::SendWithInv:
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd:
    case WrOpcode::AtomicWrite:
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: return false;
  }
  lost_one_ = false;
  records_[position & mask_] = {wqe.wr_id};
  posted_.store(position + 1, std::memory_order_release);
  complete(wqe, position, WcStatus::Success, Cause::None, wqe.sge[0].length);
  return true;
}

bool Requester::write_short(const SendWqe& wqe) {
  const auto& peer = peer_.entry->id;
  const Sge& sge = wqe.sge[0];
  const std::byte* from = own_bytes(wqe, 0);
  if (from == nullptr || (peer.access & access::kRemoteWrite) == 0) return false;
  std::byte* to = plane_.reach({peer.owner_slot, peer.pd, peer_.qpn}, wqe.rkey, wqe.remote_address,
                               sge.length, access::kRemoteWrite);
  if (to == nullptr) return false;
  copy_tail_last(to, from, sge.length);
  next_line_ = to;  // mailboxes and flags are written again and again
  return true;
}

bool Requester::read_short(const SendWqe& wqe) {
  const auto& peer = peer_.entry->id;
  const Sge& sge = wqe.sge[0];
  if (config_.type != QpType::Rc || wqe.inline_data || limits_.max_rd_atomic == 0 ||
      peer.max_dest_rd_atomic == 0 || (peer.access & access::kRemoteRead) == 0) {
    return false;
  }
  std::byte* to = own_bytes(wqe, access::kLocalWrite);
  const std::byte* from = plane_.reach({peer.owner_slot, peer.pd, peer_.qpn}, wqe.rkey,
                                       wqe.remote_address, sge.length, access::kRemoteRead);
  if (to == nullptr || from == nullptr) return false;
  copy_tail_last(to, from, sge.length);
  return true;
}

// Into a receive of one piece from the peer's own queue. The order of stores is that of
// push_receive().
bool Requester::send_short(const SendWqe& wqe) {
  const auto& peer = peer_.entry->id;
  auto& responder = peer_.entry->responder;
  ReceiveSource& receives = peer_.receives;
  const std::uint64_t head = responder.rq_head.load(std::memory_order_relaxed);
  if (peer.srq != kNone || receive_ || !receives.valid() || !peer_.cq.valid() ||
      !receives.available(head, peer_.entry->owner.rq_tail) ||
      (peer_.cq.entry().id.flags & verbs::control::cq_flag::kTimestamp) != 0) {
    return false;
  }
  const std::uint32_t bytes = wqe.sge[0].length;
  std::uint32_t id = 0;
  Sge room;
  const std::byte* from = own_bytes(wqe, 0);
  if (from == nullptr || !receives.copy_single(head, id, room) || room.length < bytes) return false;
  std::byte* to = plane_.reach({peer.owner_slot, peer.pd, peer_.qpn}, room.lkey, room.address,
                               bytes, access::kLocalWrite);
  if (to == nullptr) return false;
  copy_tail_last(to, from, bytes);
  Cqe cqe;
  describe_receive(wqe, WcOpcode::Recv, bytes, cqe);
  cqe.wqe = id;
  const bool solicited = (wqe.flags & verbs::send_flag::kSolicited) != 0;
  if (solicited) cqe.bits |= cqe_bit::kSolicited;
  if (peer_.cq.push(arena_, plane_.host(), plane_.slot(), cqe, &responder.cq_intent) !=
      Push::Done) {
    return false;
  }
  responder.rq_head.store(head + 1, std::memory_order_release);
  receives.prefetch(head + 1);
  responder.cq_intent.store(0, std::memory_order_release);
  next_line_ = peer_.cq.next_slot();
  peer_.cq.fire(plane_.host(), solicited);
  count(responder, bytes);
  return true;
}

}  // namespace ib::hca
