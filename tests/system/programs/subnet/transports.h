/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Queue pairs of each transport between two nodes, by their names: RC, UC, XRC, UD, and "group" for
 * UD to a multicast group. */
#ifndef TRANSPORTS_H
#define TRANSPORTS_H

#include "two_nodes.h"

#include <fcntl.h>

enum { GRH = 40, QKEY = 0x1234, MLID = 0xc123, PSN = 5, DEPTH = 64 };
static const uint8_t kGroup[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0,
                                   0,    0,    0,    0,    0,    0,    1, 9};

static struct ibv_xrcd* xrcd;

struct side {
  uint32_t qpn, srqn, lid, pkey, rkey;
  uint64_t address;
};

static inline void open_domain(void) {
  struct ibv_xrcd_init_attr domain = {
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
  if (!(xrcd = ibv_open_xrcd(context, &domain))) die("ibv_open_xrcd");
}

static inline enum ibv_qp_type type_of(const char* transport, int sends) {
  if (!strcmp(transport, "RC")) return IBV_QPT_RC;
  if (!strcmp(transport, "UC")) return IBV_QPT_UC;
  if (!strcmp(transport, "XRC")) return sends ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
  return IBV_QPT_UD;
}

static inline struct ibv_qp* new_qp(enum ibv_qp_type type) {
  struct ibv_qp_init_attr_ex init = {.qp_type = type, .sq_sig_all = 1};
  init.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  init.pd = pd;
  init.xrcd = xrcd;
  if (type != IBV_QPT_XRC_RECV) init.send_cq = init.recv_cq = cq;
  init.cap.max_send_wr = init.cap.max_recv_wr = DEPTH;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  struct ibv_qp* qp = ibv_create_qp_ex(context, &init);
  if (!qp) die("ibv_create_qp_ex");
  return qp;
}

static inline struct ibv_srq* new_srq(void) {
  struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = DEPTH, .max_sge = 1},
                                      .srq_type = IBV_SRQT_XRC};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
  init.xrcd = xrcd;
  init.cq = cq;
  init.pd = pd;
  struct ibv_srq* srq = ibv_create_srq_ex(context, &init);
  if (!srq) die("ibv_create_srq_ex");
  return srq;
}

static inline void to_init(struct ibv_qp* qp, uint16_t pkey_index) {
  const int is_datagram = qp->qp_type == IBV_QPT_UD;
  struct ibv_qp_attr a = {
      .qp_state = IBV_QPS_INIT, .port_num = PORT, .pkey_index = pkey_index, .qkey = QKEY};
  a.qp_access_flags = is_datagram ? 0 : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (ibv_modify_qp(qp, &a,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                        (is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
    die("INIT");
}

static inline void to_rts(struct ibv_qp* qp, const struct side* peer) {
  const enum ibv_qp_type type = qp->qp_type;
  const int answers = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
  const int asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = PSN};
  a.dest_qp_num = peer->qpn;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 1;
  a.ah_attr.dlid = (uint16_t)peer->lid;
  a.ah_attr.port_num = PORT;
  int mask = IBV_QP_STATE;
  if (type != IBV_QPT_UD) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (answers) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(qp, &a, mask)) die("RTR");
  a = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .sq_psn = PSN, .timeout = 8, .retry_cnt = 2, .rnr_retry = 2};
  a.max_rd_atomic = 1;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (asks) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  if (type == IBV_QPT_XRC_RECV) mask |= IBV_QP_TIMEOUT;
  if (ibv_modify_qp(qp, &a, mask)) die("RTS");
}

/* The way of datagrams to the peer, or to the group. */
static inline struct ibv_ah* address_of(const struct side* peer, int to_group) {
  struct ibv_ah_attr to = {.dlid = to_group ? MLID : (uint16_t)peer->lid, .port_num = PORT};
  if (to_group) {
    to.is_global = 1;
    memcpy(to.grh.dgid.raw, kGroup, sizeof kGroup);
  }
  struct ibv_ah* ah = ibv_create_ah(pd, &to);
  if (!ah) die("ibv_create_ah");
  return ah;
}

static inline union ibv_gid group(void) {
  union ibv_gid gid;
  memcpy(gid.raw, kGroup, sizeof kGroup);
  return gid;
}

#endif
