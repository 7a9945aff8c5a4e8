/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strange_numbers: a program that closes all descriptors, its own or not, as daemons do, and opens files and sockets
 * which have the numbers then. Nothing may be written to those, shut down or closed.
 *
 * strange_numbers probed|open|cm loop|closefrom|close_range|syscalls
 * probed: uses a device, closes it, closes all numbers and uses the device again. open: closes them under an open
 * device. cm: the same as probed with an event channel. syscalls: without libc.
 * Prints what each call of the verbs did, and "all right" unless a file of its own was touched. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kHighest = 1100, kMany = 24 };

static int failed;

static void close_all(const char* how) {
  if (!strcmp(how, "loop")) {
    for (int fd = 3; fd < kHighest; ++fd) close(fd);
  } else if (!strcmp(how, "closefrom")) {
    closefrom(3);
  } else if (!strcmp(how, "close_range")) {
    if (close_range(3, ~0u, 0) != 0) perror("close_range");
  } else {
    for (int fd = 3; fd < kHighest; ++fd) syscall(SYS_close, fd);
  }
}

struct strangers {
  int files[kMany];
  int sockets[2 * kMany][2];
};
static struct strangers low, high;

/* A file that is moved to the next free number from `lowest` on. */
static int moved(int fd, int lowest) {
  const int at = fcntl(fd, F_DUPFD, lowest);
  close(fd);
  return at;
}

static void open_strangers(struct strangers* all, int lowest) {
  for (int i = 0; i < 2 * kMany; ++i) {
    int pair[2];
    if (socketpair(AF_UNIX, i % 2 != 0 ? SOCK_STREAM : SOCK_SEQPACKET, 0, pair) != 0) perror("socketpair");
    for (int end = 0; end < 2; ++end) all->sockets[i][end] = moved(pair[end], lowest);
  }
  for (int i = 0; i < kMany; ++i) all->files[i] = moved(memfd_create("stranger", 0), lowest);
}

static void wrong(const char* when, const char* what, int fd) {
  printf("wrong: %s: %s, descriptor %d: %s\n", when, what, fd, strerror(errno));
  failed = 1;
}

/* `theirs`: numbers that libibverbs or librdmacm closes itself, as it would over any adapter. */
static int is_theirs(int fd, const int* theirs) {
  for (; *theirs >= 0; ++theirs) {
    if (*theirs == fd) return 1;
  }
  return 0;
}

static void look_at(const struct strangers* all, const char* when, const int* theirs) {
  for (int i = 0; i < kMany; ++i) {
    struct stat now;
    if (is_theirs(all->files[i], theirs)) continue;
    if (fstat(all->files[i], &now) != 0) {
      wrong(when, "a file was closed", all->files[i]);
    } else if (now.st_size != 0) {
      wrong(when, "a file was written to", all->files[i]);
    }
  }
  for (int i = 0; i < 2 * kMany; ++i) {
    const int* pair = all->sockets[i];
    for (int end = 0; end < 2; ++end) {
      char bytes[64];
      if (is_theirs(pair[end], theirs)) continue;
      if (fcntl(pair[end], F_GETFD) < 0) wrong(when, "a socket was closed", pair[end]);
      if (is_theirs(pair[1 - end], theirs)) continue;
      const ssize_t got = recv(pair[end], bytes, sizeof bytes, MSG_DONTWAIT);
      if (got >= 0) wrong(when, got == 0 ? "a socket was shut down" : "a socket was written to", pair[end]);
    }
  }
}

static void look(const char* when, const int* theirs) {
  look_at(&low, when, theirs);
  look_at(&high, when, theirs);
}

static void open_all(void) {
  open_strangers(&low, 3);
  open_strangers(&high, 1000);
}

static void said(const char* call, int ok) { printf("%s: %s\n", call, ok ? "ok" : strerror(errno)); }

static char buffer[1 << 20] __attribute__((aligned(4096)));

struct device {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
};

static struct ibv_qp* connect_to_itself(struct device* d) {
  struct ibv_qp_init_attr init = {.send_cq = d->cq, .recv_cq = d->cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(d->pd, &init);
  if (qp == NULL) return NULL;
  struct ibv_port_attr port;
  union ibv_gid gid;
  ibv_query_port(d->context, 1, &port);
  ibv_query_gid(d->context, 1, 0, &gid);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) return NULL;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num,
                              .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
                              .ah_attr = {.dlid = port.lid, .port_num = 1, .is_global = 1, .grh = {.dgid = gid}}};
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) return NULL;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
                              .max_rd_atomic = 1};
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                      IBV_QP_MAX_QP_RD_ATOMIC) ? NULL : qp;
}

/* A message to itself, and its event. */
static int message(struct device* d) {
  struct ibv_sge here = {(uintptr_t)buffer, 64, d->mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &here, .num_sge = 1}, *bad_receive;
  struct ibv_sge there = {(uintptr_t)buffer + 4096, 64, d->mr->lkey};
  struct ibv_send_wr send = {.sg_list = &there, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  struct ibv_wc done[2];
  int count = 0;
  memset(buffer, 0, 64);
  memset(buffer + 4096, 'x', 64);
  if (ibv_req_notify_cq(d->cq, 0) || ibv_post_recv(d->qp, &receive, &bad_receive) || ibv_post_send(d->qp, &send, &bad)) return 0;
  for (long tries = 0; count < 2 && tries < 100000000; ++tries) {
    const int got = ibv_poll_cq(d->cq, 2 - count, done + count);
    if (got < 0) return 0;
    count += got;
  }
  for (int i = 0; i < count; ++i) {
    if (done[i].status != IBV_WC_SUCCESS) return 0;
  }
  return count == 2 && memcmp(buffer, buffer + 4096, 64) == 0;
}

static int open_device(struct device* d) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  d->context = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
  ibv_free_device_list(list);
  if (d->context == NULL) return 0;
  d->pd = ibv_alloc_pd(d->context);
  d->mr = d->pd != NULL ? ibv_reg_mr(d->pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE) : NULL;
  d->channel = ibv_create_comp_channel(d->context);
  d->cq = ibv_create_cq(d->context, 64, NULL, d->channel, 0);
  d->qp = d->mr != NULL && d->cq != NULL ? connect_to_itself(d) : NULL;
  return d->qp != NULL && message(d);
}

static void close_device(struct device* d) {
  said("destroy_qp", ibv_destroy_qp(d->qp) == 0);
  said("destroy_cq", ibv_destroy_cq(d->cq) == 0);
  said("destroy_comp_channel", ibv_destroy_comp_channel(d->channel) == 0);
  said("dereg_mr", ibv_dereg_mr(d->mr) == 0);
  said("dealloc_pd", ibv_dealloc_pd(d->pd) == 0);
  said("close_device", ibv_close_device(d->context) == 0);
}

static void probed(const char* how) {
  const int none[] = {-1};
  struct device d;
  said("open_device", open_device(&d));
  close_device(&d);
  close_all(how);
  open_all();
  said("again", open_device(&d));
  look("with the device open again", none);
  close_device(&d);
  look("at the end", none);
}

static void opened(const char* how) {
  struct device d;
  said("open_device", open_device(&d));
  const int theirs[] = {d.context->cmd_fd, d.context->async_fd, d.channel->fd, -1};
  close_all(how);
  open_all();
  said("message", message(&d));
  struct ibv_pd* pd = ibv_alloc_pd(d.context);
  said("alloc_pd", pd != NULL);
  for (int i = 0; i < 20; ++i) {
    struct ibv_port_attr port;
    ibv_query_port(d.context, 1, &port);
  }
  look("with descriptors closed", theirs);
  if (pd != NULL) ibv_dealloc_pd(pd);
  close_device(&d);
  look("with the device closed", theirs);
  struct device other;
  said("again", open_device(&other));
  look("with another device open", theirs);
}

static int use_channel(void) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == NULL) return 0;
  int ok = 1;
  for (int i = 0; ok && i < 20; ++i) {
    struct rdma_cm_id* id;
    ok = rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 && rdma_destroy_id(id) == 0;
  }
  rdma_destroy_event_channel(channel);
  return ok;
}

static void cm(const char* how) {
  const int none[] = {-1};
  said("event channel", use_channel());
  close_all(how);
  open_all();
  said("again", use_channel());
  said("once more", use_channel());
  look("at the end", none);
}

int main(int count, char** words) {
  struct rlimit files = {2048, 2048};
  if (count != 3 || setrlimit(RLIMIT_NOFILE, &files) != 0) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!strcmp(words[1], "probed")) probed(words[2]);
  if (!strcmp(words[1], "open")) opened(words[2]);
  if (!strcmp(words[1], "cm")) cm(words[2]);
  if (!failed) puts("all right");
  return failed;
}
