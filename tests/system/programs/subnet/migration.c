/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Several LIDs of a port, and automatic path migration between them, over libibverbs.
 *
 * migration bits PORT [HOST]            datagrams from each and to each of two LIDs of both ports
 * migration cable|hand ROUNDS PORT [HOST]
 *
 * Without HOST it receives. In the second form messages go over RC without end, until the path has
 * migrated ROUNDS times: by itself, or by the hand of the sender. Each path is the alternate path
 * of the other one. Both say when they are armed, and where they are after each migration; the
 * receiver looks at the number that each message has. */
#include "two_nodes.h"

#include <fcntl.h>

enum { GRH = 40, QKEY = 0x1234, PSN = 9, DEPTH = 64, AFTERWARDS = 2000 };

struct side {
  uint32_t qpn, lid;
};
struct message {
  uint64_t number, is_last;
};
static struct message memory[DEPTH + 4]; /* one for each place in a queue, and room for a GRH */
static struct ibv_qp* qp;
static struct side peer;
static unsigned bits; /* of the path in use; the alternate path has the other ones */

static void new_qp(enum ibv_qp_type type) {
  struct ibv_qp_init_attr init = {
      .send_cq = cq, .recv_cq = cq, .qp_type = type, .sq_sig_all = 1};
  init.cap.max_send_wr = init.cap.max_recv_wr = DEPTH;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  if (!(qp = ibv_create_qp(pd, &init))) die("ibv_create_qp");
  struct side own = {qp->qp_num, lid};
  transfer(1, &own, sizeof own);
  transfer(0, &peer, sizeof peer);
}

static struct ibv_ah_attr path(unsigned source, unsigned to) {
  return (struct ibv_ah_attr){.dlid = (uint16_t)(peer.lid + to),
                              .src_path_bits = (uint8_t)source,
                              .port_num = PORT};
}

static void modify(struct ibv_qp_attr* a, int mask, const char* what) {
  if (ibv_modify_qp(qp, a, mask)) die(what);
}

static void post_receive(uint64_t place, uint32_t size) {
  struct ibv_sge sge = {(uintptr_t)&memory[place], size, mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  if (ibv_post_recv(qp, &wr, &bad)) die("ibv_post_recv");
}

static void post_send(uint64_t place, struct ibv_ah* ah) {
  struct ibv_sge sge = {(uintptr_t)&memory[place], sizeof memory[0], mr->lkey};
  struct ibv_send_wr wr = {
      .wr_id = place, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  struct ibv_send_wr* bad = NULL;
  wr.wr.ud.ah = ah;
  if (ah) wr.wr.ud.remote_qpn = peer.qpn;
  if (ah) wr.wr.ud.remote_qkey = QKEY;
  if (ibv_post_send(qp, &wr, &bad)) die("ibv_post_send");
}

static struct ibv_wc succeeded(void) {
  const struct ibv_wc wc = completion();
  if (wc.status != IBV_WC_SUCCESS) {
    printf("a message ended with %s\n", ibv_wc_status_str(wc.status));
    exit(1);
  }
  return wc;
}

/* --- datagrams --- */

static void datagrams(int sends) {
  new_qp(IBV_QPT_UD);
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = QKEY};
  modify(&a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, "INIT");
  a.qp_state = IBV_QPS_RTR;
  modify(&a, IBV_QP_STATE, "RTR");
  a.qp_state = IBV_QPS_RTS;
  modify(&a, IBV_QP_STATE | IBV_QP_SQ_PSN, "RTS");
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned source = i / 2;
    const unsigned to = i % 2;
    if (!sends) post_receive(0, GRH + sizeof memory[0]);
    meet_again();
    if (sends) {
      struct ibv_ah_attr attr = path(source, to);
      struct ibv_ah* ah = ibv_create_ah(pd, &attr);
      if (!ah) die("ibv_create_ah");
      post_send(0, ah);
      succeeded();
      ibv_destroy_ah(ah);
    } else {
      const struct ibv_wc wc = succeeded();
      printf("from %u to %u: source LID %+d, path bits %u\n", source, to,
             (int)wc.slid - (int)peer.lid, wc.dlid_path_bits);
    }
  }
}

/* --- a connection --- */

static void arm(void) {
  struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_REARM, .alt_port_num = PORT, .alt_timeout = 14};
  a.alt_ah_attr = path(!bits, !bits);
  modify(&a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, "REARM");
}

static void connect_to_peer(void) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
  modify(&a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .rq_psn = PSN};
  a.dest_qp_num = peer.qpn;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 1;
  a.ah_attr = path(0, 0);
  modify(&a,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "RTR");
  /* Without a retry: a request that tries the broken path would fail. */
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = PSN, .timeout = 8, .rnr_retry = 7};
  a.max_rd_atomic = 1;
  modify(&a,
         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTS");
}

static struct ibv_qp_attr state(void) {
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr init;
  if (ibv_query_qp(qp, &a, IBV_QP_PATH_MIG_STATE | IBV_QP_AV, &init)) die("ibv_query_qp");
  return a;
}

/* Returns 1 if the path has migrated. */
static int has_migrated(void) {
  struct ibv_async_event event;
  while (ibv_get_async_event(context, &event) == 0) {
    const int is_it = event.event_type == IBV_EVENT_PATH_MIG;
    ibv_ack_async_event(&event);
    if (is_it) return 1;
  }
  return 0;
}

static void arm_again(int* rounds) {
  const struct ibv_qp_attr now = state();
  bits = !bits;
  printf("migrated to LID %+d, path bits %u, state %d\n",
         (int)now.ah_attr.dlid - (int)peer.lid, now.ah_attr.src_path_bits, now.path_mig_state);
  fflush(stdout);
  if (--*rounds > 0) arm();
}

static void send_all(int rounds, int by_hand) {
  uint64_t number = 0;
  uint64_t left = DEPTH;
  uint64_t last = UINT64_MAX;
  int is_armed = 0;
  for (uint64_t done = 0; done < last;) {
    while (left != 0 && number < last) {
      const uint64_t place = number % DEPTH;
      memory[place] = (struct message){number, number + 1 == last};
      post_send(place, NULL);
      ++number;
      --left;
    }
    succeeded();
    ++left;
    if (++done % DEPTH != 0) continue;
    if (!is_armed && rounds > 0 && state().path_mig_state == IBV_MIG_ARMED) {
      is_armed = 1;
      printf("armed\n");
      fflush(stdout);
      struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_MIGRATED};
      if (by_hand) modify(&a, IBV_QP_PATH_MIG_STATE, "MIGRATED");
    }
    if (!has_migrated()) continue;
    is_armed = 0;
    arm_again(&rounds);
    if (rounds == 0) last = number + AFTERWARDS;
  }
  printf("sent %llu\n", (unsigned long long)number);
}

static void receive_all(int rounds) {
  for (uint64_t number = 0, is_last = 0; !is_last || rounds > 0;) {
    if (has_migrated()) arm_again(&rounds);
    if (is_last) continue; /* its event may come later */
    const struct ibv_wc wc = succeeded();
    const struct message got = memory[wc.wr_id];
    if (got.number != number) {
      printf("message %llu came as number %llu\n", (unsigned long long)got.number,
             (unsigned long long)number);
      exit(1);
    }
    ++number;
    is_last = got.is_last;
    if (is_last) printf("received %llu\n", (unsigned long long)number);
    post_receive(wc.wr_id, sizeof memory[0]);
  }
}

static void migrations(int sends, int rounds, int by_hand) {
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK)) die("O_NONBLOCK");
  new_qp(IBV_QPT_RC);
  connect_to_peer();
  if (!sends) {
    for (uint64_t place = 0; place < DEPTH; ++place) post_receive(place, sizeof memory[0]);
  }
  meet_again();
  arm();
  meet_again();
  if (sends) send_all(rounds, by_hand);
  if (!sends) receive_all(rounds);
  meet_again();
}

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  const int is_bits = !strcmp(argv[1], "bits");
  char** place = argv + (is_bits ? 2 : 3);
  const int sends = place[0] && place[1];
  meet(place[0], sends ? place[1] : NULL);
  open_device(memory, sizeof memory, 4 * DEPTH);
  if (is_bits) datagrams(sends);
  if (!is_bits) migrations(sends, atoi(argv[2]), !strcmp(argv[1], "hand"));
  return 0;
}
