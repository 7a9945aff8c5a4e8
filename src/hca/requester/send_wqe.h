// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A request of a send queue, and what a send queue is made with.
#pragma once

#include "hca/layout/layout.h"
#include "verbs/control.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

// A send-queue request, ready to run.
struct SendWqe {
  std::uint64_t wr_id = 0;
  verbs::WrOpcode opcode = verbs::WrOpcode::Send;
  std::uint32_t flags = 0;  // verbs::send_flag
  const Sge* sge = nullptr;
  std::uint32_t num_sge = 0;
  std::uint32_t imm = 0;  // or the key to invalidate, or the operands of a flush
  std::uint32_t rkey = 0;
  std::uint32_t remote_qpn = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_add = 0;  // or bytes to flush
  std::uint64_t swap = 0;
  verbs::AddressVector av;       // datagrams
  std::uint16_t pkey_index = 0;  // Gsi: with which P_Key of its port [IBA1 11.4.1.1]
  std::uint32_t remote_qkey = 0;
  std::uint32_t remote_srqn = 0;
  std::uint32_t window = kNone;  // BindMw: key indexes
  std::uint32_t bind_region = kNone;
  std::uint64_t bind_address = 0;
  std::uint64_t bind_length = 0;
  std::uint32_t bind_access = 0;
  std::uint32_t bind_rkey = 0;
  bool inline_data = false;  // SGEs are plain pointers, valid during the post
  // Of a request that had to wait (SendQueue::store): its inline data was copied.
  bool stored = false;
  std::uint32_t inline_bytes = 0;
  const std::byte* kept_inline = nullptr;
};

// Bytes that the elements of a request name.
inline std::uint64_t asked_for(const SendWqe& wqe) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) bytes += wqe.sge[i].length;
  return bytes;
}

struct RequesterConfig {
  std::uint32_t qp = 0;
  verbs::QpType type = verbs::QpType::Rc;
  std::uint32_t pd = 0;
  std::uint32_t send_cq = kNone;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
  bool signal_all = false;
  bool block_loopback = false;  // UD multicast: not to itself
  bool takes_large = false;     // UD: control::qp_flag::kTakesLarge
};

inline constexpr std::uint32_t kMaxMessage = 1u << 31;  // bytes [IBA1 9.7.2]

}  // namespace ib::hca
