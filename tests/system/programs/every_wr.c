// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each function of the extended interface to post (ibv_wr_*), with what it does to memory or what
// arrives: over RC, UD and XRC. `every_wr flush`: with ibv_wr_flush(), which libibverbs has since
// rdma-core 45; the headers need not have it.
#include "rules.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum { kBytes = 4096, kQkey = 0x11 };
// Names of rdma-core 45.
enum { kWithFlush = 1 << 11, kAccessFlushGlobal = 1 << 8, kAccessFlushPersistent = 1 << 9, kFlushGlobal = 1, kFlushRange = 0,
       kFlushRegion = 1, kWcFlush = 8 };
static const uint64_t kCapFlushGlobal = 1ull << 38, kCapFlushPersistent = 1ull << 39;

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq *sent, *received;
static struct ibv_mr *from, *to;
static unsigned char *source, *target;
static uint16_t lid;
static union ibv_gid gid;

static struct ibv_ah_attr way(void) {
  struct ibv_ah_attr attr = {.dlid = lid, .port_num = 1};
  if (lid == 0) {  // Ethernet
    attr.is_global = 1;
    attr.grh.dgid = gid;
    attr.grh.hop_limit = 1;
  }
  return attr;
}

static struct ibv_qp* make(enum ibv_qp_type type, uint64_t operations, struct ibv_xrcd* xrcd) {
  struct ibv_qp_init_attr_ex attr = {.send_cq = sent, .recv_cq = received, .cap = {16, 16, 2, 1, 64}, .qp_type = type,
                                     .sq_sig_all = 1, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
  if (operations != 0) attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = operations;
  if (type == IBV_QPT_XRC_RECV) {
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd;
  }
  return ibv_create_qp_ex(context, &attr);
}

static void connect_to(struct ibv_qp* qp, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQkey,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                                kAccessFlushGlobal};
  const int datagram = qp->qp_type == IBV_QPT_UD;
  const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  NEED(ibv_modify_qp(qp, &attr, init | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = attr.max_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr = way();
  NEED(ibv_modify_qp(qp, &attr, datagram ? IBV_QP_STATE : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  NEED(ibv_modify_qp(qp, &attr, datagram ? IBV_QP_STATE | IBV_QP_SQ_PSN : IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void fill(void) {
  for (int i = 0; i < kBytes; ++i) source[i] = (unsigned char)(i * 7 + 1);
  memset(target, 0, kBytes);
}

static void receive_into(struct ibv_qp* qp, struct ibv_srq* srq, uint32_t bytes) {
  struct ibv_sge room = {(uintptr_t)target, bytes, to->lkey};
  struct ibv_recv_wr wr = {.wr_id = 99, .sg_list = &room, .num_sge = 1}, *bad;
  NEED((srq != NULL ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)) == 0);
}

static struct ibv_wc ends(enum ibv_wc_opcode opcode, uint64_t wr_id) {
  const struct ibv_wc wc = next_completion(sent);
  RULE(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode && wc.wr_id == wr_id, "%s, opcode %d, wr_id %lu",
       ibv_wc_status_str(wc.status), wc.opcode, (unsigned long)wc.wr_id);
  return wc;
}
static struct ibv_wc arrives(enum ibv_wc_opcode opcode) {
  const struct ibv_wc wc = next_completion(received);
  RULE(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode, "%s, opcode %d", ibv_wc_status_str(wc.status), wc.opcode);
  return wc;
}

static struct ibv_qp_ex* start(struct ibv_qp* qp, uint64_t wr_id) {
  struct ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
  NEED(ex != NULL);
  fill();
  ibv_wr_start(ex);
  ex->wr_id = wr_id;
  ex->wr_flags = 0;
  return ex;
}
#define COMPLETE(ex) RULE(ibv_wr_complete(ex) == 0, "%s", strerror(errno))

static void sends(struct ibv_qp* a, struct ibv_qp* b) {
  receive_into(b, NULL, kBytes);
  struct ibv_qp_ex* ex = start(a, 1);
  ibv_wr_send(ex);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 100);
  COMPLETE(ex);
  ends(IBV_WC_SEND, 1);
  RULE(arrives(IBV_WC_RECV).byte_len == 100 && memcmp(source, target, 100) == 0, "wr_send");

  receive_into(b, NULL, kBytes);
  ex = start(a, 2);
  ibv_wr_send_imm(ex, htobe32(0xabcd));
  struct ibv_sge pieces[2] = {{(uintptr_t)source, 10, from->lkey}, {(uintptr_t)source + 50, 20, from->lkey}};
  ibv_wr_set_sge_list(ex, 2, pieces);
  COMPLETE(ex);
  ends(IBV_WC_SEND, 2);
  const struct ibv_wc wc = arrives(IBV_WC_RECV);
  RULE(wc.byte_len == 30 && be32toh(wc.imm_data) == 0xabcd, "wr_send_imm, wr_set_sge_list");
  RULE(memcmp(target, source, 10) == 0 && memcmp(target + 10, source + 50, 20) == 0, "wr_set_sge_list");

  receive_into(b, NULL, kBytes);
  ex = start(a, 3);
  ibv_wr_send(ex);
  char text[] = "inline";
  ibv_wr_set_inline_data(ex, text, sizeof text);
  COMPLETE(ex);
  ends(IBV_WC_SEND, 3);
  RULE(arrives(IBV_WC_RECV).byte_len == sizeof text && strcmp((char*)target, text) == 0, "wr_set_inline_data");

  receive_into(b, NULL, kBytes);
  ex = start(a, 4);
  ibv_wr_send(ex);
  struct ibv_data_buf parts[2] = {{"two ", 4}, {"parts", 6}};
  ibv_wr_set_inline_data_list(ex, 2, parts);
  COMPLETE(ex);
  ends(IBV_WC_SEND, 4);
  RULE(arrives(IBV_WC_RECV).byte_len == 10 && strcmp((char*)target, "two parts") == 0, "wr_set_inline_data_list");
}

static void one_sided(struct ibv_qp* a, struct ibv_qp* b) {
  const uint64_t there = (uintptr_t)target;
  struct ibv_qp_ex* ex = start(a, 5);
  ibv_wr_rdma_write(ex, to->rkey, there);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, kBytes);
  COMPLETE(ex);
  ends(IBV_WC_RDMA_WRITE, 5);
  RULE(memcmp(source, target, kBytes) == 0, "wr_rdma_write");

  receive_into(b, NULL, 0);
  ex = start(a, 6);
  ibv_wr_rdma_write_imm(ex, to->rkey, there, htobe32(77));
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 8);
  COMPLETE(ex);
  ends(IBV_WC_RDMA_WRITE, 6);
  RULE(be32toh(arrives(IBV_WC_RECV_RDMA_WITH_IMM).imm_data) == 77 && memcmp(source, target, 8) == 0, "wr_rdma_write_imm");

  ex = start(a, 7);
  memset(target, 9, 64);
  ibv_wr_rdma_read(ex, to->rkey, there);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 64);
  COMPLETE(ex);
  ends(IBV_WC_RDMA_READ, 7);
  RULE(source[0] == 9 && source[63] == 9 && source[64] != 9, "wr_rdma_read");

  uint64_t* const word = (uint64_t*)(void*)target;
  uint64_t* const result = (uint64_t*)(void*)source;
  ex = start(a, 8);
  *word = 5;
  ibv_wr_atomic_cmp_swp(ex, to->rkey, there, 5, 6);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 8);
  COMPLETE(ex);
  ends(IBV_WC_COMP_SWAP, 8);
  RULE(*word == 6 && *result == 5, "wr_atomic_cmp_swp");

  ex = start(a, 9);
  *word = 5;
  ibv_wr_atomic_fetch_add(ex, to->rkey, there, 37);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 8);
  COMPLETE(ex);
  ends(IBV_WC_FETCH_ADD, 9);
  RULE(*word == 42 && *result == 5, "wr_atomic_fetch_add");

  ex = start(a, 10);
  ibv_wr_atomic_write(ex, to->rkey, there, "8 bytes");
  COMPLETE(ex);
  ends(IBV_WC_ATOMIC_WRITE, 10);
  RULE(strcmp((char*)target, "8 bytes") == 0, "wr_atomic_write");

  ex = start(a, 11);
  ibv_wr_rdma_write(ex, to->rkey, there);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 8);
  ibv_wr_abort(ex);
  RULE(target[0] == 0, "wr_abort");
}

static void windows(struct ibv_qp* a, struct ibv_qp* b) {
  struct ibv_mw* window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  NEED(window != NULL);
  const struct ibv_mw_bind_info info = {.mr = to, .addr = (uintptr_t)target, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  struct ibv_qp_ex* ex = start(b, 12);
  uint32_t key = ibv_inc_rkey(window->rkey);
  ibv_wr_bind_mw(ex, window, key, &info);
  COMPLETE(ex);
  ends(IBV_WC_BIND_MW, 12);
  ex = start(a, 13);
  ibv_wr_rdma_write(ex, key, (uintptr_t)target);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 64);
  COMPLETE(ex);
  ends(IBV_WC_RDMA_WRITE, 13);
  RULE(memcmp(source, target, 64) == 0, "wr_bind_mw");

  receive_into(b, NULL, kBytes);
  ex = start(a, 14);
  ibv_wr_send_inv(ex, key);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 8);
  COMPLETE(ex);
  ends(IBV_WC_SEND, 14);
  const struct ibv_wc wc = arrives(IBV_WC_RECV);
  RULE((wc.wc_flags & IBV_WC_WITH_INV) != 0 && wc.invalidated_rkey == key, "wr_send_inv");

  ex = start(b, 15);
  key = ibv_inc_rkey(key);
  ibv_wr_bind_mw(ex, window, key, &info);
  ex->wr_id = 16;
  ibv_wr_local_inv(ex, key);
  COMPLETE(ex);
  ends(IBV_WC_BIND_MW, 15);
  ends(IBV_WC_LOCAL_INV, 16);
  RULE(ibv_dealloc_mw(window) == 0, "%s", strerror(errno));
}

static void refused(struct ibv_qp* a) {
  struct ibv_qp_ex* ex = start(a, 17);
  ibv_wr_send_tso(ex, source, 16, 64);
  RULE(ibv_wr_complete(ex) == EOPNOTSUPP, "wr_send_tso");
  errno = 0;
  RULE(make(IBV_QPT_RC, IBV_QP_EX_WITH_TSO, NULL) == NULL && errno == EOPNOTSUPP, "%s", strerror(errno));
}

static void flush(struct ibv_qp* qp, uint64_t wr_id, uint64_t there, size_t bytes, uint8_t type, uint8_t level) {
  void (*wr_flush)(struct ibv_qp_ex*, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
  struct ibv_qp_ex* ex = start(qp, wr_id);
  memcpy(&wr_flush, (char*)ex + offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void*), sizeof wr_flush);
  ibv_wr_rdma_write(ex, to->rkey, (uintptr_t)target);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 8);
  ex->wr_id = wr_id;
  wr_flush(ex, to->rkey, there, bytes, type, level);
  COMPLETE(ex);
}

static uint64_t capabilities(void) {
  struct ibv_device_attr_ex attr;
  NEED(ibv_query_device_ex(context, NULL, &attr) == 0);
  return attr.device_cap_flags_ex;
}

// Registers, refuses and flushes; without `there_is` libibverbs has no such function.
static void flushes(struct ibv_qp* a, int there_is) {
  const uint64_t caps = capabilities();
  RULE((caps & kCapFlushPersistent) == 0 && ((caps & kCapFlushGlobal) != 0) == there_is, "%lx", (unsigned long)caps);
  errno = 0;
  RULE(ibv_reg_mr(pd, target, kBytes, kAccessFlushPersistent) == NULL && errno == EOPNOTSUPP, "%s", strerror(errno));
  if (!there_is) {
    RULE(make(IBV_QPT_RC, kWithFlush, NULL) == NULL && errno == EOPNOTSUPP, "%s", strerror(errno));
    return;
  }
  flush(a, 18, (uintptr_t)target + 8, kBytes - 8, kFlushGlobal, kFlushRange);
  ends(IBV_WC_RDMA_WRITE, 18);
  ends((enum ibv_wc_opcode)kWcFlush, 18);
  RULE(memcmp(source, target, 8) == 0, "the write before wr_flush");
  flush(a, 19, 0, 0, kFlushGlobal, kFlushRegion);
  ends(IBV_WC_RDMA_WRITE, 19);
  ends((enum ibv_wc_opcode)kWcFlush, 19);
  RULE(make(IBV_QPT_UC, kWithFlush, NULL) == NULL && errno == EOPNOTSUPP, "%s", strerror(errno));
}

static void datagrams(void) {
  struct ibv_qp* a = make(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, NULL);
  struct ibv_qp* b = make(IBV_QPT_UD, 0, NULL);
  NEED(a != NULL && b != NULL);
  connect_to(a, 0);
  connect_to(b, 0);
  struct ibv_ah_attr attr = way();
  struct ibv_ah* ah = ibv_create_ah(pd, &attr);
  NEED(ah != NULL);
  receive_into(b, NULL, kBytes);
  struct ibv_qp_ex* ex = start(a, 20);
  ibv_wr_send(ex);
  ibv_wr_set_ud_addr(ex, ah, b->qp_num, kQkey);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 32);
  COMPLETE(ex);
  ends(IBV_WC_SEND, 20);
  const struct ibv_wc wc = arrives(IBV_WC_RECV);
  RULE(wc.src_qp == a->qp_num && memcmp(source, target + 40, 32) == 0, "wr_set_ud_addr");
  RULE(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 && ibv_destroy_ah(ah) == 0, "%s", strerror(errno));
}

static void shared_receives(void) {
  struct ibv_xrcd_init_attr domain = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
  struct ibv_xrcd* xrcd = ibv_open_xrcd(context, &domain);
  NEED(xrcd != NULL);
  struct ibv_srq_init_attr_ex init = {.attr = {16, 1, 0}, .srq_type = IBV_SRQT_XRC, .xrcd = xrcd, .cq = received, .pd = pd,
                                      .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                                                   IBV_SRQ_INIT_ATTR_PD};
  struct ibv_srq* srq = ibv_create_srq_ex(context, &init);
  struct ibv_qp* a = make(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND, NULL);
  struct ibv_qp* b = make(IBV_QPT_XRC_RECV, 0, xrcd);
  uint32_t number = 0;
  NEED(srq != NULL && a != NULL && b != NULL && ibv_get_srq_num(srq, &number) == 0);
  connect_to(a, b->qp_num);
  connect_to(b, a->qp_num);
  receive_into(NULL, srq, kBytes);
  struct ibv_qp_ex* ex = start(a, 30);
  ibv_wr_send(ex);
  ibv_wr_set_xrc_srqn(ex, number);
  ibv_wr_set_sge(ex, from->lkey, (uintptr_t)source, 32);
  COMPLETE(ex);
  ends(IBV_WC_SEND, 30);
  arrives(IBV_WC_RECV);
  RULE(memcmp(source, target, 32) == 0, "wr_set_xrc_srqn");
  RULE(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 && ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(xrcd) == 0, "%s",
       strerror(errno));
}

static void open_device(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  NEED(list != NULL && list[0] != NULL);
  NEED((context = ibv_open_device(list[0])) != NULL);
  ibv_free_device_list(list);
  NEED((pd = ibv_alloc_pd(context)) != NULL);
  NEED((sent = ibv_create_cq(context, 64, NULL, NULL, 0)) != NULL);
  NEED((received = ibv_create_cq(context, 64, NULL, NULL, 0)) != NULL);
  source = aligned_alloc(4096, kBytes);
  target = aligned_alloc(4096, kBytes);
  NEED(source != NULL && target != NULL);
  const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |
                  kAccessFlushGlobal;
  NEED((from = ibv_reg_mr(pd, source, kBytes, IBV_ACCESS_LOCAL_WRITE)) != NULL);
  NEED((to = ibv_reg_mr(pd, target, kBytes, all)) != NULL);
  struct ibv_port_attr port;
  NEED(ibv_query_port(context, 1, &port) == 0 && ibv_query_gid(context, 1, 0, &gid) == 0);
  lid = port.lid;
}

int main(int count, char** words) {
  const int has_flush = count > 1 && strcmp(words[1], "flush") == 0;
  open_device();
  const uint64_t all = (has_flush ? kWithFlush : 0) | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
                       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  struct ibv_qp* a = make(IBV_QPT_RC, all, NULL);
  struct ibv_qp* b = make(IBV_QPT_RC, all, NULL);
  NEED(a != NULL && b != NULL);
  connect_to(a, b->qp_num);
  connect_to(b, a->qp_num);
  sends(a, b);
  one_sided(a, b);
  windows(a, b);
  refused(a);
  flushes(a, has_flush);
  datagrams();
  shared_receives();
  printf("%d rules broken\n", broken);
  return broken != 0;
}
