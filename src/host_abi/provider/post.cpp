// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting lists of work requests. Nothing is allocated; a request is converted field by field into
// one that belongs to the queue pair, and only the fields that its opcode has are touched.
#include "base/address.h"
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/ops.h"
#include "host_abi/provider/post_refusal.h"
#include "user/post_fast.h"

namespace ib::host_abi {

namespace {

constexpr unsigned kSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

// The 8 bytes of an atomic write come through the list [man ibv_wr_atomic_write has them inline].
bool take_atomic_write(const ibv_send_wr& wr, hca::SendWqe& to) {
  if (wr.num_sge != 1 || wr.sg_list[0].length != sizeof to.compare_add) return false;
  const void* const bytes = pointer_to<const void>(wr.sg_list[0].addr);
  std::memcpy(&to.compare_add, bytes, sizeof to.compare_add);
  to.num_sge = 0;
  user::set_flags(to, to.flags & ~static_cast<std::uint32_t>(IBV_SEND_INLINE));
  return true;
}

bool take_bind(const ibv_send_wr& wr, hca::SendWqe& to) {
  if (wr.bind_mw.mw == nullptr) return false;
  describe_bind(mw_of(wr.bind_mw.mw), wr.bind_mw.bind_info, wr.bind_mw.rkey, to);
  return true;
}

bool take_destination(const ibv_send_wr& wr, ibv_qp_type type, hca::SendWqe& to) {
  if (type == IBV_QPT_UD) {
    // The remote address of any other request would be taken for an address handle.
    if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) return false;
    // No port computes checksums (ibv_query_device: no IBV_DEVICE_UD_IP_CSUM).
    if (wr.wr.ud.ah == nullptr || (wr.send_flags & IBV_SEND_IP_CSUM) != 0) return false;
    to.av = ah_of(wr.wr.ud.ah).engine->av();
    to.remote_qpn = wr.wr.ud.remote_qpn;
    to.remote_qkey = wr.wr.ud.remote_qkey;
  } else if (type == IBV_QPT_XRC_SEND) {
    to.remote_srqn = wr.qp_type.xrc.remote_srqn;
  }
  return true;
}

// Returns false if the request is malformed.
bool convert(const ibv_send_wr& wr, ibv_qp_type type, hca::SendWqe& to) {
  if (wr.num_sge < 0) return false;
  to.wr_id = wr.wr_id;
  to.opcode = static_cast<verbs::WrOpcode>(wr.opcode);
  user::set_flags(to, wr.send_flags & kSendFlags);
  user::set_sges(to, to_sges(wr.sg_list, wr.num_sge));
  to.imm = wr.imm_data;  // shares its place with invalidate_rkey
  using enum verbs::WrOpcode;
  switch (to.opcode) {
    case Send:
    case SendWithImm:
    case SendWithInv: return take_destination(wr, type, to);
    case RdmaWrite:
    case RdmaWriteWithImm:
    case RdmaRead:
      to.remote_address = wr.wr.rdma.remote_addr;
      to.rkey = wr.wr.rdma.rkey;
      return take_destination(wr, type, to);
    case AtomicWrite:
      to.remote_address = wr.wr.rdma.remote_addr;
      to.rkey = wr.wr.rdma.rkey;
      return take_atomic_write(wr, to) && take_destination(wr, type, to);
    case AtomicCmpSwap:
    case AtomicFetchAdd:
      to.remote_address = wr.wr.atomic.remote_addr;
      to.rkey = wr.wr.atomic.rkey;
      to.compare_add = wr.wr.atomic.compare_add;
      to.swap = wr.wr.atomic.swap;
      return take_destination(wr, type, to);
    case LocalInv: to.num_sge = 0; return true;
    case BindMw: to.num_sge = 0; return take_bind(wr, to);
    case Flush: return false;  // ibv_send_wr has no operands of it
  }
  return false;  // no operation of a softib HCA: TSO
}

// A request of one piece, for the fast path.
struct SendView {
  static constexpr bool kGathered = false;
  const ibv_send_wr& wr;
  const hca::Sge& sge() const { return to_sges(wr.sg_list, 1)[0]; }
  std::uint64_t wr_id() const { return wr.wr_id; }
  verbs::WrOpcode opcode() const { return static_cast<verbs::WrOpcode>(wr.opcode); }
  std::uint32_t flags() const { return wr.send_flags; }
  std::uint32_t imm() const { return wr.imm_data; }
  std::uint32_t rkey() const { return wr.wr.rdma.rkey; }
  std::uint64_t remote_address() const { return wr.wr.rdma.remote_addr; }
};

// The same of one whose pieces were gathered into one.
struct GatheredView : SendView {
  static constexpr bool kGathered = true;
  const hca::Sge& whole;
  const hca::Sge& sge() const { return whole; }
};

Status post_slowly(Qp& qp, const ibv_send_wr& wr, hca::Way way) {
  if (!convert(wr, qp.qp.qp_type, qp.request)) return Status::InvalidParameter;
  if (wr.opcode != IBV_WR_BIND_MW) return qp.engine->queues().post_send(qp.request, way);
  return qp.engine->queues().post_bind(qp.request, *mw_of(wr.bind_mw.mw).engine, way);
}

// Out of line, as is post_receives(): a request on the fast path should not pay for them. `way`: of
// the first request.
[[gnu::noinline]] int post_sends(ibv_qp* ibqp, ibv_send_wr* wr, ibv_send_wr** bad, hca::Way way) {
  Qp& qp = qp_of(ibqp);
  user::WorkQueues& queues = qp.engine->queues();
  Status status = Status::Ok;
  queues.send_lock().lock();
  for (; wr != nullptr; wr = wr->next) {
    status = post_slowly(qp, *wr, way);
    if (status != Status::Ok) break;
    way = hca::Way::Fastest;
  }
  queues.send_lock().unlock();
  if (status == Status::Ok) return 0;
  if (bad != nullptr) *bad = wr;
  tell_refusal(qp, *wr, status);
  return fail("ibv_post_send", errno_of_posting(status), status_text(status));
}

// `refused`: the fast path has refused the first request.
[[gnu::noinline]] int post_one(ibv_qp* ibqp, ibv_send_wr* wr, ibv_send_wr** bad, bool refused) {
  user::WorkQueues& queues = qp_of(ibqp).engine->queues();
  const SendView view{*wr};
  if (!hca::has_fast_path(view.opcode())) {
    return post_sends(ibqp, wr, bad, hca::Way::Slow);
  }
  queues.send_lock().lock();
  const bool posted = (!refused && queues.post_fast(view)) || queues.refresh_and_post(view);
  queues.send_lock().unlock();
  return posted ? 0 : post_sends(ibqp, wr, bad, hca::Way::Slow);
}

// Several pieces.
[[gnu::noinline]] int post_pieces(ibv_qp* ibqp, ibv_send_wr* wr, ibv_send_wr** bad) {
  user::WorkQueues& queues = qp_of(ibqp).engine->queues();
  const SendView view{*wr};
  if (wr->num_sge < 0 || !queues.has_fast_path() ||
      !hca::may_be_gathered(view.opcode(), view.flags())) {
    return post_sends(ibqp, wr, bad, hca::Way::Slow);
  }
  queues.announce_room();
  hca::InlinePieces pieces;
  if (!pieces.gather(to_sges(wr->sg_list, wr->num_sge))) {
    return post_sends(ibqp, wr, bad, hca::Way::Slow);
  }
  const GatheredView whole{view, pieces.whole()};
  queues.send_lock().lock();
  const bool posted = queues.post_fast(whole) || queues.refresh_and_post(whole);
  queues.send_lock().unlock();
  return posted ? 0 : post_sends(ibqp, wr, bad, hca::Way::Slow);
}

[[gnu::noinline]] int serve_awaited(user::WorkQueues& queues) {
  queues.serve_awaited();
  return 0;
}

[[gnu::noinline]] int post_receives(Qp& qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  user::WorkQueues& queues = qp.engine->queues();
  for (; wr != nullptr; wr = wr->next) {
    Status status = Status::InvalidParameter;
    if (wr->num_sge >= 0) status = queues.post_recv(wr->wr_id, to_sges(wr->sg_list, wr->num_sge));
    if (status == Status::Ok) continue;
    if (bad != nullptr) *bad = wr;
    tell_refusal(qp, *wr, status);
    return fail("ibv_post_recv", errno_of_posting(status), status_text(status));
  }
  return 0;
}

}  // namespace

// Flattened: the whole fast path is inlined, except for functions that are marked otherwise.
[[gnu::flatten]] int post_send(ibv_qp* ibqp, ibv_send_wr* wr, ibv_send_wr** bad) {
  user::WorkQueues& queues = qp_of(ibqp).engine->queues();
  queues.announce();
  if (wr != nullptr && wr->next == nullptr && wr->num_sge == 1) [[likely]] {
    if (!queues.send_lock().enter()) [[unlikely]]
      return post_one(ibqp, wr, bad, false);
    const bool posted = queues.post_fast(SendView{*wr});
    queues.send_lock().leave();
    return posted ? 0 : post_one(ibqp, wr, bad, true);
  }
  if (wr != nullptr && wr->next == nullptr) return post_pieces(ibqp, wr, bad);
  return post_sends(ibqp, wr, bad, hca::Way::Fastest);
}

int post_recv(ibv_qp* ibqp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  user::WorkQueues& queues = qp_of(ibqp).engine->queues();
  if (wr != nullptr && wr->next == nullptr && wr->num_sge == 1) [[likely]] {
    if (queues.post_plain_recv(wr->wr_id, to_sges(wr->sg_list, 1)[0])) [[likely]] {
      return queues.is_awaited() ? serve_awaited(queues) : 0;
    }
  }
  return post_receives(qp_of(ibqp), wr, bad);
}

}  // namespace ib::host_abi
