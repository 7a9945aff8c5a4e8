/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A stand-in for the libibverbs of one version of rdma-core, as far as a plug-in sees it: the symbols of its private
   ABI, the table of operations, struct verbs_context and struct ibv_qp_ex of that version. stand_in_check() loads the
   plug-in as libibverbs does, and prints the name of each operation that it was given with its place in the plug-in.

   cc -DABI=57 -DRELEASE=57 -DQP_EX_FUNCTIONS=22 ... */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "operations.h"

#define NUMBER_OF_(abi) verbs_register_driver_##abi
#define NUMBER_OF(abi) NUMBER_OF_(abi)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* Facts of rdma-core's private headers. */
struct list_node {
  struct list_node *next, *prev;
};
struct verbs_sysfs_dev {
  struct list_node entry;
  void* provider_data;
  const void* match;
  unsigned flags;
  char sysfs_name[IBV_SYSFS_NAME_MAX];
  dev_t sysfs_cdev;
  char ibdev_name[IBV_SYSFS_NAME_MAX];
  char ibdev_path[IBV_SYSFS_PATH_MAX];
  char rest[600];
};
struct verbs_device;
struct verbs_device_ops {
  const char* name;
  uint32_t match_min_abi_version, match_max_abi_version;
  const void* match_table;
  const struct verbs_device_ops** static_providers;
  _Bool (*match_device)(struct verbs_sysfs_dev*);
  struct verbs_context* (*alloc_context)(struct ibv_device*, int, void*);
  struct verbs_context* (*import_context)(struct ibv_device*, int);
  struct verbs_device* (*alloc_device)(struct verbs_sysfs_dev*);
  void (*uninit_device)(struct verbs_device*);
};
struct verbs_device {
  struct ibv_device device;
  const struct verbs_device_ops* ops;
  int refcount;
  struct list_node entry;
  struct verbs_sysfs_dev* sysfs;
  uint64_t core_support;
};
struct private_part {
  char before[24];
  void* ops[OPERATIONS];
};
struct mr_init_attr {
  size_t length;
  int access;
  uint64_t comp_mask, iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  void *dmah, *buf;
};

/* Of struct verbs_context in this release, before the struct ibv_context at its end. */
static size_t context_head(void) {
  size_t head = offsetof(struct verbs_context, context);
  for (size_t i = 0; i < OPERATIONS; ++i) {
    const long place = operations[i].place;
    if (operations[i].since <= RELEASE && place != NOWHERE && (long)head < -place) head = (size_t)-place;
  }
  return head;
}

static const struct verbs_device_ops* driver;
static int registered;
void NUMBER_OF(ABI)(const struct verbs_device_ops* ops) {
  driver = ops;
  ++registered;
}

static struct ibv_context* context_in(struct verbs_context* verbs) {
  return (struct ibv_context*)((char*)verbs + context_head());
}
static struct private_part* private_of(struct ibv_context* context) {
  struct private_part* found;
  memcpy(&found, (char*)context + CONTEXT_END(priv), sizeof found);
  return found;
}

static _Bool has(const struct operation* operation) {
#ifdef MISSING
  if (strcmp(operation->name, MISSING) == 0) return 0;
#endif
  return operation->since <= RELEASE;
}

void verbs_set_ops(struct verbs_context* verbs, void* const* ops) {
  struct ibv_context* context = context_in(verbs);
  struct private_part* private = private_of(context);
  size_t next = 0;
  for (size_t i = 0; i < OPERATIONS; ++i) {
    if (!has(&operations[i])) continue;
    if (ops[next] != NULL) {
      private->ops[next] = ops[next];
      if (operations[i].place != NOWHERE) memcpy((char*)context + operations[i].place, &ops[next], sizeof ops[next]);
    }
    ++next;
  }
}

void* _verbs_init_and_alloc_context(struct ibv_device* device, int fd, size_t size, struct verbs_context* offset,
                                    uint32_t driver_id) {
  (void)driver_id;
  if (offset != NULL || size < context_head() + sizeof(struct ibv_context)) return NULL;
  void* memory = calloc(1, size);
  struct ibv_context* context = context_in(memory);
  context->device = device;
  context->cmd_fd = fd;
  context->async_fd = -1;
  pthread_mutex_init(&context->mutex, NULL);
  context->abi_compat = (void*)(uintptr_t)-1;
  const size_t all = context_head() + sizeof(struct ibv_context);
  memcpy((char*)context + CONTEXT_END(sz), &all, sizeof all);
  struct private_part* private = calloc(1, sizeof *private);
  memcpy((char*)context + CONTEXT_END(priv), &private, sizeof private);
  return memory;
}
void verbs_uninit_context(struct verbs_context* verbs) {
  struct ibv_context* context = context_in(verbs);
  free(private_of(context));
  close(context->cmd_fd);
}

/* struct verbs_qp: comp_mask behind the functions, of which the first is wr_atomic_cmp_swp. */
#define FIRST_FUNCTION offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp)
struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp) {
  uint32_t mask;
  memcpy(&mask, (char*)qp + FIRST_FUNCTION + QP_EX_FUNCTIONS * sizeof(void*), sizeof mask);
  return (mask & 2) != 0 ? (struct ibv_qp_ex*)qp : NULL;
}

struct ibv_device** ibv_get_device_list(int* count) {
  if (count != NULL) *count = 0;
  return NULL;
}

/* The checks. */
static int wrong;
#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      printf("line %d: not true: %s (%s)\n", __LINE__, #condition, strerror(errno)); \
      ++wrong;                                                              \
    }                                                                       \
  } while (0)

static long place_of(const void* function) {
  Dl_info found;
  if (dladdr(function, &found) == 0) return -1;
  return strstr(found.dli_fname, "libsoftib-rdmav") != NULL ? (char*)function - (char*)found.dli_fbase : -1;
}

/* The operation of that name in the table that the plug-in gave, or NULL. */
static void* operation(struct ibv_context* context, const char* name) {
  size_t next = 0;
  for (size_t i = 0; i < OPERATIONS; ++i) {
    if (!has(&operations[i])) continue;
    if (strcmp(operations[i].name, name) == 0) return private_of(context)->ops[next];
    ++next;
  }
  return NULL;
}

static void print_operations(struct ibv_context* context) {
  for (size_t i = 0; i < OPERATIONS; ++i) {
    void* function = operation(context, operations[i].name);
    if (function == NULL) continue;
    printf("operation %s %lx\n", operations[i].name, place_of(function));
    CHECK(place_of(function) > 0);
    void* copied = function;
    if (operations[i].place != NOWHERE) memcpy(&copied, (char*)context + operations[i].place, sizeof copied);
    CHECK(copied == function);
  }
}

static void check_device(struct verbs_device* device, struct verbs_sysfs_dev* sysfs) {
  CHECK(strcmp(driver->name, "softib") == 0);
  CHECK(driver->match_min_abi_version == 0 && driver->match_max_abi_version == UINT32_MAX);
  CHECK(driver->static_providers == NULL && driver->match_table == NULL);
  CHECK(place_of(*(void**)&driver->alloc_context) > 0 && place_of(*(void**)&driver->import_context) > 0);
  CHECK(place_of(*(void**)&driver->uninit_device) > 0);
  CHECK(driver->match_device(sysfs));
  struct verbs_sysfs_dev other = *sysfs;
  strcpy(other.ibdev_name, "mlx5_0");
  CHECK(!driver->match_device(&other));
  device->ops = driver;
  device->sysfs = sysfs;
  strcpy(device->device.name, sysfs->ibdev_name);
  strcpy(device->device.dev_name, sysfs->sysfs_name);
  snprintf(device->device.dev_path, sizeof device->device.dev_path, "/sys/class/infiniband_verbs/%s", sysfs->sysfs_name);
  strcpy(device->device.ibdev_path, sysfs->ibdev_path);
}

static void check_queue_pair(struct ibv_context* context, struct ibv_pd* pd, struct ibv_cq* cq) {
  struct ibv_qp* (*create)(struct ibv_context*, struct ibv_qp_init_attr_ex*) = operation(context, "create_qp_ex");
  int (*destroy)(struct ibv_qp*) = operation(context, "destroy_qp");
  struct ibv_qp_init_attr_ex attr = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 16}, .qp_type = IBV_QPT_RC,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
  struct ibv_qp* plain = create(context, &attr);
  CHECK(plain != NULL && ibv_qp_to_qp_ex(plain) == NULL);
  attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  struct ibv_qp* qp = create(context, &attr);
  CHECK(qp != NULL && (void*)ibv_qp_to_qp_ex(qp) == (void*)qp);
  if (plain == NULL || qp == NULL) return;
  for (int i = 0; i <= QP_EX_FUNCTIONS; ++i) {
    void* function;
    memcpy(&function, (char*)qp + FIRST_FUNCTION + (size_t)i * sizeof function, sizeof function);
    if (i < QP_EX_FUNCTIONS) printf("function %d %lx\n", i, place_of(function));
    if (i < QP_EX_FUNCTIONS) CHECK(place_of(function) > 0);
    if (i == QP_EX_FUNCTIONS) CHECK((uintptr_t)function == 2); /* comp_mask */
  }
  attr.send_ops_flags = 1 << 11; /* IBV_QP_EX_WITH_FLUSH */
  errno = 0;
  struct ibv_qp* flushing = create(context, &attr);
  CHECK(QP_EX_FUNCTIONS >= 22 ? flushing != NULL && destroy(flushing) == 0 : flushing == NULL && errno == EOPNOTSUPP);
  CHECK(destroy(qp) == 0 && destroy(plain) == 0);
}

static void check_registration(struct ibv_context* context, struct ibv_pd* pd) {
  static char memory[8192] __attribute__((aligned(4096)));
  struct ibv_mr* (*reg_mr_ex)(struct ibv_pd*, struct mr_init_attr*) = operation(context, "reg_mr_ex");
  int (*dereg_mr)(struct ibv_mr*) = operation(context, "dereg_mr");
  CHECK((reg_mr_ex != NULL) == (RELEASE >= 59));
  if (reg_mr_ex == NULL) return;
  struct mr_init_attr attr = {.length = sizeof memory, .access = IBV_ACCESS_LOCAL_WRITE, .comp_mask = 2, .addr = memory};
  struct ibv_mr* mr = reg_mr_ex(pd, &attr);
  CHECK(mr != NULL && mr->lkey != 0);
  if (mr != NULL) CHECK(dereg_mr(mr) == 0);
  attr.comp_mask = 1; /* an IOVA alone */
  errno = 0;
  CHECK(reg_mr_ex(pd, &attr) == NULL && errno == EINVAL);
  attr.comp_mask = 2 | 1 << 4; /* a DMA handle */
  CHECK(reg_mr_ex(pd, &attr) == NULL && errno == EOPNOTSUPP);
}

static void check_speed(struct ibv_context* context) {
  int (*query_port_speed)(struct ibv_context*, uint32_t, uint64_t*) = operation(context, "query_port_speed");
  CHECK((query_port_speed != NULL) == (RELEASE >= 62));
  if (query_port_speed == NULL) return;
  uint64_t speed = 0;
  CHECK(query_port_speed(context, 1, &speed) == 0);
  CHECK(query_port_speed(context, 7, &speed) != 0 && query_port_speed(context, 257, &speed) != 0);
  printf("speed %lu\n", (unsigned long)speed);
}

static void check_context(struct ibv_context* context) {
  struct ibv_pd* (*alloc_pd)(struct ibv_context*) = operation(context, "alloc_pd");
  int (*dealloc_pd)(struct ibv_pd*) = operation(context, "dealloc_pd");
  struct ibv_cq* (*create_cq)(struct ibv_context*, int, struct ibv_comp_channel*, int) = operation(context, "create_cq");
  int (*destroy_cq)(struct ibv_cq*) = operation(context, "destroy_cq");
  struct ibv_pd* pd = alloc_pd(context);
  struct ibv_cq* cq = create_cq(context, 16, NULL, 0);
  CHECK(pd != NULL && cq != NULL);
  if (pd == NULL || cq == NULL) return;
  pthread_mutex_init(&cq->mutex, NULL);
  pthread_cond_init(&cq->cond, NULL);
  check_queue_pair(context, pd, cq);
  check_registration(context, pd);
  check_speed(context);
  CHECK(destroy_cq(cq) == 0 && dealloc_pd(pd) == 0);
}

int stand_in_check(void) {
  char path[512];
  snprintf(path, sizeof path, "%s-rdmav" TEXT(ABI) ".so", getenv("RDMAV_DRIVERS"));
  if (dlopen(path, RTLD_NOW) == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  int size = 0;
  for (size_t i = 0; i < OPERATIONS; ++i) size += has(&operations[i]);
  printf("table %d\nregistered %d\n", size, registered);
  if (registered == 0) return 1;
  struct verbs_sysfs_dev sysfs = {.sysfs_name = "uverbs0", .ibdev_name = "softib0",
                                  .ibdev_path = "/sys/class/infiniband/softib0"};
  struct verbs_device* device = driver->alloc_device(&sysfs);
  CHECK(device != NULL);
  check_device(device, &sysfs);
  struct verbs_context* verbs = driver->alloc_context(&device->device, open("/dev/infiniband/uverbs0", O_RDWR), NULL);
  CHECK(verbs != NULL);
  if (verbs == NULL) return 1;
  struct ibv_context* context = context_in(verbs);
  CHECK(context->num_comp_vectors == 1 && context->async_fd >= 0);
  print_operations(context);
  check_context(context);
  void (*free_context)(struct ibv_context*) = operation(context, "free_context");
  free_context(context);
  driver->uninit_device(device);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
