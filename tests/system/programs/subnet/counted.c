/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * A number of messages of one size from one node to another, for the counters of the ports between.
 *
 * counted TRANSPORT send|write|read COUNT SIZE PORT [HOST]
 *
 * Without HOST it receives. TRANSPORT: as in transports.h. The path MTU is 1,024. */
#include "transports.h"

enum { MOST = 1 << 16 };
static unsigned char memory[MOST + GRH];

static void post_receive(struct ibv_qp* qp, struct ibv_srq* srq, uint32_t size) {
  struct ibv_sge sge = {(uintptr_t)memory, size + GRH, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  if (srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)) die("receive");
}

static void succeeded(void) {
  const struct ibv_wc wc = completion();
  if (wc.status == IBV_WC_SUCCESS) return;
  printf("a message ended with %s\n", ibv_wc_status_str(wc.status));
  exit(1);
}

static void send_one(struct ibv_qp* qp, struct ibv_ah* ah, const struct side* peer,
                     enum ibv_wr_opcode opcode, uint32_t size) {
  struct ibv_sge sge = {(uintptr_t)memory, size, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};
  struct ibv_send_wr* bad = NULL;
  if (ah) {
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = peer->qpn;
    wr.wr.ud.remote_qkey = QKEY;
  } else {
    wr.wr.rdma.remote_addr = peer->address;
    wr.wr.rdma.rkey = peer->rkey;
    wr.qp_type.xrc.remote_srqn = peer->srqn;
  }
  if (ibv_post_send(qp, &wr, &bad)) die("ibv_post_send");
  succeeded();
}

int main(int argc, char** argv) {
  if (argc < 6) return 1;
  const char* transport = argv[1];
  const int sends = argc > 6;
  const int to_group = !strcmp(transport, "group");
  const int count = atoi(argv[3]);
  const uint32_t size = (uint32_t)atoi(argv[4]);
  const enum ibv_wr_opcode opcode = !strcmp(argv[2], "write")  ? IBV_WR_RDMA_WRITE
                                    : !strcmp(argv[2], "read") ? IBV_WR_RDMA_READ
                                                               : IBV_WR_SEND;
  meet(argv[5], sends ? argv[6] : NULL);
  open_device(memory, sizeof memory, 2 * DEPTH);
  open_domain();
  struct ibv_qp* qp = new_qp(type_of(transport, sends));
  struct ibv_srq* srq = qp->qp_type == IBV_QPT_XRC_RECV ? new_srq() : NULL;
  struct side own = {.qpn = qp->qp_num, .lid = lid, .rkey = mr->rkey, .address = (uintptr_t)memory};
  struct side peer;
  if (srq && ibv_get_srq_num(srq, &own.srqn)) die("ibv_get_srq_num");
  transfer(1, &own, sizeof own);
  transfer(0, &peer, sizeof peer);
  to_init(qp, 0);
  to_rts(qp, &peer);
  const union ibv_gid gid = group();
  if (!sends && to_group && ibv_attach_mcast(qp, &gid, MLID)) die("ibv_attach_mcast");
  struct ibv_ah* ah = sends && qp->qp_type == IBV_QPT_UD ? address_of(&peer, to_group) : NULL;
  if (to_group) peer.qpn = 0xffffff;
  /* As many at a time as fit into the receive queue. */
  for (int left = count; left > 0; left -= DEPTH) {
    const int some = left < DEPTH ? left : DEPTH;
    for (int i = 0; i < some && !sends && opcode == IBV_WR_SEND; ++i) post_receive(qp, srq, size);
    meet_again();
    for (int i = 0; i < some; ++i) {
      if (sends) send_one(qp, ah, &peer, opcode, size);
      if (!sends && opcode == IBV_WR_SEND) succeeded();
    }
    meet_again();
  }
  return 0;
}
