/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Calls on small stacks, for threads_test.py. Each call runs on a painted stack of its own; the
 * part that it has changed is its need. The first call of each kind counts too. After that, threads
 * of 16 KiB make all calls of the data path.
 *
 *   small_stacks MOST_OF_DATA MOST_OF_CONTROL     bytes
 *
 * Prints the need of each call, and "good" at its end. */
#define _GNU_SOURCE
#include "two_sides.h"

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#define MUST(condition)                                                                  \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      fprintf(stderr, "%d: %s does not hold (errno %d)\n", __LINE__, #condition, errno); \
      _exit(1);                                                                          \
    }                                                                                    \
  } while (0)

enum { BYTES = 1 << 20, STACK = 1 << 18, SMALL = 16 << 10, PAINT = 0xa5 };

static struct side mine;  /* connected to the peer, which is another process */
static struct side a, b;  /* connected to each other */
static struct side u;     /* datagrams to itself */
static struct ibv_qp_ex* batch;
static struct ibv_cq_ex* queue_of_batch;
static struct ibv_comp_channel* channel;
static struct ibv_mr* region;
static struct ibv_srq* srq;
static struct ibv_ah* ah;
static char* memory;

static void open_it(void) { open_side(&mine); }
static void make_queues(void) {
  a.context = b.context = u.context = mine.context;
  a.pd = b.pd = u.pd = mine.pd;
  a.lid = b.lid = u.lid = mine.lid;
  MUST(channel = ibv_create_comp_channel(mine.context));
  MUST(a.cq = ibv_create_cq(mine.context, 64, NULL, NULL, 0));
  MUST(b.cq = ibv_create_cq(mine.context, 64, NULL, channel, 0));
  MUST(u.cq = ibv_create_cq(mine.context, 64, NULL, NULL, 0));
  struct ibv_srq_init_attr of_srq = {.attr = {.max_wr = 64, .max_sge = 1}};
  MUST(srq = ibv_create_srq(mine.pd, &of_srq));
  struct ibv_ah_attr to = {.dlid = mine.lid, .port_num = PORT};
  MUST(ah = ibv_create_ah(mine.pd, &to));
}
static void make_pairs(void) {
  struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .pd = mine.pd};
  struct ibv_cq_init_attr_ex of_queue = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
  MUST(queue_of_batch = ibv_create_cq_ex(mine.context, &of_queue));
  a.cq = ibv_cq_ex_to_cq(queue_of_batch);
  init.send_cq = init.recv_cq = a.cq;
  init.cap = (struct ibv_qp_cap){8, 8, 4, 1, 256};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  MUST(a.qp = ibv_create_qp_ex(mine.context, &init));
  batch = ibv_qp_to_qp_ex(a.qp);
  new_qp(&b);
  bring_up(&a, b.qp->qp_num, b.lid);
  bring_up(&b, a.qp->qp_num, a.lid);
  struct ibv_qp_init_attr datagrams = {
      .send_cq = u.cq, .recv_cq = u.cq, .qp_type = IBV_QPT_UD, .sq_sig_all = 1};
  datagrams.cap = (struct ibv_qp_cap){8, 8, 1, 1, 0};
  MUST(u.qp = ibv_create_qp(mine.pd, &datagrams));
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = 5};
  MUST(!ibv_modify_qp(u.qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  attr.qp_state = IBV_QPS_RTR;
  MUST(!ibv_modify_qp(u.qp, &attr, IBV_QP_STATE));
  attr.qp_state = IBV_QPS_RTS;
  MUST(!ibv_modify_qp(u.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}
static void make_region(void) {
  region = ibv_reg_mr(mine.pd, memory, BYTES,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  MUST(region);
}
static void take_event(void) {
  struct ibv_cq* cq;
  void* context;
  MUST(ibv_get_cq_event(channel, &cq, &context) == 0);
  ibv_ack_cq_events(cq, 1);
}

/* --- calls of the data path --- */

static struct ibv_send_wr request;
static struct ibv_sge pieces[4];
static struct side* from;
static struct ibv_cq* polled;
static struct ibv_wc got;

static void post_it(void) {
  struct ibv_send_wr* bad = NULL;
  MUST(ibv_post_send(from->qp, &request, &bad) == 0);
}
static void poll_it(void) { while (ibv_poll_cq(polled, 1, &got) == 0) {} }
static void poll_nothing(void) {
  for (int i = 0; i < 5000; ++i) MUST(ibv_poll_cq(polled, 1, &got) == 0);
}
static void receive_it(void) { post_receive(&b, memory, BYTES / 2, region->lkey); }
static void receive_datagram(void) { post_receive(&u, memory, 4096, region->lkey); }
static void receive_shared(void) {
  struct ibv_sge sge = {(uintptr_t)memory, 64, region->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  MUST(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}
static void arm_it(void) { MUST(ibv_req_notify_cq(b.cq, 0) == 0); }
static void post_batch(void) {
  ibv_wr_start(batch);
  ibv_wr_send(batch);
  ibv_wr_set_sge(batch, region->lkey, (uintptr_t)memory, 64);
  MUST(ibv_wr_complete(batch) == 0);
}
static void poll_batch(void) {
  struct ibv_poll_cq_attr attr = {0};
  while (ibv_start_poll(queue_of_batch, &attr) != 0) {}
  MUST(queue_of_batch->status == IBV_WC_SUCCESS);
  ibv_end_poll(queue_of_batch);
}

/* --- measuring --- */

static ucontext_t before, inside;
static size_t most_of_data, most_of_control;
static int is_small; /* in a small thread: nothing is measured */
static int too_much;

static void measure(const char* name, void (*call)(void), size_t most) {
  if (is_small) return call();
  char* stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(stack != MAP_FAILED);
  memset(stack, PAINT, STACK);
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = STACK;
  inside.uc_link = &before;
  makecontext(&inside, call, 0);
  swapcontext(&before, &inside);
  size_t untouched = 0;
  while (untouched < STACK && (unsigned char)stack[untouched] == PAINT) ++untouched;
  const size_t used = STACK - untouched;
  printf("%-44s %6zu\n", name, used);
  if (used > most) {
    printf("%s needs more than %zu bytes\n", name, most);
    too_much = 1;
  }
  munmap(stack, STACK);
}
static void data(const char* name, void (*call)(void)) { measure(name, call, most_of_data); }

static void send_over(struct side* side, struct ibv_cq* sends, const char* name,
                      enum ibv_wr_opcode opcode, int count, uint32_t length, unsigned flags) {
  from = side;
  polled = sends;
  for (int i = 0; i < count; ++i)
    pieces[i] = (struct ibv_sge){(uintptr_t)memory + 4096u * (unsigned)i, length, region->lkey};
  request = (struct ibv_send_wr){
      .sg_list = pieces, .num_sge = count, .opcode = opcode, .send_flags = flags};
  request.wr.rdma.remote_addr = peers_memory.address;
  request.wr.rdma.rkey = peers_memory.rkey;
  if (side == &u) {
    request.wr.ud.ah = ah;
    request.wr.ud.remote_qpn = u.qp->qp_num;
    request.wr.ud.remote_qkey = 5;
  }
  char words[80];
  snprintf(words, sizeof words, "ibv_post_send, %s", name);
  data(words, post_it);
  snprintf(words, sizeof words, "ibv_poll_cq, %s", name);
  data(words, poll_it);
  if (got.status != 0) fprintf(stderr, "%s: %s\n", name, ibv_wc_status_str(got.status));
  MUST(got.status == 0);
}
static void take_message(const char* name) {
  polled = b.cq;
  data(name, poll_it);
  MUST(got.status == 0);
}

static void use_data_path(void) {
  send_over(&mine, mine.cq, "first WRITE to a process", IBV_WR_RDMA_WRITE, 1, 64, 0);
  send_over(&mine, mine.cq, "long WRITE", IBV_WR_RDMA_WRITE, 1, BYTES, 0);
  send_over(&mine, mine.cq, "READ", IBV_WR_RDMA_READ, 1, 64, 0);
  send_over(&mine, mine.cq, "long READ", IBV_WR_RDMA_READ, 1, BYTES, 0);
  data("ibv_post_recv", receive_it);
  data("ibv_req_notify_cq", arm_it);
  send_over(&a, a.cq, "SEND that wakes", IBV_WR_SEND, 1, 64, 0);
  take_message("ibv_poll_cq of a receive");
  measure("ibv_get_cq_event", take_event, most_of_control);
  receive_it();
  send_over(&a, a.cq, "SEND of several pieces", IBV_WR_SEND, 3, 2000, 0);
  take_message("ibv_poll_cq of it");
  receive_it();
  send_over(&a, a.cq, "inline SEND of several pieces", IBV_WR_SEND, 3, 60, IBV_SEND_INLINE);
  take_message("ibv_poll_cq of it");
  receive_it();
  data("ibv_wr_complete", post_batch);
  data("ibv_start_poll", poll_batch);
  take_message("ibv_poll_cq of it");
  data("ibv_post_srq_recv", receive_shared);
  receive_datagram();
  send_over(&u, u.cq, "datagram", IBV_WR_SEND, 1, 64, 0);
  polled = u.cq;
  data("ibv_poll_cq of a datagram", poll_it);
  data("ibv_poll_cq, nothing", poll_nothing);
}
static void use_one_that_waits(void) {
  from = &a;
  polled = a.cq;
  pieces[0] = (struct ibv_sge){(uintptr_t)memory, 64, region->lkey};
  request = (struct ibv_send_wr){.sg_list = pieces, .num_sge = 1, .opcode = IBV_WR_SEND};
  data("ibv_post_send that waits", post_it);
  data("ibv_poll_cq, nothing yet", poll_nothing);
  data("ibv_post_recv that is awaited", receive_it);
  data("ibv_poll_cq of what waited", poll_it);
  MUST(got.status == 0);
  take_message("ibv_poll_cq of its receive");
}
static void use_one_that_fails(void) {
  from = &a;
  polled = a.cq;
  pieces[0].lkey = 0x12345;
  data("ibv_post_send that fails", post_it);
  data("ibv_poll_cq of a failure", poll_it);
  MUST(got.status == IBV_WC_LOC_PROT_ERR);
}

static void* use_in_small_thread(void* unused) {
  use_data_path();
  use_one_that_waits();
  return unused;
}
static void run_small_threads(void) {
  is_small = 1;
  for (int i = 0; i < 10; ++i) {
    pthread_attr_t attr;
    pthread_t thread;
    MUST(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, SMALL));
    MUST(!pthread_create(&thread, &attr, use_in_small_thread, NULL));
    MUST(!pthread_join(thread, NULL));
  }
  is_small = 0;
}

static void connect_it(void) { connect_peer(&mine); }
static void deregister(void) { MUST(ibv_dereg_mr(region) == 0); }
static void destroy_pairs(void) { MUST(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp)); }

int main(int argc, char** argv) {
  most_of_data = argc > 1 ? (size_t)atol(argv[1]) : 4096;
  most_of_control = argc > 2 ? (size_t)atol(argv[2]) : 16384;
  setvbuf(stdout, NULL, _IOLBF, 0);
  alarm(120);
  start_peer();
  memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED);
  memset(memory, 1, BYTES);
  measure("ibv_open_device", open_it, most_of_control);
  measure("connecting", connect_it, most_of_control);
  measure("ibv_create_cq", make_queues, most_of_control);
  measure("ibv_create_qp", make_pairs, most_of_control);
  measure("ibv_reg_mr", make_region, most_of_control);
  use_data_path();
  use_one_that_waits();
  run_small_threads();
  use_one_that_fails();
  measure("ibv_dereg_mr", deregister, most_of_control);
  measure("ibv_destroy_qp", destroy_pairs, most_of_control);
  end_peer();
  if (too_much) return 1;
  puts("good");
  return 0;
}
