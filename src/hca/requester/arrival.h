// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Arrival: a message as the responder gets it: the content of its packets' headers [IBA1 9.2-9.5],
// and nothing else of its sender.
#pragma once

#include "hca/layout/layout.h"
#include "verbs/types.h"

#include <cstdint>

namespace ib::hca {

struct Arrival {
  verbs::QpType service = verbs::QpType::Rc;  // the sender's type
  verbs::WrOpcode opcode = verbs::WrOpcode::Send;
  bool solicited = false;
  std::uint32_t imm = 0;  // or the key to invalidate
  std::uint32_t source_qpn = 0;
  std::uint16_t source_lid = 0;
  std::uint32_t rkey = 0;  // RETH, AtomicETH
  std::uint64_t address = 0;
  std::uint32_t srqn = 0;  // XRCETH
  // Datagrams:
  bool is_global = false;  // has a GRH
  std::uint8_t sl = 0;
  std::uint16_t pkey_index = 0;  // in the table of the port that gets it
};

// The completion of its receive at queue pair `qpn`, but for which receive it was.
inline void describe_receive(const Arrival& arrival, std::uint32_t qpn, verbs::WcOpcode opcode,
                             std::uint32_t bytes, Cqe& cqe) {
  cqe.qpn = qpn;
  cqe.byte_len = bytes;
  cqe.src_qp = arrival.source_qpn;
  cqe.slid = arrival.source_lid;
  cqe.opcode = static_cast<std::uint32_t>(opcode);
  cqe.bits = cqe_bit::kReceive;
  if (arrival.opcode == verbs::WrOpcode::SendWithImm ||
      arrival.opcode == verbs::WrOpcode::RdmaWriteWithImm) {
    cqe.flags = verbs::wc_flag::kWithImm;
    cqe.imm = arrival.imm;
  } else if (arrival.opcode == verbs::WrOpcode::SendWithInv) {
    cqe.flags = verbs::wc_flag::kWithInv;
    cqe.imm = arrival.imm;
  }
}

}  // namespace ib::hca
