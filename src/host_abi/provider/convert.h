// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Between the structs of infiniband/verbs.h and ours. The numbers are the same on both sides, which
// the static_asserts in convert.cpp and here hold, so enumerations convert by cast.
#pragma once

#include "host_abi/provider/verbs_abi_34.h"
#include "user/work_request.h"
#include "verbs/control.h"
#include "verbs/types.h"

#include <cstddef>
#include <cstring>

namespace ib::host_abi {

verbs::AddressVector to_vector(const ibv_ah_attr& attr);
ibv_ah_attr to_ah_attr(const verbs::AddressVector& av);
verbs::control::QpAttr to_qp_attr(const ibv_qp_attr& attr, int mask);
void from_qp_attr(const verbs::control::QpAttr& from, ibv_qp_attr& to);
verbs::control::QpCaps to_caps(const ibv_qp_cap& cap);
ibv_qp_cap to_cap(const verbs::control::QpCaps& caps);

// Scatter/gather lists and completions are handed over without conversion.
static_assert(sizeof(ibv_sge) == sizeof(user::Sge));
static_assert(offsetof(ibv_sge, addr) == offsetof(user::Sge, address));
static_assert(offsetof(ibv_sge, length) == offsetof(user::Sge, length));
static_assert(offsetof(ibv_sge, lkey) == offsetof(user::Sge, lkey));

inline std::span<const user::Sge> to_sges(const ibv_sge* list, int count) {
  return {reinterpret_cast<const user::Sge*>(list), static_cast<std::size_t>(count)};
}

static_assert(offsetof(ibv_wc, wr_id) == offsetof(user::Completion, wr_id));
static_assert(offsetof(ibv_wc, status) == offsetof(user::Completion, status));
static_assert(offsetof(ibv_wc, opcode) == offsetof(user::Completion, opcode));
static_assert(offsetof(ibv_wc, vendor_err) == offsetof(user::Completion, vendor_err));
static_assert(offsetof(ibv_wc, byte_len) == offsetof(user::Completion, byte_len));
static_assert(offsetof(ibv_wc, imm_data) == offsetof(user::Completion, imm));
static_assert(offsetof(ibv_wc, qp_num) == offsetof(user::Completion, qpn));
static_assert(offsetof(ibv_wc, src_qp) == offsetof(user::Completion, src_qp));
static_assert(offsetof(ibv_wc, wc_flags) == offsetof(user::Completion, flags));
static_assert(offsetof(ibv_wc, pkey_index) == offsetof(user::Completion, pkey_index));
static_assert(offsetof(ibv_wc, slid) == offsetof(user::Completion, slid));
static_assert(offsetof(ibv_wc, sl) == offsetof(user::Completion, sl));
static_assert(offsetof(ibv_wc, dlid_path_bits) == offsetof(user::Completion, path_bits));

inline void to_wc(const user::Completion& from, ibv_wc& to) {
  std::memcpy(&to, &from, sizeof to);
}

}  // namespace ib::host_abi
