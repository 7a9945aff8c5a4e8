// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A completion as its owner polls it [IBA1 11.4.2.1].
#pragma once

#include "hca/layout/layout.h"
#include "verbs/types.h"

#include <cstdint>

namespace ib::hca {

struct Completion {
  std::uint64_t wr_id = 0;
  verbs::WcStatus status = verbs::WcStatus::Success;
  verbs::WcOpcode opcode = verbs::WcOpcode::Send;
  std::uint32_t vendor_err = 0;  // verbs::control::Cause
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;  // as on the wire, or the invalidated rkey
  std::uint32_t qpn = 0;
  std::uint32_t src_qp = 0;
  std::uint32_t flags = 0;  // verbs::wc_flag
  std::uint16_t pkey_index = 0;
  std::uint16_t slid = 0;
  std::uint8_t sl = 0;
  std::uint8_t path_bits = 0;
  std::uint64_t timestamp = 0;  // ns, CLOCK_MONOTONIC
};

// All but wr_id, which only the owner of the queue pair has. `cqe` lies in shared memory, so every
// field is read once.
inline void read_completion(const Cqe& cqe, Completion& out) {
  out.status = static_cast<verbs::WcStatus>(cqe.status);
  out.opcode = static_cast<verbs::WcOpcode>(cqe.opcode);
  out.vendor_err = cqe.vendor_err;
  out.byte_len = cqe.byte_len;
  out.imm = cqe.imm;
  out.qpn = cqe.qpn;
  out.src_qp = cqe.src_qp;
  out.flags = cqe.flags;
  out.pkey_index = cqe.pkey_index;
  out.slid = cqe.slid;
  out.sl = cqe.sl;
  out.path_bits = cqe.path_bits;
  out.timestamp = cqe.timestamp;
}

}  // namespace ib::hca
