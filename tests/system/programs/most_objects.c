/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * most_objects [KIND...]: creates as many objects of each kind as ibv_query_device returns, then
 * one more, and destroys them: "KIND: COUNT of COUNT, one more: TEXT" a line. Without KIND: all.
 * Channels and contexts end with the file descriptors: "KIND: TEXT". */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static char memory[4096];

static void* make_pd(void) { return ibv_alloc_pd(context); }
static int drop_pd(void* o) { return ibv_dealloc_pd(o); }
static void* make_cq(void) { return ibv_create_cq(context, 1, NULL, NULL, 0); }
static int drop_cq(void* o) { return ibv_destroy_cq(o); }
static void* make_mr(void) { return ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE); }
static int drop_mr(void* o) { return ibv_dereg_mr(o); }
static void* make_mw(void) { return ibv_alloc_mw(pd, IBV_MW_TYPE_1); }
static int drop_mw(void* o) { return ibv_dealloc_mw(o); }
static void* make_srq(void) {
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
  return ibv_create_srq(pd, &init);
}
static int drop_srq(void* o) { return ibv_destroy_srq(o); }
static void* make_qp(void) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
  init.cap.max_send_wr = init.cap.max_recv_wr = init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  return ibv_create_qp(pd, &init);
}
static int drop_qp(void* o) { return ibv_destroy_qp(o); }

static void* make_channel(void) { return ibv_create_comp_channel(context); }
static int drop_channel(void* o) { return ibv_destroy_comp_channel(o); }
static void* make_context(void) { return ibv_open_device(context->device); }
static int drop_context(void* o) { return ibv_close_device(o); }

static char** kinds; /* from the command line */

static int fill(const char* kind, int most, void* (*make)(void), int (*drop)(void*)) {
  int count = 0, wrong = 0, wanted = !kinds[0];
  for (char** k = kinds; *k; ++k) wanted |= !strcmp(*k, kind);
  if (!wanted) return 0;
  void** made = calloc((size_t)most + 1, sizeof *made);
  if (!made) return 1;
  while (count < most && (made[count] = make())) ++count;
  const char* more = "not tried";
  if (count == most) {
    errno = 0;
    void* another = make();
    more = another ? "made" : strerror(errno);
    if (another && drop(another)) ++wrong;
  } else {
    more = strerror(errno);
  }
  printf("%s: %d of %d, one more: %s\n", kind, count, most, more);
  fflush(stdout);
  for (int i = 0; i < count; ++i) wrong += drop(made[i]) != 0;
  free(made);
  return wrong || count != most;
}

static int run_out(const char* kind, void* (*make)(void), int (*drop)(void*)) {
  enum { kMost = 256 };
  void* made[kMost];
  int count = 0, wrong = 0, wanted = !kinds[0];
  for (char** k = kinds; *k; ++k) wanted |= !strcmp(*k, kind);
  if (!wanted) return 0;
  struct rlimit before, few;
  if (getrlimit(RLIMIT_NOFILE, &before)) return 1;
  few = before;
  few.rlim_cur = 64;
  if (setrlimit(RLIMIT_NOFILE, &few)) return 1;
  errno = 0;
  while (count < kMost && (made[count] = make())) ++count;
  printf("%s: %s\n", kind, count == kMost ? "no end" : strerror(errno));
  fflush(stdout);
  for (int i = 0; i < count; ++i) wrong += drop(made[i]) != 0;
  return wrong + (setrlimit(RLIMIT_NOFILE, &before) != 0) + (count == kMost);
}

int main(int argc, char** argv) {
  kinds = argv + (argc > 0);
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_device_attr have;
  if (!list || !list[0] || !(context = ibv_open_device(list[0])) || ibv_query_device(context, &have)) {
    perror("the device");
    return 2;
  }
  int wrong = fill("pd", have.max_pd, make_pd, drop_pd) + fill("cq", have.max_cq, make_cq, drop_cq);
  if (!(pd = ibv_alloc_pd(context)) || !(cq = ibv_create_cq(context, 1, NULL, NULL, 0))) {
    perror("pd, cq");
    return 2;
  }
  wrong += fill("mr", have.max_mr, make_mr, drop_mr) + fill("mw", have.max_mw, make_mw, drop_mw);
  wrong += fill("srq", have.max_srq, make_srq, drop_srq) + fill("qp", have.max_qp, make_qp, drop_qp);
  wrong += run_out("channel", make_channel, drop_channel);
  wrong += run_out("context", make_context, drop_context);
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
