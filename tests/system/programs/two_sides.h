/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * An owner of memory and a peer that reads and writes it over RC, for the programs of
 * memory_test.py. The peer is a child that was forked before the device was opened, and executes
 * orders from a socket. Plain libibverbs.
 *
 * A failure of the set-up ends the program with a line on stderr. */
#ifndef TWO_SIDES_H
#define TWO_SIDES_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { MOST = 1 << 20, PORT = 1, SECONDS = 20, AROUND = 256 << 20 };

struct side {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr; /* the peer's own memory, of MOST bytes */
  unsigned char* memory;
  uint16_t lid;
};

enum order { CONNECT = 1, READ = 2, WRITE = 3, END = 4, SEND = 5, LIMIT = 6 };
struct order_message {
  uint32_t order, rkey, length, fill, qpn, lid;
  uint64_t address;
};
/* LIMIT: `length` is the peer's limit of file descriptors from now on.
 * READ: `same` is 1 if all bytes are `first`; the bytes follow if `fill` is set. CONNECT: rkey and
 * address are of the peer's own memory. */
struct answer_message {
  uint32_t status, first, same, qpn, lid, rkey;
  uint64_t address;
};

static struct order_message peers_memory; /* rkey and address; set by connect_peer */
static int sock;
static pid_t peer_pid;

static inline void die(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(2);
}

/* Memory, or memory again at an address where the program has unmapped it. */
static inline unsigned char* map_at(void* at, size_t size) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);
  unsigned char* got = mmap(at, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (got == MAP_FAILED || (at && got != at)) die("mmap");
  return got;
}

/* Memory in the middle of free address space, for a program that grows it in place, or unmaps it
 * and goes on using the address. The kernel may put any new mapping into a hole: one of the
 * allocator, of another thread, or the page that softib keeps for each region that it adopts
 * (linux/adopt/adopt_kept.h). It takes the highest place, or the lowest, so it begins at an end of
 * the free space. Beside other memory, the hole might be that place. */
static inline unsigned char* map_apart(size_t size) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  unsigned char* space = mmap(NULL, size + 2 * (size_t)AROUND, PROT_NONE, flags, -1, 0);
  if (space == MAP_FAILED) die("mmap of free space");
  unsigned char* memory = space + AROUND;
  if (mmap(memory, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
      memory)
    die("mmap");
  munmap(space, AROUND);
  munmap(memory + size, AROUND);
  return memory;
}

static inline void transfer_all(int sending, void* data, size_t size) {
  for (char* at = data; size != 0;) {
    const ssize_t n = sending ? send(sock, at, size, MSG_NOSIGNAL) : recv(sock, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) die("the other side is gone");
    at += n;
    size -= (size_t)n;
  }
}

static inline void open_side(struct side* s) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (!list || count == 0) die("no RDMA device");
  if (!(s->context = ibv_open_device(list[0]))) die("ibv_open_device");
  ibv_free_device_list(list);
  struct ibv_port_attr port;
  if (ibv_query_port(s->context, PORT, &port)) die("ibv_query_port");
  s->lid = port.lid;
  if (!(s->pd = ibv_alloc_pd(s->context))) die("ibv_alloc_pd");
  if (!(s->cq = ibv_create_cq(s->context, 16, NULL, NULL, 0))) die("ibv_create_cq");
}

/* The same with a completion channel. */
static inline struct ibv_comp_channel* open_side_with_channel(struct side* s) {
  open_side(s);
  ibv_destroy_cq(s->cq);
  struct ibv_comp_channel* channel = ibv_create_comp_channel(s->context);
  if (!channel || !(s->cq = ibv_create_cq(s->context, 16, NULL, channel, 0))) die("ibv_create_cq");
  return channel;
}

static inline void post_receive(struct side* s, void* memory, uint32_t length, uint32_t lkey) {
  struct ibv_sge sge = {(uintptr_t)memory, length, lkey};
  struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  if (ibv_post_recv(s->qp, &receive, &bad)) die("ibv_post_recv");
}

/* Posts a receive at `memory`, whose completion is an event. */
static inline void expect_event(struct side* s, void* memory, uint32_t length, uint32_t lkey) {
  post_receive(s, memory, length, lkey);
  if (ibv_req_notify_cq(s->cq, 0)) die("ibv_req_notify_cq");
}

static inline void new_qp(struct side* s) {
  if (s->qp) ibv_destroy_qp(s->qp);
  struct ibv_qp_init_attr init = {
      .send_cq = s->cq, .recv_cq = s->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  init.cap.max_send_wr = init.cap.max_recv_wr = 8;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  if (!(s->qp = ibv_create_qp(s->pd, &init))) die("ibv_create_qp");
}

static inline void bring_up(struct side* s, uint32_t qpn, uint32_t lid) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
  a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (ibv_modify_qp(s->qp, &a,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    die("INIT");
  a = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qpn, .rq_psn = 7};
  a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 1;
  a.ah_attr.dlid = (uint16_t)lid;
  a.ah_attr.port_num = PORT;
  if (ibv_modify_qp(s->qp, &a,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    die("RTR");
  a = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  a.max_rd_atomic = 4;
  if (ibv_modify_qp(s->qp, &a,
                    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
    die("RTS");
}

/* Returns the completion's status. */
static inline uint32_t carry_out(struct side* s, const struct order_message* m, const void* memory,
                                 uint32_t lkey) {
  struct ibv_sge sge = {(uintptr_t)memory, m->length, lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad = NULL;
  wr.opcode = m->order == READ   ? IBV_WR_RDMA_READ
              : m->order == SEND ? IBV_WR_SEND
                                 : IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = m->address;
  wr.wr.rdma.rkey = m->rkey;
  if (ibv_post_send(s->qp, &wr, &bad)) die("ibv_post_send");
  const time_t give_up = time(NULL) + SECONDS;
  struct ibv_wc wc;
  while (ibv_poll_cq(s->cq, 1, &wc) == 0) {
    if (time(NULL) > give_up) {
      fprintf(stderr, "no completion in %d s\n", SECONDS);
      exit(3);
    }
  }
  return wc.status;
}

static inline void serve(void) {
  struct side s = {0};
  open_side(&s);
  if (posix_memalign((void**)&s.memory, 4096, MOST)) die("memory");
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (!(s.mr = ibv_reg_mr(s.pd, s.memory, MOST, access))) die("the peer's ibv_reg_mr");
  for (;;) {
    struct order_message m;
    struct answer_message answer = {0};
    transfer_all(0, &m, sizeof m);
    if (m.order == END) _exit(0);
    if (m.order == CONNECT) {
      new_qp(&s);
      bring_up(&s, m.qpn, m.lid);
      answer.qpn = s.qp->qp_num;
      answer.lid = s.lid;
      answer.rkey = s.mr->rkey;
      answer.address = (uintptr_t)s.memory;
    } else if (m.order == LIMIT) {
      struct rlimit limit;
      if (getrlimit(RLIMIT_NOFILE, &limit)) die("getrlimit");
      limit.rlim_cur = m.length;
      if (setrlimit(RLIMIT_NOFILE, &limit)) die("setrlimit");
    } else {
      if (m.order == WRITE) memset(s.memory, (int)m.fill, m.length);
      answer.status = carry_out(&s, &m, s.memory, s.mr->lkey);
      answer.first = s.memory[0];
      answer.same = !memcmp(s.memory, s.memory + 1, m.length - 1);
    }
    transfer_all(1, &answer, sizeof answer);
    if (m.order == READ && m.fill) transfer_all(1, s.memory, m.length);
  }
}

/* Must be called first: forks the peer, a process of its own. */
static inline void start_peer(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) die("socketpair");
  peer_pid = fork();
  if (peer_pid < 0) die("fork");
  sock = ends[peer_pid == 0];
  close(ends[peer_pid != 0]);
  if (peer_pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve();
  }
}

static inline void connect_peer(struct side* s) {
  new_qp(s);
  struct order_message m = {.order = CONNECT, .qpn = s->qp->qp_num, .lid = s->lid};
  struct answer_message answer;
  transfer_all(1, &m, sizeof m);
  transfer_all(0, &answer, sizeof answer);
  bring_up(s, answer.qpn, answer.lid);
  peers_memory.rkey = answer.rkey;
  peers_memory.address = answer.address;
}

/* The opposite direction: executes the order between `length` bytes at `memory` and the peer's
 * memory. Returns the completion's status; connects the two sides again after an error. */
static inline uint32_t order_own(struct side* s, enum order order, uint32_t lkey,
                                 const void* memory, uint32_t length) {
  struct order_message m = peers_memory;
  m.order = order;
  m.length = length;
  const uint32_t status = carry_out(s, &m, memory, lkey);
  if (status != 0) connect_peer(s);
  return status;
}

/* The peer reads or writes `length` bytes; an error connects the two sides again. `bytes` receives
 * the bytes that it read, or is NULL. */
static inline struct answer_message order_peer(struct side* s, enum order order, uint32_t rkey,
                                               const void* address, uint32_t length, unsigned fill,
                                               void* bytes) {
  struct order_message m = {
      .order = order, .rkey = rkey, .length = length, .fill = fill, .address = (uintptr_t)address};
  struct answer_message answer;
  if (order == READ) m.fill = bytes != NULL;
  transfer_all(1, &m, sizeof m);
  transfer_all(0, &answer, sizeof answer);
  if (bytes) transfer_all(0, bytes, length);
  if (answer.status != 0) connect_peer(s);
  return answer;
}

static inline void end_peer(void) {
  struct order_message m = {.order = END};
  int status = 0;
  transfer_all(1, &m, sizeof m);
  waitpid(peer_pid, &status, 0);
  if (status != 0) {
    fprintf(stderr, "the peer ended with %#x\n", status);
    exit(2);
  }
}

#endif
