// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Between the structs of infiniband/verbs.h and ours. The numbers are the same on both sides, which
// the static_asserts in convert.cpp and here hold, so enumerations convert by cast.
#pragma once

#include "host_abi/provider/abi/verbs_abi.h"
#include "user/completion_queue.h"
#include "user/work_request.h"
#include "verbs/control.h"
#include "verbs/types.h"

#include <cstddef>
#include <cstring>

namespace ib::host_abi {

verbs::AddressVector to_vector(const ibv_ah_attr& attr);
ibv_ah_attr to_ah_attr(const verbs::AddressVector& av);
verbs::control::QpAttr to_qp_attr(const ibv_qp_attr& attr, int mask);
// All but rate_limit, which the struct has since rdma-core 1.2 only: a caller of ibv_query_qp() may
// have memory for the shorter one.
void from_qp_attr(const verbs::control::QpAttr& from, ibv_qp_attr& to);
verbs::control::QpCaps to_caps(const ibv_qp_cap& cap);
ibv_qp_cap to_cap(const verbs::control::QpCaps& caps);

// Scatter/gather lists and completions are handed over without conversion.
static_assert(sizeof(ibv_sge) == sizeof(user::Sge));
static_assert(offsetof(ibv_sge, addr) == offsetof(user::Sge, address));
static_assert(offsetof(ibv_sge, length) == offsetof(user::Sge, length));
static_assert(offsetof(ibv_sge, lkey) == offsetof(user::Sge, lkey));

static_assert(sizeof(ibv_wc) == sizeof(hca::CompletionHead));
static_assert(offsetof(ibv_wc, status) == offsetof(hca::Cqe, status));
static_assert(offsetof(ibv_wc, opcode) == offsetof(hca::Cqe, opcode));
static_assert(offsetof(ibv_wc, vendor_err) == offsetof(hca::Cqe, vendor_err));
static_assert(offsetof(ibv_wc, byte_len) == offsetof(hca::Cqe, byte_len));
static_assert(offsetof(ibv_wc, imm_data) == offsetof(hca::Cqe, imm));
static_assert(offsetof(ibv_wc, qp_num) == offsetof(hca::Cqe, qpn));
static_assert(offsetof(ibv_wc, src_qp) == offsetof(hca::Cqe, src_qp));
static_assert(offsetof(ibv_wc, wc_flags) == offsetof(hca::Cqe, flags));
static_assert(offsetof(ibv_wc, pkey_index) == offsetof(hca::Cqe, pkey_index));
static_assert(offsetof(ibv_wc, slid) == offsetof(hca::Cqe, slid));
static_assert(offsetof(ibv_wc, sl) == offsetof(hca::Cqe, sl));
static_assert(offsetof(ibv_wc, dlid_path_bits) == offsetof(hca::Cqe, path_bits));

inline std::span<const user::Sge> to_sges(const ibv_sge* list, int count) {
  return {reinterpret_cast<const user::Sge*>(list), static_cast<std::size_t>(count)};
}

// Of a receive, in three pieces: another core has written it. Of a request, field by field: bytes
// that this core has just written in pieces are read back fast only in the same pieces.
inline void to_wc(const hca::Cqe& from, const user::TakenCompletion& taken, ibv_wc& to) {
  if (taken.received) {
    hca::CompletionHead::copy(from, reinterpret_cast<std::byte*>(&to));
    to.wr_id = taken.wr_id;
    to.status = static_cast<ibv_wc_status>(taken.status);
    to.qp_num = taken.qpn;
    return;
  }
  to.wr_id = taken.wr_id;
  to.status = static_cast<ibv_wc_status>(taken.status);
  to.opcode = static_cast<ibv_wc_opcode>(from.opcode);
  to.vendor_err = from.vendor_err;
  to.byte_len = from.byte_len;
  to.imm_data = from.imm;
  to.qp_num = taken.qpn;
  to.src_qp = from.src_qp;
  to.wc_flags = from.flags;
  to.pkey_index = from.pkey_index;
  to.slid = from.slid;
  to.sl = from.sl;
  to.dlid_path_bits = from.path_bits;
}

}  // namespace ib::host_abi
