// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/fast_path/fast_path.h"

#include "hca/fast_path/fast_path_post.h"

namespace ib::hca {

using verbs::QpType;
using verbs::WcOpcode;

FastPath::FastPath(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own)
    : plane_(plane),
      own_(own),
      type_(config.type),
      may_be_fast_((config.type == QpType::Rc || config.type == QpType::Uc) &&
                   plane.arena().cq(config.send_cq) != nullptr),
      queue_(plane, config, own),
      peers_(plane, config, own),
      retry_(verbs::is_unreliable(config.type)),
      own_piece_(plane.local(), config),
      responder_(plane) {}

// Refreshes the values that post() compares with, for a request like this, which has a fast
// path. Returns false if they were fresh.
bool FastPath::refresh(Target target) {
  if (!may_be_fast_) return false;
  bool news = false;
  if (!peers_.refresh(news)) return false;
  if (news) queue_.completions().refresh();
  news |= queue_.completions().look_again();
  std::uint32_t access = verbs::access::kRemoteWrite;
  if (is_plain_send(target.opcode)) {
    access = verbs::access::kLocalWrite;
    Sge room;
    if (!next_receive(room)) return false;
    news |= peers_.peer().cq.look_again(plane_.arena());
    target.rkey = room.lkey;
    target.address = room.address;
  } else if (target.opcode == verbs::WrOpcode::RdmaRead) {
    access = verbs::access::kRemoteRead;
  }
  return peers_.refresh_key(target.rkey, target.address, target.length, access) || news;
}

// The room that the next send will probably get: others may take from a shared queue first. Returns
// false if none is posted, or the fast path does not send there.
bool FastPath::next_receive(Sge& room) {
  Peer& peer = peers_.peer();
  const SrqEntry* shared = peers_.shared_queue();
  if (shared == nullptr && !peers_.takes_sends()) return false;
  const Shared64& consumed =
      shared != nullptr ? shared->consumer.head : peer.entry->responder.rq_head;
  const Shared64& posted = shared != nullptr ? shared->producer.tail : peer.entry->owner.rq_tail;
  const std::uint64_t head = consumed.load(std::memory_order_relaxed);
  std::uint32_t id = 0;
  return peer.receives.available(head, posted) && peer.receives.copy_single(head, id, room);
}

void FastPath::finish(verbs::WrOpcode opcode, std::uint32_t flags, std::uint32_t bytes) noexcept {
  const bool is_send = is_plain_send(opcode);
  // The sender's own completion and event come before the event of the receiver, who answers it.
  queue_.completions().finish_fast(flags, queue_.posted().end() - 1, bytes,
                                   is_send                                ? WcOpcode::Send
                                   : opcode == verbs::WrOpcode::RdmaWrite ? WcOpcode::RdmaWrite
                                                                          : WcOpcode::RdmaRead);
  if (is_send && (peers_.peer().cq.may_fire() || plane_.fenced_entries())) {
    peers_.peer().cq.fire(plane_.host(), (flags & verbs::send_flag::kSolicited) != 0);
  }
}

namespace {

// A request of the slow path as the fast path sees it.
struct WqeView {
  static constexpr bool kGathered = false;
  const SendWqe& wqe;
  const Sge& sge() const { return wqe.sge[0]; }
  std::uint64_t wr_id() const { return wqe.wr_id; }
  verbs::WrOpcode opcode() const { return wqe.opcode; }
  std::uint32_t flags() const { return wqe.flags; }
  std::uint32_t imm() const { return wqe.imm; }
  std::uint32_t rkey() const { return wqe.rkey; }
  std::uint64_t remote_address() const { return wqe.remote_address; }
};

struct GatheredView : WqeView {
  static constexpr bool kGathered = true;
  const Sge& whole;
  const Sge& sge() const { return whole; }
};

}  // namespace

template <class Send>
[[gnu::always_inline]] inline bool FastPath::try_view(Send send) {
  const Posted posted = post(send);
  if (posted == Posted::Rest) finish(send.opcode(), send.flags(), send.sge().length);
  return posted != Posted::No || refresh_and_post(send);
}

bool FastPath::try_post(const SendWqe& wqe) {
  const bool flagged = (wqe.flags & verbs::send_flag::kInline) != 0;
  if (wqe.inline_data != flagged || !has_fast_path(wqe.opcode)) return false;
  if (wqe.num_sge == 1) [[likely]]
    return try_view(WqeView{wqe});
  return may_be_fast_ && may_be_gathered(wqe.opcode, wqe.flags) && try_gathered(wqe);
}

bool FastPath::try_gathered(const SendWqe& wqe) {
  InlinePieces pieces;
  return pieces.gather({wqe.sge, wqe.num_sge}) && try_view(GatheredView{{wqe}, pieces.whole()});
}

}  // namespace ib::hca
