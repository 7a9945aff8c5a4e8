/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Threads that end in the middle of calls, for threads_test.py.
 *
 *   cancelled_calls pending     each call runs in a thread that is cancelled already: it must go on
 *                               to the program's own cancellation point
 *   cancelled_calls random N    threads that make all calls, each cancelled at a random moment
 *   cancelled_calls async N     the same, cancelled asynchronously, in control calls (by hand:
 *                               glibc 2.36 also cancels a thread that disables it meanwhile)
 *   cancelled_calls waiting     threads that wait for events are cancelled, and lose none
 *   cancelled_calls exit N      a signal handler ends the process in the middle of a call
 *
 * After each thread the main thread makes the same call. Prints "good" at its end. */
#define _GNU_SOURCE
#include "two_sides.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>
#include <sys/time.h>

#define MUST(condition)                                                                    \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "%d: %s does not hold (errno %d)\n", __LINE__, #condition, errno);   \
      _exit(1);                                                                            \
    }                                                                                      \
  } while (0)

static struct side mine;    /* connected to the peer, which is another process */
static struct side a, b;    /* connected to each other; events of b's queue */
static struct ibv_comp_channel* channel;
static struct ibv_mr* region;
static char* memory;
enum { BYTES = 1 << 20 };

static struct ibv_wc poll_one(struct ibv_cq* cq) {
  struct ibv_wc wc;
  const time_t give_up = time(NULL) + SECONDS;
  while (ibv_poll_cq(cq, 1, &wc) == 0) MUST(time(NULL) <= give_up);
  return wc;
}

static int post(struct side* from, enum ibv_wr_opcode opcode, uint32_t length, uint32_t lkey) {
  struct ibv_sge sge = {(uintptr_t)memory, length, lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};
  struct ibv_send_wr* bad = NULL;
  return ibv_post_send(from->qp, &wr, &bad);
}

static void join_ends(void) {
  new_qp(&a);
  new_qp(&b);
  bring_up(&a, b.qp->qp_num, b.lid);
  bring_up(&b, a.qp->qp_num, a.lid);
}

/* --- control calls --- */

static void list_devices(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  MUST(list);
  ibv_free_device_list(list);
}
static void open_device(void) {
  struct ibv_context* context = ibv_open_device(mine.context->device);
  MUST(context && ibv_close_device(context) == 0);
}
static void query(void) {
  struct ibv_device_attr device;
  struct ibv_port_attr port;
  union ibv_gid gid;
  uint16_t pkey;
  MUST(ibv_query_device(mine.context, &device) == 0 &&
       ibv_query_port(mine.context, PORT, &port) == 0);
  MUST(ibv_query_gid(mine.context, PORT, 0, &gid) == 0 &&
       ibv_query_pkey(mine.context, PORT, 0, &pkey) == 0);
}
static void make_pd(void) {
  struct ibv_pd* pd = ibv_alloc_pd(mine.context);
  MUST(pd && ibv_dealloc_pd(pd) == 0);
}
static void make_channel(void) {
  struct ibv_comp_channel* made = ibv_create_comp_channel(mine.context);
  MUST(made && ibv_destroy_comp_channel(made) == 0);
}
static void make_cq(void) {
  struct ibv_cq* cq = ibv_create_cq(mine.context, 16, NULL, NULL, 0);
  MUST(cq && ibv_resize_cq(cq, 64) == 0 && ibv_destroy_cq(cq) == 0);
}
static void make_mr(void) {
  struct ibv_mr* small = ibv_reg_mr(mine.pd, memory + 8, 100, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_mr* large = ibv_reg_mr(mine.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
  MUST(small && large && ibv_dereg_mr(large) == 0 && ibv_dereg_mr(small) == 0);
}
static void refuse_mr(void) {
  MUST(!ibv_reg_mr(mine.pd, (void*)4096, 100, IBV_ACCESS_LOCAL_WRITE));
}
static void make_qp(void) {
  struct side s = mine;
  s.qp = NULL;
  new_qp(&s);
  bring_up(&s, s.qp->qp_num, s.lid);
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  MUST(ibv_query_qp(s.qp, &attr, IBV_QP_STATE, &init) == 0 && ibv_destroy_qp(s.qp) == 0);
}
static void make_srq(void) {
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(mine.pd, &init);
  struct ibv_srq_attr attr = {.srq_limit = 1};
  struct ibv_recv_wr wr = {0}, *bad;
  MUST(srq && ibv_post_srq_recv(srq, &wr, &bad) == 0);
  MUST(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0 && ibv_query_srq(srq, &attr) == 0 &&
       ibv_destroy_srq(srq) == 0);
}
static void make_others(void) {
  struct ibv_ah_attr attr = {.dlid = mine.lid, .port_num = PORT};
  struct ibv_ah* ah = ibv_create_ah(mine.pd, &attr);
  struct ibv_mw* mw = ibv_alloc_mw(mine.pd, IBV_MW_TYPE_2);
  MUST(ah && mw && ibv_dealloc_mw(mw) == 0 && ibv_destroy_ah(ah) == 0);
}
static void make_id(void) {
  struct rdma_event_channel* events = rdma_create_event_channel();
  struct rdma_cm_id* id = NULL;
  struct sockaddr_in any = {.sin_family = AF_INET};
  MUST(events && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
  MUST(rdma_bind_addr(id, (struct sockaddr*)&any) == 0 && rdma_listen(id, 1) == 0 &&
       rdma_destroy_id(id) == 0);
  rdma_destroy_event_channel(events);
}

/* --- calls of the data path --- */

static int events; /* that wait in the channel */

static void wake(void) {
  expect_event(&b, memory, 64, region->lkey);
  MUST(post(&a, IBV_WR_SEND, 64, region->lkey) == 0);
  MUST(poll_one(a.cq).status == 0 && poll_one(b.cq).status == 0);
  ++events;
}
static void take_events(void) {
  for (; events > 0; --events) {
    struct ibv_cq* cq;
    void* context;
    MUST(ibv_get_cq_event(channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
  }
}
/* The receive comes later: the send waits, and is carried out by a poll or by the receive. */
static void wait_for_receive(void) {
  MUST(post(&a, IBV_WR_SEND, 64, region->lkey) == 0);
  struct ibv_wc wc;
  for (int i = 0; i < 10000; ++i) MUST(ibv_poll_cq(a.cq, 1, &wc) == 0);
  post_receive(&b, memory, 64, region->lkey);
  MUST(poll_one(a.cq).status == 0 && poll_one(b.cq).status == 0);
}
static void poll_nothing(void) {
  struct ibv_wc wc;
  for (int i = 0; i < 20000; ++i) MUST(ibv_poll_cq(a.cq, 1, &wc) == 0);
}
static void refuse_post(void) {
  MUST(post(&a, IBV_WR_TSO, 64, region->lkey) != 0);
}
static void reach_peer(void) {
  for (int i = 0; i < 3; ++i) {
    MUST(order_own(&mine, WRITE, region->lkey, memory, BYTES) == 0);
    MUST(order_own(&mine, READ, region->lkey, memory, 64) == 0);
  }
}
/* Its failure is told to softibd; both ends break, and are made again. */
static void fail(void) {
  MUST(post(&a, IBV_WR_SEND, 64, 0x12345) == 0);
  MUST(poll_one(a.cq).status == IBV_WC_LOC_PROT_ERR);
  join_ends();
}

struct call {
  const char* name;
  void (*run)(void);
};
static const struct call calls[] = {
    {"ibv_reg_mr", make_mr},
    {"ibv_alloc_pd", make_pd},
    {"ibv_create_cq", make_cq},
    {"ibv_create_qp", make_qp},
    {"ibv_query", query},
    {"ibv_reg_mr, refused", refuse_mr},
    {"ibv_create_srq", make_srq},
    {"ibv_create_ah, ibv_alloc_mw", make_others},
    {"ibv_create_comp_channel", make_channel},
    {"ibv_get_device_list", list_devices},
    {"ibv_open_device", open_device},
    {"rdma_create_id", make_id},
    {"ibv_poll_cq", poll_nothing},
    {"ibv_post_send, refused", refuse_post},
    {"ibv_post_send that waits", wait_for_receive},
    {"ibv_post_send to another process", reach_peer},
    {"ibv_post_send that fails", fail},
    {"ibv_post_send that wakes", wake},
    {"ibv_get_cq_event", take_events}, /* which is a cancellation point */
};
enum { CALLS = sizeof calls / sizeof calls[0], CONTROL = 6, WITHOUT_WAIT = CALLS - 1 };

static void open_all(void) {
  alarm(120);
  start_peer();
  open_side(&mine);
  connect_peer(&mine);
  a.context = b.context = mine.context;
  a.pd = b.pd = mine.pd;
  a.lid = b.lid = mine.lid;
  MUST(channel = ibv_create_comp_channel(mine.context));
  MUST(a.cq = ibv_create_cq(mine.context, 64, NULL, NULL, 0));
  MUST(b.cq = ibv_create_cq(mine.context, 64, NULL, channel, 0));
  memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED);
  MUST(region = ibv_reg_mr(mine.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE));
  join_ends();
}

static void* end_of(pthread_t thread) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += SECONDS;
  void* result = NULL;
  MUST(pthread_timedjoin_np(thread, &result, &limit) == 0);
  return result;
}

/* --- pending --- */

static volatile int returned;

static void* make_call(void* call) {
  pthread_cancel(pthread_self());
  ((const struct call*)call)->run();
  returned = 1;
  pthread_testcancel();
  returned = 0;
  return NULL;
}

static void pending(void) {
  int ended = 0;
  for (int i = 0; i < WITHOUT_WAIT; ++i) {
    pthread_t thread;
    returned = 0;
    MUST(pthread_create(&thread, NULL, make_call, (void*)&calls[i]) == 0);
    MUST(end_of(thread) == PTHREAD_CANCELED);
    if (!returned) printf("%s is a cancellation point\n", calls[i].name);
    ended += !returned;
    calls[i].run();
  }
  MUST(ended == 0);
}

/* --- random, async --- */

static volatile int rounds;

static void* make_all_calls(void* unused) {
  for (unsigned i = 0;; ++i) {
    calls[i % CALLS].run();
    ++rounds;
    pthread_testcancel();
  }
  return unused;
}
static void* make_control_calls(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (unsigned i = 0;; ++i) {
    calls[i % CONTROL].run();
    ++rounds;
  }
  return unused;
}

static void cancel_at_random(int times, void* (*body)(void*)) {
  for (int i = 0; i < times; ++i) {
    pthread_t thread;
    const int begin = rounds;
    MUST(pthread_create(&thread, NULL, body, NULL) == 0);
    while (rounds - begin < i % CALLS) sched_yield();
    for (volatile int spin = rand() % 100000; spin > 0; --spin) {}
    MUST(pthread_cancel(thread) == 0 && end_of(thread) == PTHREAD_CANCELED);
    /* A message that was under way may have left its completion or event. */
    struct ibv_wc wc;
    join_ends();
    while (ibv_poll_cq(a.cq, 1, &wc) > 0 || ibv_poll_cq(b.cq, 1, &wc) > 0) {}
    make_pd();
  }
  for (int i = 0; i < CALLS; ++i) calls[i].run();
}

/* --- waiting --- */

static struct rdma_event_channel* cm_events;

static void* wait_for_completion(void* which) {
  struct ibv_cq* cq;
  void* context;
  *(volatile int*)which = 1;
  MUST(ibv_get_cq_event(channel, &cq, &context) == 0);
  return NULL;
}
static void* wait_for_async(void* which) {
  struct ibv_async_event event;
  *(volatile int*)which = 1;
  MUST(ibv_get_async_event(mine.context, &event) == 0);
  return NULL;
}
static void* wait_for_cm(void* which) {
  struct rdma_cm_event* event;
  *(volatile int*)which = 1;
  MUST(rdma_get_cm_event(cm_events, &event) == 0);
  return NULL;
}

static void cancel_in(void* (*wait)(void*)) {
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    volatile int waits = 0;
    MUST(pthread_create(&thread, NULL, wait, (void*)&waits) == 0);
    while (!waits) sched_yield();
    for (volatile int spin = rand() % 1000000; spin > 0; --spin) {}
    MUST(pthread_cancel(thread) == 0 && end_of(thread) == PTHREAD_CANCELED);
  }
}

/* An event that nobody has read, of a queue that is gone. */
static void leave_event(void) {
  struct side old = b;
  MUST(b.cq = ibv_create_cq(mine.context, 64, NULL, channel, 0));
  join_ends();
  expect_event(&b, memory, 64, region->lkey);
  MUST(post(&a, IBV_WR_SEND, 64, region->lkey) == 0 && poll_one(b.cq).status == 0);
  MUST(poll_one(a.cq).status == 0 && ibv_destroy_qp(b.qp) == 0 && ibv_destroy_cq(b.cq) == 0);
  b = old;
  b.qp = NULL;
  join_ends();
}

static void waiting(void) {
  cancel_in(wait_for_completion);
  leave_event();
  cancel_in(wait_for_completion);
  wake();
  take_events();
  cancel_in(wait_for_async);
  struct ibv_async_event event;
  MUST(post(&a, IBV_WR_RDMA_WRITE, 8, region->lkey) == 0 && poll_one(a.cq).status != 0);
  MUST(ibv_get_async_event(mine.context, &event) == 0 &&
       event.event_type == IBV_EVENT_QP_ACCESS_ERR);
  ibv_ack_async_event(&event);
  MUST(cm_events = rdma_create_event_channel());
  struct rdma_cm_id* id = NULL;
  MUST(rdma_create_id(cm_events, &id, NULL, RDMA_PS_TCP) == 0);
  cancel_in(wait_for_cm);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
  inet_pton(AF_INET, "127.77.0.1", &to.sin_addr);
  struct rdma_cm_event* got = NULL;
  MUST(rdma_resolve_addr(id, NULL, (struct sockaddr*)&to, 2000) == 0);
  MUST(rdma_get_cm_event(cm_events, &got) == 0 && got->event == RDMA_CM_EVENT_ADDR_RESOLVED);
  rdma_ack_cm_event(got);
  MUST(rdma_destroy_id(id) == 0);
  rdma_destroy_event_channel(cm_events);
}

/* --- exit --- */

static void leave(int signal) {
  (void)signal;
  exit(0);
}

static void exit_at_random(int times) {
  for (int i = 0; i < times; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      open_all();
      signal(SIGALRM, leave);
      srand((unsigned)i);
      const struct itimerval soon = {.it_value.tv_usec = 1 + rand() % 20000};
      setitimer(ITIMER_REAL, &soon, NULL);
      make_all_calls(NULL);
    }
    const time_t give_up = time(NULL) + SECONDS;
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 && time(NULL) <= give_up) usleep(1000);
    if (ended == 0) kill(child, SIGABRT);
    MUST(ended == child && status == 0);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "pending";
  const int times = argc > 2 ? atoi(argv[2]) : 100;
  if (strcmp(mode, "exit") == 0) {
    exit_at_random(times);
  } else {
    open_all();
    if (strcmp(mode, "pending") == 0) pending();
    if (strcmp(mode, "random") == 0) cancel_at_random(times, make_all_calls);
    if (strcmp(mode, "async") == 0) cancel_at_random(times, make_control_calls);
    if (strcmp(mode, "waiting") == 0) waiting();
    end_peer();
  }
  puts("good");
  return 0;
}
