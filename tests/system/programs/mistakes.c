// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One mistake of beginners, by its name: mistakes NAME. mistakes_test.py has the line that `softib
// trace` must print for each. Both ends of a connection are in this process. Exits with 0 once the
// mistake was made, 2 if there is none of that name, 1 after any other failure.
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context* ctx;
static struct ibv_pd *pd, *other_pd;
static struct ibv_cq* cq;
static struct ibv_srq* srq;
static struct ibv_port_attr port;
static struct ibv_mr *mr, *other_mr, *plain_mr;
static char buffer[8192];
static struct ibv_qp *a, *b;
static enum ibv_qp_type type = IBV_QPT_RC;
static struct ibv_qp_init_attr init;
static int peer_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
static int depth = 1, rnr_retry = 1, pkey_index = 0;
static uint16_t dlid;

static void* need(void* made, const char* what) {
  if (made) return made;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static struct ibv_qp* make(void) {
  init.send_cq = init.recv_cq = cq;
  init.qp_type = type;
  init.cap.max_send_wr = init.cap.max_recv_wr = 8;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = 16;
  struct ibv_qp_init_attr asked = init;
  struct ibv_qp* qp = need(ibv_create_qp(pd, &asked), "ibv_create_qp");
  init.cap = asked.cap;
  return qp;
}

static int to_init(struct ibv_qp* qp, int access) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access, .qkey = 0x11,
                             .pkey_index = pkey_index};
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  return ibv_modify_qp(qp, &attr, mask | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int to_rtr(struct ibv_qp* qp, uint32_t dest) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = dest,
                             .max_dest_rd_atomic = depth, .min_rnr_timer = 1,
                             .ah_attr = {.dlid = dlid, .port_num = 1}};
  if (type == IBV_QPT_UD) return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  return ibv_modify_qp(qp, &attr, mask | (type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
}

static int to_rts(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1, .rnr_retry = rnr_retry,
                             .max_rd_atomic = depth};
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_RC) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(qp, &attr, mask);
}

static void pair(void) {
  a = make();
  b = make();
  if (to_init(a, 0) || to_init(b, peer_access) || to_rtr(a, b->qp_num) || to_rtr(b, a->qp_num) || to_rts(a) ||
      to_rts(b)) {
    perror("connect");
    exit(1);
  }
}

static struct ibv_sge sge_of(struct ibv_mr* of, size_t length) {
  struct ibv_sge sge = {(uintptr_t)buffer, length, of->lkey};
  return sge;
}

static struct ibv_send_wr wr_of(enum ibv_wr_opcode opcode, struct ibv_sge* sge) {
  struct ibv_send_wr wr = {.wr_id = 7, .sg_list = sge, .num_sge = 1, .opcode = opcode,
                           .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = (uintptr_t)buffer + 4096;
  wr.wr.rdma.rkey = mr->rkey;
  return wr;
}

static int send_wr(struct ibv_send_wr wr) {
  struct ibv_send_wr* bad;
  return ibv_post_send(a, &wr, &bad);
}

static int receive(struct ibv_qp* qp, struct ibv_sge* sge, int count) {
  struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = sge, .num_sge = count}, *bad;
  return ibv_post_recv(qp, &wr, &bad);
}

// Polls the first completion of a send; has no limit but that of the test.
static void wait_for_completion(void) {
  struct ibv_wc wc;
  do {
    while (ibv_poll_cq(cq, 1, &wc) == 0) {}
  } while (wc.wr_id != 7);
}

static void done(struct ibv_send_wr wr) {
  if (send_wr(wr)) perror("ibv_post_send"), exit(1);
  wait_for_completion();
}

#define IS(text) (!strcmp(name, text))

static int posting(const char* name) {
  struct ibv_sge sge = sge_of(mr, 64), two[64];
  for (int i = 0; i < 64; ++i) two[i] = sge;
  struct ibv_send_wr wr = wr_of(IBV_WR_SEND, &sge);
  if (IS("send-in-reset")) return a = make(), send_wr(wr), 1;
  if (IS("send-in-init")) return a = make(), to_init(a, 0), send_wr(wr), 1;
  if (IS("send-in-rtr")) return a = make(), to_init(a, 0), to_rtr(a, 5), send_wr(wr), 1;
  if (IS("recv-in-reset")) return a = make(), receive(a, &sge, 1), 1;
  if (IS("recv-sges")) return pair(), receive(a, two, init.cap.max_recv_sge + 1), 1;
  if (IS("recv-queue-full")) {
    pair();
    while (receive(a, &sge, 1) == 0) {}
    return 1;
  }
  if (IS("recv-on-srq")) return init.srq = srq, pair(), receive(a, &sge, 1), 1;
  if (IS("send-sges")) return pair(), wr.sg_list = two, wr.num_sge = init.cap.max_send_sge + 1, send_wr(wr), 1;
  if (IS("send-inline")) {
    pair();
    sge.length = init.cap.max_inline_data + 1;
    wr.send_flags |= IBV_SEND_INLINE;
    return send_wr(wr), 1;
  }
  if (IS("send-queue-full")) {
    rnr_retry = 7;
    pair();
    while (send_wr(wr) == 0) {}
    return 1;
  }
  if (IS("ud-without-ah")) return type = IBV_QPT_UD, wr.wr.ud.ah = NULL, pair(), send_wr(wr), 1;
  if (IS("ud-write")) return type = IBV_QPT_UD, wr.opcode = IBV_WR_RDMA_WRITE, pair(), send_wr(wr), 1;
  if (IS("uc-read")) return type = IBV_QPT_UC, wr.opcode = IBV_WR_RDMA_READ, pair(), send_wr(wr), 1;
  return 0;
}

static int completing(const char* name) {
  struct ibv_sge sge = sge_of(mr, 64), small = sge_of(mr, 16), stray = sge_of(mr, 64);
  stray.lkey = 0x12345;
  struct ibv_send_wr wr = wr_of(IBV_WR_SEND, &sge), write = wr_of(IBV_WR_RDMA_WRITE, &sge),
                     read = wr_of(IBV_WR_RDMA_READ, &sge), add = wr_of(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
  add.wr.atomic.remote_addr = (uintptr_t)buffer + 4097;
  add.wr.atomic.rkey = mr->rkey;
  if (IS("dereg-while-waiting")) {
    rnr_retry = 7;
    return pair(), send_wr(wr), ibv_dereg_mr(mr), wait_for_completion(), 1;
  }
  if (IS("no-receive")) return pair(), done(wr), 1;
  if (IS("receive-too-small")) return pair(), receive(b, &small, 1), done(wr), 1;
  if (IS("receive-bad-lkey")) return pair(), receive(b, &stray, 1), done(wr), 1;
  if (IS("lkey-unknown")) return pair(), sge.lkey = 0x12345, done(write), 1;
  if (IS("lkey-other-pd")) return pair(), sge.lkey = other_mr->lkey, done(write), 1;
  if (IS("lkey-no-local-write")) return pair(), sge.lkey = plain_mr->lkey, done(read), 1;
  if (IS("sge-out-of-range")) return pair(), sge.length = sizeof buffer + 1, done(write), 1;
  if (IS("rkey-unknown")) return pair(), write.wr.rdma.rkey = 0x12345, done(write), 1;
  if (IS("rkey-byte-order")) return pair(), write.wr.rdma.rkey = __builtin_bswap32(mr->rkey), done(write), 1;
  if (IS("rkey-other-pd")) return pair(), write.wr.rdma.rkey = other_mr->rkey, done(write), 1;
  if (IS("rkey-no-access")) return pair(), write.wr.rdma.rkey = plain_mr->rkey, done(write), 1;
  if (IS("rkey-out-of-range")) return pair(), write.wr.rdma.remote_addr += 8192, done(write), 1;
  if (IS("region-gone")) return pair(), write.wr.rdma.rkey = other_mr->rkey, ibv_dereg_mr(other_mr), done(write), 1;
  if (IS("qp-access")) return peer_access = 0, pair(), done(write), 1;
  if (IS("atomic-alignment")) return pair(), sge.length = 8, done(add), 1;
  if (IS("read-depth")) return depth = 0, pair(), done(read), 1;
  if (IS("peer-not-ready")) {
    a = make(), b = make();
    return to_init(a, 0), to_init(b, 0), to_rtr(a, b->qp_num), to_rts(a), done(wr), 1;
  }
  if (IS("peer-lid")) return dlid = 77, pair(), done(wr), 1;
  if (IS("peer-pkey")) {
    b = make(), to_init(b, 0);
    pkey_index = 1;
    a = make(), to_init(a, 0);
    return to_rtr(b, a->qp_num), to_rtr(a, b->qp_num), to_rts(b), to_rts(a), done(wr), 1;
  }
  if (IS("peer-unknown")) return a = make(), to_init(a, 0), to_rtr(a, 0x7ff), to_rts(a), done(wr), 1;
  if (IS("cq-overrun")) {
    cq = need(ibv_create_cq(ctx, 1, NULL, NULL, 0), "ibv_create_cq");
    pair();
    for (int i = 0; i < 8; ++i) send_wr(write);
    return 1;
  }
  return 0;
}

static struct ibv_ah* address(void) {
  struct ibv_ah_attr attr = {.dlid = dlid, .port_num = 1};
  return need(ibv_create_ah(pd, &attr), "ibv_create_ah");
}

// Messages that are dropped without an error.
static int dropping(const char* name) {
  struct ibv_sge sge = sge_of(mr, 64), roomy = sge_of(mr, 104), stray = sge_of(mr, 104);
  struct ibv_send_wr wr = wr_of(IBV_WR_SEND, &sge), write = wr_of(IBV_WR_RDMA_WRITE, &sge);
  stray.lkey = 0x12345;
  if (IS("uc-rkey")) return type = IBV_QPT_UC, pair(), write.wr.rdma.rkey = 0x12345, done(write), 1;
  if (IS("uc-no-receive")) return type = IBV_QPT_UC, pair(), done(wr), 1;
  if (IS("uc-not-ready")) {
    type = IBV_QPT_UC;
    a = make(), b = make();
    return to_init(a, 0), to_init(b, 0), to_rtr(a, b->qp_num), to_rts(a), done(wr), 1;
  }
  if (strncmp(name, "ud-", 3)) return 0;
  type = IBV_QPT_UD;
  if (IS("ud-pkey")) {
    b = make(), to_init(b, 0), to_rtr(b, 0), receive(b, &roomy, 1);
    pkey_index = 1;
    a = make(), to_init(a, 0), to_rtr(a, 0), to_rts(a);
  } else if (IS("ud-to-rc")) {
    a = make(), to_init(a, 0), to_rtr(a, 0), to_rts(a);
    type = IBV_QPT_RC;
    b = make();
  } else if (IS("ud-not-ready")) {
    a = make(), to_init(a, 0), to_rtr(a, 0), to_rts(a);
    b = make(), to_init(b, 0);
  } else {
    pair();
  }
  wr.wr.ud.remote_qpn = b->qp_num;
  wr.wr.ud.remote_qkey = 0x11;
  if (IS("ud-lid")) dlid = 77;
  wr.wr.ud.ah = address();
  if (IS("ud-pkey") || IS("ud-to-rc") || IS("ud-not-ready") || IS("ud-lid") || IS("ud-no-receive")) {
    return done(wr), 1;
  }
  if (IS("ud-qkey")) return receive(b, &roomy, 1), wr.wr.ud.remote_qkey = 0x22, done(wr), 1;
  if (IS("ud-qpn")) return wr.wr.ud.remote_qpn = 0x7ff, done(wr), 1;
  if (IS("ud-no-grh")) return receive(b, &sge, 1), done(wr), 1;
  if (IS("ud-bad-receive")) return receive(b, &stray, 1), done(wr), 1;
  if (IS("ud-too-few-receives")) return receive(b, &roomy, 1), done(wr), done(wr), 1;
  if (IS("ud-repeated")) {
    wr.wr.ud.remote_qkey = 0x22;
    for (int i = 0; i < 20; ++i) done(wr);
    return 1;
  }
  return 0;
}

// Shared receive queues and ibv_wr_start .. ibv_wr_complete.
static int building(const char* name) {
  struct ibv_sge sge = sge_of(mr, 64), two[64];
  for (int i = 0; i < 64; ++i) two[i] = sge;
  struct ibv_recv_wr many = {.wr_id = 9, .sg_list = two, .num_sge = 64}, one = {.wr_id = 9, .sg_list = two, .num_sge = 1},
                     *bad;
  if (IS("srq-sges")) return ibv_post_srq_recv(srq, &many, &bad), 1;
  if (IS("srq-full")) {
    while (ibv_post_srq_recv(srq, &one, &bad) == 0) {}
    return 1;
  }
  if (strncmp(name, "ex-", 3)) return 0;
  if (IS("ex-opcode")) type = IBV_QPT_UC;
  if (IS("ex-without-ah")) type = IBV_QPT_UD;
  struct ibv_qp_init_attr_ex asked = {.send_cq = cq, .recv_cq = cq, .qp_type = type, .pd = pd,
                                      .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
                                              .max_inline_data = 16},
                                      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                      .send_ops_flags = IBV_QP_EX_WITH_SEND};
  a = need(ibv_create_qp_ex(ctx, &asked), "ibv_create_qp_ex");
  b = make();
  struct ibv_qp_ex* ex = need(ibv_qp_to_qp_ex(a), "ibv_qp_to_qp_ex");
  if (to_init(a, 0) || to_init(b, peer_access) || to_rtr(b, a->qp_num)) return 0;
  rnr_retry = 7;
  if (!IS("ex-state")) to_rtr(a, b->qp_num), to_rts(a);
  const int length = IS("ex-too-long") ? 100000 : 5;
  for (int batch = 0; batch < (IS("ex-no-room") ? 100000 : 1); ++batch) {
    ibv_wr_start(ex);
    ex->wr_id = 7;
    ex->wr_flags = IBV_SEND_SIGNALED;
    if (IS("ex-no-request")) ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)buffer, 8);
    for (int i = 0; i < length; ++i) {
      if (IS("ex-opcode")) ibv_wr_rdma_read(ex, mr->rkey, (uintptr_t)buffer);
      else ibv_wr_send(ex);
      if (IS("ex-sges")) ibv_wr_set_sge_list(ex, 64, two);
      else if (IS("ex-inline")) ibv_wr_set_inline_data(ex, buffer, 4096);
      else ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)buffer, 64);
    }
    if (ibv_wr_complete(ex)) return 1;
  }
  return 0;
}

static int controlling(const char* name) {
  struct ibv_qp_init_attr asked = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                   .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
  if (IS("qp-too-long")) return asked.cap.max_send_wr = 10000000, ibv_create_qp(pd, &asked), 1;
  if (IS("qp-too-many-sges")) return asked.cap.max_send_sge = 1000, ibv_create_qp(pd, &asked), 1;
  if (IS("qp-inline")) return asked.cap.max_inline_data = 1000000, ibv_create_qp(pd, &asked), 1;
  if (IS("cq-too-long")) return ibv_create_cq(ctx, 100000000, NULL, NULL, 0), 1;
  if (IS("reset-to-rts")) return a = make(), ibv_modify_qp(a, &attr, IBV_QP_STATE), 1;
  if (IS("init-without-port")) {
    attr.qp_state = IBV_QPS_INIT;
    return a = make(), ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), 1;
  }
  if (IS("init-wrong-port") || IS("init-wrong-pkey")) {
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = IS("init-wrong-port") ? 9 : 1;
    attr.pkey_index = IS("init-wrong-pkey") ? 999 : 0;
    a = make();
    return ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 1;
  }
  if (IS("rtr-incomplete")) {
    attr.qp_state = IBV_QPS_RTR;
    return a = make(), to_init(a, 0), ibv_modify_qp(a, &attr, IBV_QP_STATE), 1;
  }
  if (IS("rts-before-rtr")) return a = make(), to_init(a, 0), to_rts(a), 1;
  if (IS("pd-in-use")) return ibv_dealloc_pd(pd), 1;
  if (IS("cq-in-use")) return a = make(), ibv_destroy_cq(cq), 1;
  if (IS("srq-in-use")) return init.srq = srq, a = make(), ibv_destroy_srq(srq), 1;
  if (IS("ah-wrong-port")) {
    struct ibv_ah_attr ah = {.dlid = port.lid, .port_num = 9};
    return ibv_create_ah(pd, &ah), 1;
  }
  if (IS("multicast-rc")) {
    union ibv_gid gid = {.raw = {0xff}};
    return a = make(), ibv_attach_mcast(a, &gid, 0xc001), 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  struct ibv_device** list = need(ibv_get_device_list(NULL), "ibv_get_device_list");
  ctx = need(list[0] ? ibv_open_device(list[0]) : NULL, "ibv_open_device");
  pd = need(ibv_alloc_pd(ctx), "ibv_alloc_pd");
  other_pd = need(ibv_alloc_pd(ctx), "ibv_alloc_pd");
  cq = need(ibv_create_cq(ctx, 64, NULL, NULL, 0), "ibv_create_cq");
  struct ibv_srq_init_attr wanted = {.attr = {.max_wr = 8, .max_sge = 1}};
  srq = need(ibv_create_srq(pd, &wanted), "ibv_create_srq");
  const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  mr = need(ibv_reg_mr(pd, buffer, sizeof buffer, all), "ibv_reg_mr");
  other_mr = need(ibv_reg_mr(other_pd, buffer, sizeof buffer, all), "ibv_reg_mr");
  plain_mr = need(ibv_reg_mr(pd, buffer, sizeof buffer, 0), "ibv_reg_mr");
  if (argc != 2 || ibv_query_port(ctx, 1, &port)) return 1;
  dlid = port.lid;
  const char* name = argv[1];
  return posting(name) || completing(name) || dropping(name) || building(name) || controlling(name) ? 0 : 2;
}
