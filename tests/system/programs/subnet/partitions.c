/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * One message by each transport for each pair of P_Key indexes of the two sides, over libibverbs.
 *
 * partitions TRANSPORTS FIRST LAST PORT [HOST]
 *
 * Without HOST it receives. Both sides go through the same pairs, of the sender's and the
 * receiver's indexes from FIRST to LAST, and tell each other by TCP who they are. The sender prints
 * a line for each: the transport, the two P_Keys, the status of its completion, and whether the
 * message has arrived. A sender is done with it when its receiver looks. */
#include "transports.h"

#include <endian.h>

enum { SIZE = 256 };
static unsigned char memory[SIZE + GRH];

static void post_receive(struct ibv_qp* qp, struct ibv_srq* srq) {
  struct ibv_sge sge = {(uintptr_t)memory, sizeof memory, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  if (srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)) die("receive");
}

/* Returns the status of the completion. */
static int send_one(struct ibv_qp* qp, const struct side* peer, int to_group) {
  struct ibv_sge sge = {(uintptr_t)memory, SIZE, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  struct ibv_send_wr* bad = NULL;
  struct ibv_ah* ah = NULL;
  if (qp->qp_type == IBV_QPT_XRC_SEND) wr.qp_type.xrc.remote_srqn = peer->srqn;
  if (qp->qp_type == IBV_QPT_UD) {
    ah = address_of(peer, to_group);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = to_group ? 0xffffff : peer->qpn;
    wr.wr.ud.remote_qkey = QKEY;
  }
  if (ibv_post_send(qp, &wr, &bad)) die("ibv_post_send");
  const struct ibv_wc wc = completion();
  if (ah) ibv_destroy_ah(ah);
  return wc.status;
}

static void one_pair(const char* transport, uint16_t pkey_index, int sends) {
  const int to_group = !strcmp(transport, "group");
  struct ibv_qp* qp = new_qp(type_of(transport, sends));
  struct ibv_srq* srq = qp->qp_type == IBV_QPT_XRC_RECV ? new_srq() : NULL;
  const union ibv_gid gid = group();
  struct side own = {.qpn = qp->qp_num, .lid = lid};
  struct side peer;
  if (srq && ibv_get_srq_num(srq, &own.srqn)) die("ibv_get_srq_num");
  __be16 pkey;
  if (ibv_query_pkey(context, PORT, pkey_index, &pkey)) die("ibv_query_pkey");
  own.pkey = be16toh(pkey);
  transfer(1, &own, sizeof own);
  transfer(0, &peer, sizeof peer);
  to_init(qp, pkey_index);
  if (!sends) post_receive(qp, srq);
  to_rts(qp, &peer);
  if (!sends && to_group && ibv_attach_mcast(qp, &gid, MLID)) die("ibv_attach_mcast");
  meet_again();
  uint32_t ready = 1;
  uint32_t arrived = 0;
  if (sends) {
    const int status = send_one(qp, &peer, to_group);
    transfer(1, &ready, sizeof ready);
    transfer(0, &arrived, sizeof arrived);
    printf("%s %04x %04x status %d arrived %u\n", transport, own.pkey, peer.pkey, status, arrived);
  } else {
    struct ibv_wc wc;
    transfer(0, &ready, sizeof ready);
    arrived = ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
    transfer(1, &arrived, sizeof arrived);
    if (to_group) ibv_detach_mcast(qp, &gid, MLID);
  }
  if (ibv_destroy_qp(qp) || (srq && ibv_destroy_srq(srq))) die("destroy");
  struct ibv_wc left; /* a receive that was flushed */
  while (ibv_poll_cq(cq, 1, &left) == 1) continue;
}

int main(int argc, char** argv) {
  if (argc < 5) return 1;
  const int sends = argc > 5;
  const int first = atoi(argv[2]);
  const int last = atoi(argv[3]);
  meet(argv[4], sends ? argv[5] : NULL);
  open_device(memory, sizeof memory, 16);
  open_domain();
  for (char* transport = strtok(argv[1], ","); transport; transport = strtok(NULL, ",")) {
    for (int from = first; from <= last; ++from) {
      for (int to = first; to <= last; ++to)
        one_pair(transport, (uint16_t)(sends ? from : to), sends);
    }
  }
  return 0;
}
