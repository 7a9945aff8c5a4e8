// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connects queue pairs, for this folder's verbs programs.
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

}  // namespace ib::bench
