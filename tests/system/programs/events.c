// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion events and what a queue that runs over does, as on adapters: a program against the
// public header alone. Two processes; the sender was forked before the device was opened.
//
//   events unread N    the receiver arms its queue before each of N messages, polls, and reads no
//                      event until the sender has ended
//   events order N     sender and receiver sleep until events; which comes first at the sender
//   events overrun     a queue of few entries that is not polled
//
// Prints one line per broken rule and fails if there is one.
#include "rules.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 4096, kHalf = kBytes / 2, kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

struct side {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct ibv_comp_channel* channel;
  struct ibv_cq *sends, *receives;
  struct ibv_qp* qp;
  char memory[kBytes];
};

struct name {
  uint32_t qpn;
  uint16_t lid;
  union ibv_gid gid;
};

static int sock;  // to the other process

static void tell(const void* data, size_t size) { NEED(write(sock, data, size) == (ssize_t)size); }
static void hear(void* data, size_t size) {
  NEED(recv(sock, data, size, MSG_WAITALL) == (ssize_t)size);
}
// Returns when the other process has come here too.
static void meet(void) {
  char c = 0;
  tell(&c, 1);
  hear(&c, 1);
}

static void open_side(struct side* s, int entries) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  NEED(list && list[0]);
  NEED((s->context = ibv_open_device(list[0])) != NULL);
  ibv_free_device_list(list);
  NEED((s->pd = ibv_alloc_pd(s->context)) != NULL);
  NEED((s->mr = ibv_reg_mr(s->pd, s->memory, kBytes, kAccess)) != NULL);
  NEED((s->channel = ibv_create_comp_channel(s->context)) != NULL);
  NEED((s->sends = ibv_create_cq(s->context, entries, NULL, s->channel, 0)) != NULL);
  NEED((s->receives = ibv_create_cq(s->context, 64, NULL, s->channel, 0)) != NULL);
}

static struct ibv_qp* new_qp(struct side* s) {
  struct ibv_qp_init_attr init = {
      .send_cq = s->sends, .recv_cq = s->receives, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  init.cap.max_send_wr = init.cap.max_recv_wr = 64;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  struct ibv_qp* qp = ibv_create_qp(s->pd, &init);
  NEED(qp != NULL);
  return qp;
}

static struct name name_of(struct side* s, const struct ibv_qp* qp) {
  struct ibv_port_attr port;
  struct name name = {.qpn = qp->qp_num};
  NEED(ibv_query_port(s->context, 1, &port) == 0);
  NEED(ibv_query_gid(s->context, 1, 0, &name.gid) == 0);
  name.lid = port.lid;
  return name;
}

static void connect_to(struct ibv_qp* qp, const struct name* to) {
  struct ibv_qp_attr a = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  NEED(ibv_modify_qp(qp, &a,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  a = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = to->qpn};
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 12;
  a.ah_attr = (struct ibv_ah_attr){.dlid = to->lid, .port_num = 1, .is_global = 1};
  a.ah_attr.grh.dgid = to->gid;
  a.ah_attr.grh.hop_limit = 1;
  NEED(ibv_modify_qp(qp, &a,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  a = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  NEED(ibv_modify_qp(qp, &a,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void join_sides(struct side* s) {
  open_side(s, 64);
  s->qp = new_qp(s);
  const struct name own = name_of(s, s->qp);
  struct name other;
  tell(&own, sizeof own);
  hear(&other, sizeof other);
  connect_to(s->qp, &other);
}

static void post_receive(struct side* s) {
  struct ibv_sge sge = {(uintptr_t)s->memory + kHalf, 8, s->mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  NEED(ibv_post_recv(s->qp, &wr, &bad) == 0);
}

static void post_send(struct side* s) {
  struct ibv_sge sge = {(uintptr_t)s->memory, 8, s->mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
  NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
}

static void need_success(struct ibv_cq* cq) { NEED(next_completion(cq).status == IBV_WC_SUCCESS); }

// Whether the channel can be read within some time.
static int is_readable(struct ibv_comp_channel* channel, int milliseconds) {
  struct pollfd waiting = {channel->fd, POLLIN, 0};
  return poll(&waiting, 1, milliseconds) == 1;
}

static struct ibv_cq* next_event(struct ibv_comp_channel* channel) {
  struct ibv_cq* cq = NULL;
  void* ignored;
  if (!is_readable(channel, 20000)) return NULL;
  NEED(ibv_get_cq_event(channel, &cq, &ignored) == 0);
  ibv_ack_cq_events(cq, 1);
  return cq;
}

static void unread_sender(int messages) {
  struct side s = {0};
  join_sides(&s);
  for (int i = 0; i < messages; ++i) {
    char ready;
    hear(&ready, 1);
    post_send(&s);
    tell("s", 1);  // the event is on its way
    need_success(s.sends);
  }
}

static void unread_receiver(int messages, pid_t sender) {
  struct side s = {0};
  join_sides(&s);
  for (int i = 0; i < messages; ++i) {
    NEED(ibv_req_notify_cq(s.receives, 0) == 0);
    post_receive(&s);
    char sent;
    tell("r", 1);
    hear(&sent, 1);
    need_success(s.receives);
  }
  NEED(waitpid(sender, NULL, 0) == sender);
  int events = 0;
  while (events < messages && next_event(s.channel) == s.receives) ++events;
  RULE(events == messages, "%d events of %d", events, messages);
  RULE(!is_readable(s.channel, 0), "one event too many");
  NEED(ibv_destroy_qp(s.qp) == 0);
  RULE(ibv_destroy_cq(s.receives) == 0, "all events are acknowledged");
}

static void order_server(int rounds) {
  struct side s = {0};
  join_sides(&s);
  for (int i = 0; i < 8; ++i) post_receive(&s);
  NEED(ibv_req_notify_cq(s.receives, 0) == 0);
  meet();
  for (int i = 0; i < rounds; ++i) {
    NEED(next_event(s.channel) == s.receives);
    NEED(ibv_req_notify_cq(s.receives, 0) == 0);
    need_success(s.receives);
    post_receive(&s);
    post_send(&s);
    need_success(s.sends);
  }
  meet();
}

static void order_client(int rounds) {
  struct side s = {0};
  join_sides(&s);
  meet();
  int overtaken = 0;
  for (int i = 0; i < rounds; ++i) {
    post_receive(&s);
    NEED(ibv_req_notify_cq(s.sends, 0) == 0);
    NEED(ibv_req_notify_cq(s.receives, 0) == 0);
    post_send(&s);
    overtaken += next_event(s.channel) != s.sends;
    NEED(next_event(s.channel) != NULL);
    need_success(s.sends);
    need_success(s.receives);
  }
  meet();
  RULE(overtaken == 0, "an answer came before the own completion, %d times of %d", overtaken, rounds);
}

struct counts {
  int cq_errors, qp_fatals, others;
};

static struct counts take_events(struct ibv_context* context, int least) {
  struct counts seen = {0, 0, 0};
  struct pollfd waiting = {context->async_fd, POLLIN, 0};
  for (int i = 0; poll(&waiting, 1, i < least ? 20000 : 0) == 1; ++i) {
    struct ibv_async_event event;
    NEED(ibv_get_async_event(context, &event) == 0);
    if (event.event_type == IBV_EVENT_CQ_ERR) ++seen.cq_errors;
    else if (event.event_type == IBV_EVENT_QP_FATAL) ++seen.qp_fatals;
    else ++seen.others;
    ibv_ack_async_event(&event);
  }
  return seen;
}

static enum ibv_qp_state state_of(struct ibv_qp* qp) {
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  NEED(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
  return attr.qp_state;
}

// One process: two pairs of queue pairs, all of whose sends complete in one queue of four entries.
static void overrun(void) {
  enum { kEntries = 4, kWrites = 32 };
  struct side s = {0};
  open_side(&s, kEntries);
  struct ibv_qp* qp[4];
  struct name name[4];
  for (int i = 0; i < 4; ++i) {
    qp[i] = new_qp(&s);
    name[i] = name_of(&s, qp[i]);
  }
  for (int i = 0; i < 4; ++i) connect_to(qp[i], &name[i ^ 1]);
  for (int i = 0; i < kWrites; ++i) {
    struct ibv_sge sge = {(uintptr_t)s.memory, 8, s.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1}, *bad;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)s.memory + kHalf;
    wr.wr.rdma.rkey = s.mr->rkey;
    RULE(ibv_post_send(qp[0], &wr, &bad) == 0, "write %d", i);
  }
  const struct counts seen = take_events(s.context, 5);
  RULE(seen.cq_errors == 1, "%d events", seen.cq_errors);
  RULE(seen.qp_fatals == 4, "%d events", seen.qp_fatals);
  RULE(seen.others == 0, "%d events", seen.others);
  for (int i = 0; i < 4; ++i) RULE(state_of(qp[i]) == IBV_QPS_ERR, "%d", state_of(qp[i]));
  struct ibv_wc wc;
  int good = 0;
  while (ibv_poll_cq(s.sends, 1, &wc) == 1) good += wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)good;
  RULE(good == kEntries, "%d completions that had fitted", good);
  for (int i = 0; i < 4; ++i) RULE(ibv_destroy_qp(qp[i]) == 0, "%s", strerror(errno));
  RULE(ibv_destroy_cq(s.sends) == 0, "%s", strerror(errno));
}

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  const int times = count > 2 ? atoi(words[2]) : 0;
  if (!strcmp(what, "overrun")) {
    overrun();
  } else {
    int ends[2];
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const pid_t child = fork();
    NEED(child >= 0);
    sock = ends[child == 0];
    close(ends[child != 0]);
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int is_unread = !strcmp(what, "unread");
    if (child == 0) {
      if (is_unread) unread_sender(times);
      else order_server(times);
      _exit(broken != 0);
    }
    if (is_unread) unread_receiver(times, child);
    else order_client(times);
  }
  printf("%d rules broken\n", broken);
  return broken != 0;
}
