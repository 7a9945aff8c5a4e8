/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A preload library that gives osc ucx of OpenMPI 4.1 what it lacks: MPI_Get_accumulate with MPI_REPLACE is a
 * ucp_get_nbi and a ucp_put_nbi to the same bytes, which UCX does not order without a flush between them. Where a
 * transport has no RDMA reads (ud_v, posix), UCX gets by messages, and the target answers when it can, by then perhaps
 * with the bytes that the put has brought. Here a put waits for the gets before it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

typedef ucs_status_t get_call(ucp_ep_h, void*, size_t, uint64_t, ucp_rkey_h);
typedef ucs_status_t put_call(ucp_ep_h, const void*, size_t, uint64_t, ucp_rkey_h);
typedef ucs_status_t create_call(ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h*);

enum { MOST = 256 };
static struct endpoint {
  ucp_ep_h ep;
  ucp_worker_h worker;
  int has_gets; /* that no put has waited for */
} known[MOST];

static void fail(const char* what) {
  fprintf(stderr, "flush_before_put: ERROR: %s\n", what);
  abort();
}

static void* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == NULL) fail(name);
  return found;
}

/* Its place, or a free one. */
static struct endpoint* place_of(ucp_ep_h ep) {
  for (int i = 0; i < MOST; ++i) {
    if (known[i].ep == ep || known[i].ep == NULL) return &known[i];
  }
  fail("too many endpoints");
  return NULL;
}

static void flush(struct endpoint* at) {
  const ucp_request_param_t plain = {0};
  void* const request = ucp_ep_flush_nbx(at->ep, &plain);
  if (request == NULL) return;
  if (UCS_PTR_IS_ERR(request)) fail("ucp_ep_flush_nbx");
  while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(at->worker);
  ucp_request_free(request);
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* params, ucp_ep_h* ep) {
  const ucs_status_t status = ((create_call*)next("ucp_ep_create"))(worker, params, ep);
  if (status == UCS_OK) *place_of(*ep) = (struct endpoint){*ep, worker, 0};
  return status;
}

ucs_status_t ucp_get_nbi(ucp_ep_h ep, void* to, size_t length, uint64_t from, ucp_rkey_h rkey) {
  place_of(ep)->has_gets = 1;
  return ((get_call*)next("ucp_get_nbi"))(ep, to, length, from, rkey);
}

ucs_status_t ucp_put_nbi(ucp_ep_h ep, const void* from, size_t length, uint64_t to, ucp_rkey_h rkey) {
  struct endpoint* const at = place_of(ep);
  if (at->has_gets) flush(at);
  at->has_gets = 0;
  return ((put_call*)next("ucp_put_nbi"))(ep, from, length, to, rkey);
}
