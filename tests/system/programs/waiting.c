// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One mistake after which a program waits without an end, by its name: waiting NAME. It prints "ready" and
// waits; resources_test.py has the hint that `softib resources` must give meanwhile. Both ends of the
// connection are in this process. Exits with 1 after any other failure, 2 if there is none of that
// name.
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 16 };

static struct ibv_comp_channel* channel;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_pd* pd;
static struct ibv_qp *a, *b;
static struct ibv_mr* mr;
static char buffer[4096];
static uint16_t lid;

static void* need(void* made, const char* what) {
  if (made) return made;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static void must(int failed, const char* what) {
  if (!failed) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static void open_all(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* context = need(ibv_open_device(need(list ? list[0] : NULL, "a device")), "ibv_open_device");
  ibv_free_device_list(list);
  struct ibv_port_attr port;
  must(ibv_query_port(context, 1, &port), "ibv_query_port");
  lid = port.lid;
  pd = need(ibv_alloc_pd(context), "ibv_alloc_pd");
  channel = need(ibv_create_comp_channel(context), "ibv_create_comp_channel");
  send_cq = need(ibv_create_cq(context, DEPTH, NULL, NULL, 0), "ibv_create_cq");
  recv_cq = need(ibv_create_cq(context, DEPTH, NULL, channel, 0), "ibv_create_cq");
  mr = need(ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
}

static struct ibv_qp* make(void) {
  struct ibv_qp_init_attr init = {.send_cq = send_cq, .recv_cq = recv_cq, .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
                                          .max_recv_sge = 1}};
  return need(ibv_create_qp(pd, &init), "ibv_create_qp");
}

static void connect_to(struct ibv_qp* qp, uint32_t peer) {
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  must(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer,
                            .ah_attr = {.dlid = lid, .port_num = 1}};
  must(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  must(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

// Two messages, of which `signaled` have a completion at their sender; both are received.
static void send_two(int signaled) {
  struct ibv_sge sge = {(uintptr_t)buffer, 64, mr->lkey};
  for (int i = 0; i < 2; ++i) {
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
    must(ibv_post_recv(b, &receive, &bad_receive), "ibv_post_recv");
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                               .send_flags = i < signaled ? IBV_SEND_SIGNALED : 0}, *bad_send;
    must(ibv_post_send(a, &send, &bad_send), "ibv_post_send");
  }
}

static void poll_two(struct ibv_cq* cq) {
  struct ibv_wc wc;
  for (int polled = 0; polled < 2;) polled += ibv_poll_cq(cq, 1, &wc);
}

static void take_event(void) {
  struct ibv_cq* cq;
  void* context;
  must(ibv_get_cq_event(channel, &cq, &context), "ibv_get_cq_event");
}

static void ready(void) {
  printf("ready\n");
  fflush(stdout);
}

int main(int argc, char** argv) {
  const char* name = argc == 2 ? argv[1] : "";
  open_all();
  a = make();
  b = make();
  connect_to(a, b->qp_num);
  connect_to(b, a->qp_num);
  if (!strcmp(name, "never-armed")) {
    send_two(2);
    ready();
    take_event();
  } else if (!strcmp(name, "not-armed-again")) {
    must(ibv_req_notify_cq(recv_cq, 0), "ibv_req_notify_cq");
    send_two(2);
    take_event();
    ready();
    take_event();
  } else if (!strcmp(name, "only-solicited")) {
    must(ibv_req_notify_cq(recv_cq, 1), "ibv_req_notify_cq");
    send_two(2);
    ready();
    take_event();
  } else if (!strcmp(name, "event-not-read")) {
    must(ibv_req_notify_cq(recv_cq, 0), "ibv_req_notify_cq");
    send_two(2);
    ready();
    pause();
  } else if (!strcmp(name, "not-signaled")) {
    send_two(0);
    poll_two(recv_cq);
    ready();
    poll_two(send_cq);
  } else if (!strcmp(name, "not-acknowledged")) {
    must(ibv_req_notify_cq(recv_cq, 0), "ibv_req_notify_cq");
    send_two(2);
    take_event();
    must(ibv_destroy_qp(a) || ibv_destroy_qp(b), "ibv_destroy_qp");
    ready();
    must(ibv_destroy_cq(recv_cq), "ibv_destroy_cq");
  } else {
    return 2;
  }
  return 1;  // it did not wait
}
