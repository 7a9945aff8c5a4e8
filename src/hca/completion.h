// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A completion as its owner polls it [IBA1 11.4.2.1].
#pragma once

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

}  // namespace ib::hca
