/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * many_hosts HOSTS MEMBERS: one process on each of so many virtual hosts (node0, node1 ...), all at
 * once, each with its device open. The first MEMBERS of them make a ring of RC queue pairs, and a
 * number goes around it that each one raises by one.
 *
 * Prints "N hosts open, M around the ring", waits until its stdin ends, and "all ended" if every
 * process left with 0. Plain libibverbs. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 1, SOCK = 3 };

/* The address of a host; the addresses of a member's neighbours. */
struct end {
  uint32_t lid, in_qpn, out_qpn;
};
struct ring_place {
  struct end before, after;
};

static void die(const char* what) {
  fprintf(stderr, "pid %d on %s: %s: %s\n", getpid(), getenv("SOFTIB_NODE"), what, strerror(errno));
  exit(2);
}

static void send_all(int fd, const void* data, size_t size) {
  if (send(fd, data, size, MSG_NOSIGNAL) != (ssize_t)size) die("send");
}
static int receive_all(int fd, void* data, size_t size) {
  ssize_t got;
  do {
    got = recv(fd, data, size, MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  return got == (ssize_t)size;
}

/* --- one host --- */

static struct ibv_qp* make_qp(struct ibv_pd* pd, struct ibv_cq* cq) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
                                  .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  if (!qp) die("ibv_create_qp");
  return qp;
}

static void connect_qp(struct ibv_qp* qp, uint32_t qpn, uint32_t lid) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
  errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (errno) die("to INIT");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = qpn,
                              .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
                              .ah_attr = {.dlid = (uint16_t)lid, .port_num = PORT}};
  errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (errno) die("to RTR");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                       IBV_QP_MAX_QP_RD_ATOMIC);
  if (errno) die("to RTS");
}

/* Sleeps until there is a completion: a thousand processes that poll would leave no core to the one that must run. */
static void wait_completion(struct ibv_comp_channel* channel, struct ibv_cq* cq) {
  struct ibv_wc wc;
  int got;
  while ((got = ibv_poll_cq(cq, 1, &wc)) == 0) {
    void* context;
    if (ibv_req_notify_cq(cq, 0)) die("ibv_req_notify_cq");
    if ((got = ibv_poll_cq(cq, 1, &wc)) != 0) break;
    if (ibv_get_cq_event(channel, &cq, &context)) die("ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
  }
  if (got != 1 || wc.status != IBV_WC_SUCCESS) die(got == 1 ? ibv_wc_status_str(wc.status) : "ibv_poll_cq");
}

static void take_part(struct ibv_context* context, uint32_t lid, int is_first) {
  static uint32_t number;
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_cq* cq = channel && pd ? ibv_create_cq(context, 4, NULL, channel, 0) : NULL;
  struct ibv_mr* mr = cq ? ibv_reg_mr(pd, &number, sizeof number, IBV_ACCESS_LOCAL_WRITE) : NULL;
  if (!mr) die("objects");
  struct ibv_qp *in = make_qp(pd, cq), *out = make_qp(pd, cq);
  const struct end mine = {lid, in->qp_num, out->qp_num};
  struct ring_place place;
  send_all(SOCK, &mine, sizeof mine);
  if (!receive_all(SOCK, &place, sizeof place)) exit(1);
  connect_qp(in, place.before.out_qpn, place.before.lid);
  connect_qp(out, place.after.in_qpn, place.after.lid);
  struct ibv_sge piece = {(uintptr_t)&number, sizeof number, mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &piece, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr message = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_message;
  if (!is_first && ibv_post_recv(in, &receive, &bad_receive)) die("ibv_post_recv");
  uint32_t go = 0;
  send_all(SOCK, &go, sizeof go); /* connected */
  if (!receive_all(SOCK, &go, sizeof go)) exit(1);
  if (!is_first) wait_completion(channel, cq);
  ++number;
  if (ibv_post_send(out, &message, &bad_message)) die("ibv_post_send");
  wait_completion(channel, cq);
  if (is_first) {
    if (ibv_post_recv(in, &receive, &bad_receive)) die("ibv_post_recv");
    wait_completion(channel, cq);
  }
  send_all(SOCK, &number, sizeof number);
}

static int host(int is_member, int is_first) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  struct ibv_context* context = count == 1 ? ibv_open_device(devices[0]) : NULL;
  struct ibv_port_attr port;
  if (!context || ibv_query_port(context, PORT, &port)) die("no device");
  if (is_member) {
    take_part(context, port.lid, is_first);
  } else {
    const struct end mine = {port.lid, 0, 0};
    send_all(SOCK, &mine, sizeof mine);
  }
  char end;
  return receive_all(SOCK, &end, 1) ? 1 : 0; /* until the parent closes its side */
}

/* --- the parent --- */

static int start(char* self, int index, int members) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) die("socketpair");
  const pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    char node[32];
    snprintf(node, sizeof node, "node%d", index);
    setenv("SOFTIB_NODE", node, 1);
    if (dup2(pair[1], SOCK) < 0) die("dup2");
    execl(self, self, index == 0 ? "first" : index < members ? "member" : "host", (char*)NULL);
    die("exec");
  }
  close(pair[1]);
  return pair[0];
}

static void make_ring(const int* socks, int hosts, int members) {
  struct end* ends = calloc((size_t)hosts, sizeof *ends);
  if (!ends) die("calloc");
  for (int i = 0; i < hosts; ++i) {
    if (!receive_all(socks[i], &ends[i], sizeof ends[i])) die("a host did not open its device");
  }
  uint32_t number = 0;
  for (int i = 0; i < members; ++i) {
    const struct ring_place place = {ends[(i + members - 1) % members], ends[(i + 1) % members]};
    send_all(socks[i], &place, sizeof place);
  }
  for (int i = 0; i < members; ++i) {
    if (!receive_all(socks[i], &number, sizeof number)) die("a member did not connect");
  }
  for (int i = members - 1; i >= 0; --i) send_all(socks[i], &number, sizeof number); /* the first goes last */
  for (int i = 0; i < members; ++i) {
    const uint32_t wanted = i == 0 ? (uint32_t)members : (uint32_t)i + 1;
    if (!receive_all(socks[i], &number, sizeof number)) die("a member heard nothing");
    if (number == wanted) continue;
    fprintf(stderr, "member %d has %u, not %u\n", i, number, wanted);
    exit(3);
  }
  free(ends);
}

int main(int argc, char** argv) {
  if (argc == 2) return host(strcmp(argv[1], "host") != 0, strcmp(argv[1], "first") == 0);
  const int hosts = argc == 3 ? atoi(argv[1]) : 0, members = argc == 3 ? atoi(argv[2]) : 0;
  if (members < 2 || hosts < members) {
    fprintf(stderr, "many_hosts HOSTS MEMBERS\n");
    return 2;
  }
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (dup2(0, SOCK) < 0) die("dup2"); /* the number is taken: each child puts its socket there */
  int* socks = calloc((size_t)hosts, sizeof *socks);
  if (!socks) die("calloc");
  for (int i = 0; i < hosts; ++i) socks[i] = start(argv[0], i, members);
  make_ring(socks, hosts, members);
  printf("%d hosts open, %d around the ring\n", hosts, members);
  fflush(stdout);
  char end;
  while (read(0, &end, 1) > 0) {
  }
  for (int i = 0; i < hosts; ++i) close(socks[i]);
  int status = 0, failed = 0;
  for (int i = 0; i < hosts; ++i) {
    if (wait(&status) < 0 || status != 0) ++failed;
  }
  printf(failed ? "%d failed\n" : "all ended\n", failed);
  return failed != 0;
}
