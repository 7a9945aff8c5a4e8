// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Work requests and completions as a user-mode client sees them [IBA1 11.4].
#pragma once

#include "hca/layout/layout.h"
#include "hca/queues/completion.h"
#include "verbs/types.h"

#include <cstdint>
#include <span>

namespace ib::user {

class AddressHandle;
class MemoryRegion;
class MemoryWindow;

using hca::Completion;
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
  std::uint32_t bind_rkey = 0;  // its low byte is that of the window's new key
};

}  // namespace ib::user
