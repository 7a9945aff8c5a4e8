// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A small verbs program, to be built and run with tools that look into programs (tools_test.py):
// two connected queue pairs of one process, each message checked. With "server" or "client PORT"
// they belong to two processes; with "fork" a child uses the objects that it inherited; "opens N"
// opens the device N times. Prints "good" at its end.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 128 * 1024, kRounds = 50 };

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_mr* mr;
  struct ibv_qp* qp;
  unsigned char* memory;
};
struct address {
  uint64_t memory;
  uint32_t qpn, rkey, lid;
  uint8_t gid[16];
  uint32_t is_global;  // without a LID: Ethernet
};

#define MUST(condition)                                                \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "%d: %s does not hold\n", __LINE__, #condition); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

static void make(struct end* e, struct address* address) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  MUST(list != NULL && list[0] != NULL);
  e->context = ibv_open_device(list[0]);
  MUST(e->context != NULL);
  ibv_free_device_list(list);
  e->memory = malloc(2 * kBytes);
  MUST(e->memory != NULL);
  memset(e->memory, 0, 2 * kBytes);
  e->pd = ibv_alloc_pd(e->context);
  e->cq = ibv_create_cq(e->context, 16, NULL, NULL, 0);
  MUST(e->pd != NULL && e->cq != NULL);
  e->mr = ibv_reg_mr(e->pd, e->memory, 2 * kBytes,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  struct ibv_qp_init_attr init = {
      .send_cq = e->cq,
      .recv_cq = e->cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
  e->qp = ibv_create_qp(e->pd, &init);
  MUST(e->mr != NULL && e->qp != NULL);
  struct ibv_port_attr port;
  MUST(ibv_query_port(e->context, 1, &port) == 0);
  memset(address, 0, sizeof *address);
  address->memory = (uint64_t)(uintptr_t)e->memory;
  address->qpn = e->qp->qp_num;
  address->rkey = e->mr->rkey;
  address->lid = port.lid;
  address->is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  union ibv_gid gid;
  MUST(ibv_query_gid(e->context, 1, 0, &gid) == 0);
  memcpy(address->gid, gid.raw, sizeof address->gid);
}

static void connect_to(struct end* e, const struct address* peer) {
  struct ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  MUST(ibv_modify_qp(e->qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer->qpn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = (uint16_t)peer->lid;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.is_global = (uint8_t)peer->is_global;
  memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof peer->gid);
  MUST(ibv_modify_qp(e->qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  MUST(ibv_modify_qp(e->qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void post_receive(struct end* e) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)(e->memory + kBytes), kBytes, e->mr->lkey};
  struct ibv_recv_wr wr, *bad;
  memset(&wr, 0, sizeof wr);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  MUST(ibv_post_recv(e->qp, &wr, &bad) == 0);
}

static void post(struct end* e, enum ibv_wr_opcode opcode, const struct address* peer) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)e->memory, kBytes, e->mr->lkey};
  struct ibv_send_wr wr, *bad;
  memset(&wr, 0, sizeof wr);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = peer->memory + kBytes;
  wr.wr.rdma.rkey = peer->rkey;
  MUST(ibv_post_send(e->qp, &wr, &bad) == 0);
}

static void take(struct end* e, int completions) {
  while (completions > 0) {
    struct ibv_wc wc;
    const int n = ibv_poll_cq(e->cq, 1, &wc);
    MUST(n >= 0);
    if (n == 1) MUST(wc.status == IBV_WC_SUCCESS);
    completions -= n;
  }
}

static void fill(unsigned char* bytes, int seed) {
  for (int i = 0; i < kBytes; ++i) bytes[i] = (unsigned char)(seed + i * 7);
}
static void check(const unsigned char* bytes, int seed) {
  for (int i = 0; i < kBytes; ++i) MUST(bytes[i] == (unsigned char)(seed + i * 7));
}

static void destroy(struct end* e) {
  MUST(ibv_destroy_qp(e->qp) == 0);
  MUST(ibv_dereg_mr(e->mr) == 0);
  MUST(ibv_destroy_cq(e->cq) == 0);
  MUST(ibv_dealloc_pd(e->pd) == 0);
  MUST(ibv_close_device(e->context) == 0);
  free(e->memory);
}

static void alone(void) {
  struct end left, right;
  struct address to_left, to_right;
  make(&left, &to_left);
  make(&right, &to_right);
  connect_to(&left, &to_right);
  connect_to(&right, &to_left);
  for (int round = 0; round < kRounds; ++round) {
    post_receive(&right);
    fill(left.memory, round);
    post(&left, IBV_WR_SEND, &to_right);
    take(&left, 1);
    take(&right, 1);
    check(right.memory + kBytes, round);
    fill(left.memory, round + 100);
    post(&left, IBV_WR_RDMA_WRITE, &to_right);
    take(&left, 1);
    check(right.memory + kBytes, round + 100);
  }
  destroy(&left);
  destroy(&right);
}

// Objects of the parent are not the child's: each verb fails.
static void in_child(struct end* e, const struct address* peer) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)e->memory, 8, e->mr->lkey};
  struct ibv_send_wr send, *bad_send = NULL;
  struct ibv_recv_wr receive, *bad_receive = NULL;
  struct ibv_wc wc;
  memset(&send, 0, sizeof send);
  memset(&receive, 0, sizeof receive);
  send.sg_list = receive.sg_list = &sge;
  send.num_sge = receive.num_sge = 1;
  send.opcode = IBV_WR_RDMA_WRITE;
  send.wr.rdma.remote_addr = peer->memory;
  send.wr.rdma.rkey = peer->rkey;
  MUST(ibv_post_send(e->qp, &send, &bad_send) == EIO && bad_send == &send);
  MUST(ibv_post_recv(e->qp, &receive, &bad_receive) == EIO && bad_receive == &receive);
  MUST(ibv_poll_cq(e->cq, 1, &wc) < 0);
  MUST(ibv_req_notify_cq(e->cq, 0) == EIO);
  struct end own;  // on the inherited device, valid in the child
  struct address mine;
  make(&own, &mine);
  connect_to(&own, &mine);
  post_receive(&own);
  fill(own.memory, 3);
  post(&own, IBV_WR_SEND, &mine);
  take(&own, 2);
  check(own.memory + kBytes, 3);
}

static void parent_and_child(void) {
  struct end left, right;
  struct address to_left, to_right;
  make(&left, &to_left);
  make(&right, &to_right);
  connect_to(&left, &to_right);
  connect_to(&right, &to_left);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    in_child(&left, &to_right);
    _exit(0);
  }
  int status = -1;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  post_receive(&right);
  fill(left.memory, 5);
  post(&left, IBV_WR_SEND, &to_right);
  take(&left, 1);
  take(&right, 1);
  check(right.memory + kBytes, 5);
  destroy(&left);
  destroy(&right);
}

// Opens one device `count` times.
static void many_opens(int count) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context** open = calloc((size_t)count, sizeof *open);
  MUST(list != NULL && list[0] != NULL && open != NULL);
  for (int i = 0; i < count; ++i) {
    open[i] = ibv_open_device(list[0]);
    if (open[i] == NULL) fprintf(stderr, "open %d: %s\n", i, strerror(errno));
    MUST(open[i] != NULL);
  }
  for (int i = 0; i < count; ++i) MUST(ibv_close_device(open[i]) == 0);
  ibv_free_device_list(list);
  free(open);
}

static void exchange(int stream, const struct address* mine, struct address* peers) {
  MUST(write(stream, mine, sizeof *mine) == (ssize_t)sizeof *mine);
  MUST(recv(stream, peers, sizeof *peers, MSG_WAITALL) == (ssize_t)sizeof *peers);
}

static int meet(int server, int port) {
  struct sockaddr_in at;
  memset(&at, 0, sizeof at);
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons((uint16_t)port);
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  if (!server) {
    MUST(connect(s, (struct sockaddr*)&at, sizeof at) == 0);
    return s;
  }
  socklen_t length = sizeof at;
  MUST(bind(s, (struct sockaddr*)&at, sizeof at) == 0 && listen(s, 1) == 0);
  MUST(getsockname(s, (struct sockaddr*)&at, &length) == 0);
  printf("port %d\n", ntohs(at.sin_port));
  fflush(stdout);
  const int stream = accept(s, NULL, NULL);
  close(s);
  return stream;
}

static void together(int server, int port) {
  struct end e;
  struct address mine, peers;
  const int stream = meet(server, port);
  MUST(stream >= 0);
  make(&e, &mine);
  exchange(stream, &mine, &peers);
  connect_to(&e, &peers);
  for (int round = 0; round < kRounds; ++round) {
    post_receive(&e);
    exchange(stream, &mine, &peers);  // both have a receive
    fill(e.memory, round);
    post(&e, IBV_WR_SEND, &peers);
    take(&e, 2);
    check(e.memory + kBytes, round);
  }
  exchange(stream, &mine, &peers);
  destroy(&e);
  close(stream);
}

int main(int argc, char** argv) {
  if (argc == 1) {
    alone();
  } else if (strcmp(argv[1], "fork") == 0) {
    parent_and_child();
  } else if (strcmp(argv[1], "opens") == 0) {
    many_opens(atoi(argv[2]));
  } else {
    together(strcmp(argv[1], "server") == 0, argc > 2 ? atoi(argv[2]) : 0);
  }
  puts("good");
  return 0;
}
