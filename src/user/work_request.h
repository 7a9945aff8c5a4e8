// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Work requests and completions as a user-mode client sees them [IBA1 11.4].
#pragma once

#include "hca/layout.h"
#include "verbs/types.h"

#include <cstdint>
#include <span>

namespace ib::user {

class AddressHandle;
class MemoryRegion;
class MemoryWindow;

using hca::Sge;  // same layout as ibv_sge

// A send-queue request. Spans and pointers need to live only for the call that posts it.
struct SendRequest {
  std::uint64_t wr_id = 0;
  verbs::WrOpcode opcode = verbs::WrOpcode::Send;
  std::uint32_t flags = 0;  // verbs::send_flag
  std::span<const Sge> sge;
  std::uint32_t imm = 0;   // as on the wire (big endian); SendWithInv, LocalInv: the rkey
  std::uint32_t rkey = 0;  // of RDMA and atomics
  std::uint64_t remote_address = 0;
  std::uint64_t compare_add = 0;  // atomics; AtomicWrite: the 8 bytes
  std::uint64_t swap = 0;
  const AddressHandle* ah = nullptr;  // UD
  std::uint32_t remote_qpn = 0;       // UD
  std::uint32_t remote_qkey = 0;      // UD; top bit set: use the QP's own [IBA1 10.2.5]
  std::uint32_t remote_srqn = 0;      // XRC
  // BindMw
  MemoryWindow* window = nullptr;
  MemoryRegion* bind_region = nullptr;
  std::uint64_t bind_address = 0;
  std::uint64_t bind_length = 0;
  std::uint32_t bind_access = 0;
  std::uint32_t bind_rkey =
      0;  // type 2: the new key (index of the window, any tag); type 1: unused
};

// A polled completion.
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

}  // namespace ib::user
