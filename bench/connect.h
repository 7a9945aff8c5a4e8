// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queue pairs of this folder's verbs programs: connecting them, and a write of one word.
#pragma once

#include "program.h"

#include <infiniband/verbs.h>

#include <cstdint>

namespace ib::bench {

// Moves from RESET to RTS at port 1, connected to the RC queue pair `peer` of the port that has
// `lid`; the peer may write.
inline void connect_rc(ibv_qp* qp, std::uint16_t lid, std::uint32_t peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  require(ibv_modify_qp(qp, &attr, kInit) == 0, "ibv_modify_qp to INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = lid;
  attr.ah_attr.port_num = 1;
  constexpr int kResponder = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  require(ibv_modify_qp(qp, &attr, kResponder) == 0, "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  constexpr int kRequester = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  require(ibv_modify_qp(qp, &attr, kRequester) == 0, "ibv_modify_qp to RTS");
}

// Writes a word to the peer, and waits for the completion.
inline void write_word(ibv_qp* qp, ibv_cq* cq, std::uint64_t value, std::uint64_t address,
                       std::uint32_t rkey) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(&value), sizeof value, 0};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_INLINE;
  request.wr.rdma = {address, rkey};
  ibv_send_wr* bad = nullptr;
  require(ibv_post_send(qp, &request, &bad) == 0, "ibv_post_send");
  ibv_wc completion{};
  int got = 0;
  while ((got = ibv_poll_cq(cq, 1, &completion)) == 0) continue;
  require(got == 1, "ibv_poll_cq");
  if (completion.status != IBV_WC_SUCCESS) fail(ibv_wc_status_str(completion.status));
}

}  // namespace ib::bench
