// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/requester_short.h"

namespace ib::hca {

using verbs::QpType;
using verbs::WcOpcode;

// Whether requests of any length are in step with what the peer expects; Requester::agree().
bool Requester::sends_alike() const {
  const auto& mine = own_->geometry;
  const auto& peer = peer_.entry->geometry;
  return mine.mtu == peer.mtu && (mine.sq_psn == peer.rq_psn || config_.type == QpType::Uc);
}

// Its type cannot have changed: that takes another generation.
bool Requester::look_at_peer(std::uint64_t changes) {
  peer_.port = &kNoPort;
  peer_.key = {};
  peer_.far = {};
  if (!send_cq_.valid() || peer_.entry == nullptr) return false;
  const auto& own = own_->id;
  const auto& peer = peer_.entry->id;
  const PortEntry* own_port = arena_.port(own.port);
  const PortEntry* port = arena_.port(peer.port);
  if (peer.qpn.load(std::memory_order_acquire) != peer_.qpn || own.dest_qpn != peer_.qpn ||
      peer.generation != peer_.generation ||
      peer.dest_qpn != own.qpn.load(std::memory_order_relaxed) || peer.lid != own.dlid ||
      !verbs::share_partition(peer.pkey, own.pkey) || own_port == nullptr || port == nullptr ||
      !sends_alike()) {
    return false;
  }
  peer_.own_port = &own_port->state;
  peer_.port = &port->state;
  peer_.as_of = changes;
  peer_.takes_sends =
      peer.srq == kNone && peer_.receives.valid() && peer_.cq.valid() && !peer_.cq.has_timestamps();
  sends_plain_ = !send_cq_.has_channel() && !send_cq_.has_timestamps();
  Cqe receive;
  describe_receive({}, WcOpcode::Recv, 0, receive);
  peer_.receive = CompletionHead(receive);
  Cqe sent;
  sent.qpn = own.qpn.load(std::memory_order_relaxed);
  sent_ = CompletionHead(sent);
  return true;
}

std::byte* Requester::look_at_own(const Sge& sge, std::uint32_t access) {
  own_key_ = plane_.know_local(sge.lkey, config_.pd);
  return plane_.reach_local(own_key_, sge, access);
}

// What post_short() compares with, for a request like this, which has a short way. False: it knew
// all that can be known.
bool Requester::learn(Target target) {
  if (config_.type != QpType::Rc && config_.type != QpType::Uc) return false;
  bool news = false;
  const std::uint64_t changes = arena_.header().changes.load(std::memory_order_acquire);
  if (changes != peer_.as_of || peer_.port == &kNoPort) {
    if (!look_at_peer(changes)) return false;
    news = true;
  }
  news |= send_cq_.look_again(arena_);
  std::uint32_t access = verbs::access::kRemoteWrite;
  if (is_plain_send(target.opcode)) {
    access = verbs::access::kLocalWrite;
    const std::uint64_t head = peer_.entry->responder.rq_head.load(std::memory_order_relaxed);
    Sge room;
    std::uint32_t id = 0;
    if (!peer_.takes_sends || !peer_.receives.available(head, peer_.entry->owner.rq_tail) ||
        !peer_.receives.copy_single(head, id, room)) {
      return false;
    }
    news |= peer_.cq.look_again(arena_);
    target.rkey = room.lkey;
    target.address = room.address;
  } else if (target.opcode == verbs::WrOpcode::RdmaRead) {
    access = verbs::access::kRemoteRead;
  }
  return learn_key(target, access) || news;
}

// Memory of the peer's, as it grants it by this key.
bool Requester::learn_key(const Target& target, std::uint32_t access) {
  const auto [opcode, key, address, length] = target;
  if (MemoryPlane::reach_known(peer_.key, key, address, length, access) != nullptr) return false;
  const auto& peer = peer_.entry->id;
  const Responder responder{peer.owner_slot, peer.pd, peer_.qpn};
  std::byte* found = plane_.reach(responder, key, address, length, access);
  if (found == nullptr) {
    if (peer_.far.grants(key, address, length, access)) return false;
    peer_.far = plane_.know_far(responder, key, address, length, access);
    return peer_.far.key != 0;
  }
  peer_.key = plane_.know(key);
  if (MemoryPlane::reach_known(peer_.key, key, address, length, access) == nullptr) {
    peer_.key = MemoryPlane::know_once(key, address, length, access, found);
    peer_.knows_once = true;
  }
  return true;
}

// Between `local` and memory of the peer's that is not mapped here. A small message that is sent is
// better put into its completion (scatter()).
bool Requester::copy_far(std::uint32_t access, std::uint32_t key, std::uint64_t address,
                         std::byte* local, std::uint32_t bytes) {
  if (!peer_.far.grants(key, address, bytes, access)) return false;
  if (access == verbs::access::kLocalWrite && bytes <= kInlineScatter) return false;
  return plane_.copy_far(peer_.far, address, local, bytes,
                         access == verbs::access::kRemoteRead ? BounceOp::Read : BounceOp::Write);
}

void Requester::forget_once() {
  if (!peer_.knows_once) return;
  peer_.key = {};
  peer_.knows_once = false;
}

void Requester::finish_short(verbs::WrOpcode opcode, std::uint32_t flags,
                             std::uint32_t bytes) noexcept {
  using namespace verbs::send_flag;
  const bool is_send = is_plain_send(opcode);
  if (is_send) peer_.cq.fire(plane_.host(), (flags & kSolicited) != 0);
  if (!config_.signal_all && (flags & kSignaled) == 0) return;
  const bool timed = send_cq_.has_timestamps();
  const auto wc_opcode = is_send                                ? WcOpcode::Send
                         : opcode == verbs::WrOpcode::RdmaWrite ? WcOpcode::RdmaWrite
                                                                : WcOpcode::RdmaRead;
  const std::uint64_t position = posted_.load(std::memory_order_relaxed) - 1;
  const Push pushed =
      send_cq_.push_with(arena_, plane_.host(), plane_.slot(), nullptr, [&](Cqe& slot) {
        write_sent(slot, position, bytes, wc_opcode);
        if (timed) {
          slot.timestamp =
              static_cast<std::uint64_t>(plane_.host().now().time_since_epoch().count());
        }
      });
  if (pushed == Push::Done) {
    send_cq_.fire(plane_.host(), false);
  } else {
    send_cq_refused();
  }
}

namespace {

// A request of the long way as the short way sees it.
struct WqeView {
  const SendWqe& wqe;
  const Sge& sge() const { return wqe.sge[0]; }
  std::uint64_t wr_id() const { return wqe.wr_id; }
  verbs::WrOpcode opcode() const { return wqe.opcode; }
  std::uint32_t flags() const { return wqe.flags; }
  std::uint32_t imm() const { return wqe.imm; }
  std::uint32_t rkey() const { return wqe.rkey; }
  std::uint64_t remote_address() const { return wqe.remote_address; }
};

}  // namespace

bool Requester::try_short(const SendWqe& wqe) {
  const bool flagged = (wqe.flags & verbs::send_flag::kInline) != 0;
  if (wqe.num_sge != 1 || wqe.inline_data != flagged || !has_short_way(wqe.opcode)) return false;
  const Posted posted = post_short(WqeView{wqe});
  if (posted == Posted::Rest) finish_short(wqe.opcode, wqe.flags, wqe.sge[0].length);
  return posted != Posted::No || learn_and_post(WqeView{wqe});
}

}  // namespace ib::hca
