// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Is loaded into QEMU 7.2 and works around two faults of its migration with postcopy, on adapters as well:
 * - it connects without RNR retries, and posts a receive after its peer was told that it may send;
 * - the handler of a connection's end enters the coroutine that has loaded the machine, which has ended. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

enum { WITHOUT_END = 7 };
typedef int call(struct rdma_cm_id *, struct rdma_conn_param *);
typedef int next_event(struct rdma_event_channel *, struct rdma_cm_event **);

static int with_retries(const char *name, struct rdma_cm_id *id, struct rdma_conn_param *param) {
  param->rnr_retry_count = WITHOUT_END;
  return ((call *)dlsym(RTLD_NEXT, name))(id, param);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param) {
  return with_retries("rdma_connect", id, param);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param) {
  return with_retries("rdma_accept", id, param);
}

/* To its handler there is no event then, and it returns. */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event) {
  const int failed = ((next_event *)dlsym(RTLD_NEXT, "rdma_get_cm_event"))(channel, event);
  if (failed || (*event)->event != RDMA_CM_EVENT_DISCONNECTED) return failed;
  rdma_ack_cm_event(*event);
  errno = ENOTCONN;
  return -1;
}
