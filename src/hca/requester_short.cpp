// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester_short.h"

namespace ib::hca {

using verbs::QpType;
using verbs::WcOpcode;

// Its type cannot have changed: that takes another generation.
[[gnu::noinline]] bool Requester::look_at_peer(std::uint64_t changes) {
  peer_.port = nullptr;
  peer_.key = {};
  const bool connected = config_.type == QpType::Rc || config_.type == QpType::Uc;
  if (!connected || !send_cq_.valid() || peer_.entry == nullptr) return false;
  const auto& own = own_->id;
  const auto& peer = peer_.entry->id;
  const PortEntry* own_port = arena_.port(own.port);
  const PortEntry* port = arena_.port(peer.port);
  if (peer.qpn.load(std::memory_order_acquire) != peer_.qpn || own.dest_qpn != peer_.qpn ||
      peer.generation != peer_.generation ||
      peer.dest_qpn != own.qpn.load(std::memory_order_relaxed) || peer.lid != own.dlid ||
      !verbs::share_partition(peer.pkey, own.pkey) || own_port == nullptr || port == nullptr) {
    return false;
  }
  peer_.own_port = &own_port->state;
  peer_.port = &port->state;
  peer_.as_of = changes;
  peer_.takes_sends = peer.srq == kNone && peer_.receives.valid() && peer_.cq.valid() &&
                      (peer_.cq.entry().id.flags & verbs::control::cq_flag::kTimestamp) == 0;
  Cqe receive;
  describe_receive({}, WcOpcode::Recv, 0, receive);
  peer_.receive = CompletionHead(receive);
  Cqe sent;
  sent.qpn = own.qpn.load(std::memory_order_relaxed);
  sent_ = CompletionHead(sent);
  return true;
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
  return wqe.num_sge == 1 && wqe.inline_data == flagged && post_short(WqeView{wqe});
}

}  // namespace ib::hca
