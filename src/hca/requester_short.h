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
//
// Templates: fields of a request are read from where the program has them when they are wanted.
// `Send` is a view that has sge(), wr_id(), opcode(), flags(), imm(), rkey() and remote_address(),
// and fits into a register. (All of it inline in ibv_post_send is slower: too few registers.)
#pragma once

#include "hca/copy.h"
#include "hca/requester.h"

#include <bit>

namespace ib::hca {

// Whether bind_peer() would find the peer that it found last. States change at any time; the rest
// is looked at when ArenaHeader::changes says so.
[[gnu::always_inline]] inline bool Requester::peer_stands() {
  const std::uint64_t changes = arena_.header().changes.load(std::memory_order_acquire);
  const bool known = changes == peer_.as_of && peer_.port != nullptr;
  if (!known && !look_at_peer(changes)) [[unlikely]]
    return false;
  const Shared32& state = peer_.entry->id.state;
  return (has(state, verbs::QpState::Rts) || has(state, verbs::QpState::Rtr)) &&
         has(*peer_.own_port, verbs::PortState::Active) &&
         has(*peer_.port, verbs::PortState::Active);
}

// Memory of the peer's, as it grants it by this key.
[[gnu::always_inline]] inline std::byte* Requester::reach_peer(std::uint32_t key,
                                                               std::uint64_t address,
                                                               std::uint32_t length,
                                                               std::uint32_t access) {
  if (std::byte* known = MemoryPlane::reach_known(peer_.key, key, address, length, access))
    return known;
  const auto& peer = peer_.entry->id;
  std::byte* found =
      plane_.reach({peer.owner_slot, peer.pd, peer_.qpn}, key, address, length, access);
  if (found != nullptr) peer_.key = plane_.know(key);
  return found;
}

template <class Send>
[[gnu::always_inline]] inline std::byte* Requester::own_bytes(Send send, std::uint32_t access) {
  const Sge& sge = send.sge();
  if (is_inline(send)) {
    return sge.length <= config_.max_inline ? std::bit_cast<std::byte*>(sge.address) : nullptr;
  }
  if (!plane_.local_keys().is(last_key_, sge.lkey)) last_key_ = plane_.local_keys().find(sge.lkey);
  return plane_.reach_local(last_key_, sge, config_.pd, access);
}

template <class Send>
[[gnu::always_inline]] inline void Requester::complete_short(Send send, std::uint64_t position,
                                                             verbs::WcOpcode opcode) {
  count(own_->requester, send.sge().length);
  if (!config_.signal_all && (send.flags() & verbs::send_flag::kSignaled) == 0) return;
  const bool timed = (send_cq_.entry().id.flags & verbs::control::cq_flag::kTimestamp) != 0;
  const Push pushed =
      send_cq_.push_with(arena_, plane_.host(), plane_.slot(), nullptr, [&](Cqe& slot) {
        sent_.write(slot);
        slot.wqe = static_cast<std::uint32_t>(position);
        slot.byte_len = send.sge().length;
        slot.opcode = static_cast<std::uint32_t>(opcode);
        if (timed) [[unlikely]] {
          slot.timestamp =
              static_cast<std::uint64_t>(plane_.host().now().time_since_epoch().count());
        }
      });
  if (pushed == Push::Done) [[likely]] {
    send_cq_.fire(plane_.host(), false);
  } else {
    send_cq_refused();
  }
}

template <class Send>
[[gnu::always_inline]] inline bool Requester::write_short(Send send) {
  const auto& peer = peer_.entry->id;
  const Sge& sge = send.sge();
  const std::byte* from = own_bytes(send, 0);
  if (from == nullptr || (peer.access & verbs::access::kRemoteWrite) == 0) return false;
  std::byte* to =
      reach_peer(send.rkey(), send.remote_address(), sge.length, verbs::access::kRemoteWrite);
  if (to == nullptr) return false;
  copy_tail_last(to, from, sge.length);
  next_line_ = to;  // mailboxes and flags are written again and again
  return true;
}

template <class Send>
[[gnu::always_inline]] inline bool Requester::read_short(Send send) {
  const auto& peer = peer_.entry->id;
  const Sge& sge = send.sge();
  if (config_.type != verbs::QpType::Rc || is_inline(send) || limits_.max_rd_atomic == 0 ||
      peer.max_dest_rd_atomic == 0 || (peer.access & verbs::access::kRemoteRead) == 0) {
    return false;
  }
  std::byte* to = own_bytes(send, verbs::access::kLocalWrite);
  const std::byte* from =
      reach_peer(send.rkey(), send.remote_address(), sge.length, verbs::access::kRemoteRead);
  if (to == nullptr || from == nullptr) return false;
  copy_tail_last(to, from, sge.length);
  return true;
}

// Into a receive of one piece from the peer's own queue. The order of stores is that of
// push_receive().
template <class Send>
[[gnu::always_inline]] inline bool Requester::send_short(Send send) {
  auto& responder = peer_.entry->responder;
  ReceiveSource& receives = peer_.receives;
  const std::uint64_t head = responder.rq_head.load(std::memory_order_relaxed);
  if (!peer_.takes_sends || receive_ || !receives.available(head, peer_.entry->owner.rq_tail)) {
    return false;
  }
  const std::uint32_t bytes = send.sge().length;
  std::uint32_t id = 0;
  Sge room;
  const std::byte* from = own_bytes(send, 0);
  if (from == nullptr || !receives.copy_single(head, id, room) || room.length < bytes) return false;
  std::byte* to = reach_peer(room.lkey, room.address, bytes, verbs::access::kLocalWrite);
  if (to == nullptr) return false;
  copy_tail_last(to, from, bytes);
  const bool solicited = (send.flags() & verbs::send_flag::kSolicited) != 0;
  const Push pushed = peer_.cq.push_with(
      arena_, plane_.host(), plane_.slot(), &responder.cq_intent, [&](Cqe& slot) {
        peer_.receive.write(slot);
        slot.wqe = id;
        slot.byte_len = bytes;
        if (send.opcode() == verbs::WrOpcode::SendWithImm) [[unlikely]] {
          slot.flags = verbs::wc_flag::kWithImm;
          slot.imm = send.imm();
        }
        if (solicited) [[unlikely]]
          slot.bits = cqe_bit::kReceive | cqe_bit::kSolicited;
      });
  if (pushed != Push::Done) return false;
  responder.rq_head.store(head + 1, std::memory_order_release);
  receives.prefetch(head + 1);
  responder.cq_intent.store(0, std::memory_order_release);
  next_line_ = peer_.cq.next_slot();
  peer_.cq.fire(plane_.host(), solicited);
  count(responder, bytes);
  return true;
}

// Not a switch: that would be an indirect jump.
template <class Send>
[[gnu::always_inline]] inline bool Requester::run_short(Send send, verbs::WcOpcode& opcode) {
  if (send.opcode() == verbs::WrOpcode::Send || send.opcode() == verbs::WrOpcode::SendWithImm) {
    opcode = verbs::WcOpcode::Send;
    return send_short(send);
  }
  if (send.opcode() == verbs::WrOpcode::RdmaWrite) {
    opcode = verbs::WcOpcode::RdmaWrite;
    return write_short(send);
  }
  opcode = verbs::WcOpcode::RdmaRead;
  return send.opcode() == verbs::WrOpcode::RdmaRead && read_short(send);
}

template <class Send>
[[gnu::noinline]] bool Requester::post_short(Send send) {
  if (send.sge().length - 1 >= kShortMessage || waiting() || queued() >= config_.max_wr ||
      !has(own_->id.state, verbs::QpState::Rts) || !peer_stands()) {
    return false;
  }
  verbs::WcOpcode opcode{};
  if (!run_short(send, opcode)) return false;
  const std::uint64_t position = posted_.load(std::memory_order_relaxed);
  lost_one_ = false;
  records_[position & mask_] = {send.wr_id()};
  posted_.store(position + 1, std::memory_order_release);
  complete_short(send, position, opcode);
  return true;
}

}  // namespace ib::hca
