// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Querying and modifying queue pairs.
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/ops.h"

namespace ib::host_abi {

int modify_qp(ibv_qp* ibqp, ibv_qp_attr* attr, int mask) {
  return guarded_int("ibv_modify_qp", [&] {
    if (const int error = check_whole("ibv_modify_qp", qp_of(ibqp))) return error;
    const auto changed =
        qp_of(ibqp).engine->modify(static_cast<std::uint32_t>(mask), to_qp_attr(*attr, mask));
    return done("ibv_modify_qp", changed.error());
  });
}

int query_qp(ibv_qp* ibqp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  return guarded_int("ibv_query_qp", [&] {
    if (const int error = check_whole("ibv_query_qp", qp_of(ibqp))) return error;
    const auto got = qp_of(ibqp).engine->query();
    if (!got) return fail("ibv_query_qp", got.error());
    from_qp_attr(got->attr, *attr);
    attr->cap = to_cap(got->caps);
    *init = {};
    init->qp_context = ibqp->qp_context;
    init->send_cq = ibqp->send_cq;
    init->recv_cq = ibqp->recv_cq;
    init->srq = ibqp->srq;
    init->cap = attr->cap;
    init->qp_type = ibqp->qp_type;
    init->sq_sig_all = qp_of(ibqp).signal_all ? 1 : 0;
    return 0;
  });
}

// Enhanced connection establishment: there are no options to negotiate, and programs that got some
// without a vendor could not hand them on.
int query_ece(ibv_qp*, ibv_ece*) {
  return EOPNOTSUPP;
}

int set_ece(ibv_qp*, ibv_ece*) {
  return fail("ibv_set_ece", EOPNOTSUPP, "the options are of another vendor's device");
}

// The posting thread writes the bytes, in ascending order.
int query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
  constexpr std::uint32_t kReturnCaps = 1u << 0;  // rdma-core 45
  constexpr std::uint32_t kDeviceOnly = 1u << 1;  // 62: the CPU does not matter, here it writes
  constexpr int kWholeMessage = 1 << 0;
  constexpr int kAligned128Bytes = 1 << 1;
  if ((flags & ~(kReturnCaps | kDeviceOnly)) != 0) return 0;
  const bool reliable_order = qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_UC ||
                              qp->qp_type == IBV_QPT_XRC_SEND || qp->qp_type == IBV_QPT_XRC_RECV;
  const bool moves_data = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
                          opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
                          opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_READ;
  if (!reliable_order || !moves_data) return 0;
  return (flags & kReturnCaps) != 0 ? kWholeMessage | kAligned128Bytes : kWholeMessage;
}

}  // namespace ib::host_abi
