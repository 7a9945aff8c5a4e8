/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Blocks of an allocator are registered, written by a peer, deregistered and freed; the memory of later
 * calloc() and realloc() calls must have the content that C promises. */
#include "two_sides.h"

#include <pthread.h>

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

static struct side own;

static unsigned long next(unsigned long* x) {
  *x = *x * 6364136223846793005ul + 1442695040888963407ul;
  return *x >> 33;
}

static size_t dirty_bytes(const unsigned char* at, size_t size) {
  size_t dirty = 0;
  for (size_t i = 0; i < size; ++i) dirty += at[i] != 0;
  return dirty;
}

/* Another thread that allocates and frees, so that arenas of threads are used too. */
static void* churn(void* stop) {
  unsigned long x = 99;
  while (!__atomic_load_n((int*)stop, __ATOMIC_RELAXED)) {
    const size_t size = 4096 + next(&x) % 200000;
    unsigned char* block = calloc(1, size);
    if (!block || dirty_bytes(block, size)) {
      fprintf(stderr, "calloc() of the other thread is dirty\n");
      exit(1);
    }
    memset(block, 0xaa, size);
    free(block);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 200;
  unsigned long x = 7, dirty = 0, changed = 0;
  start_peer();
  open_side(&own);
  connect_peer(&own);
  int stop = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, churn, &stop);
  for (int round = 0; round < rounds; ++round) {
    const size_t size = 8192 + next(&x) % 900000;
    unsigned char* block = malloc(size);
    memset(block, 0x5a, size);
    struct ibv_mr* mr = ibv_reg_mr(own.pd, block, size, ACCESS);
    if (!mr) die("ibv_reg_mr");
    if (order_peer(&own, WRITE, mr->rkey, block, 8192, 0x77, NULL).status) die("WRITE");
    if (ibv_dereg_mr(mr)) die("ibv_dereg_mr");
    if (round % 3 == 0) {
      const size_t more = size + next(&x) % 900000;
      block = realloc(block, more);
      changed += block[0] != 0x77 || block[8191] != 0x77 || block[size - 1] != (size > 8192 ? 0x5a : 0x77);
      memset(block, 0x5a, more);
    }
    free(block);
    unsigned char* zeros = calloc(1, size);
    dirty += dirty_bytes(zeros, size) != 0;
    memset(zeros, 0x33, size);
    free(zeros);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  end_peer();
  printf("%d rounds, %lu dirty, %lu changed\n", rounds, dirty, changed);
  return dirty || changed;
}
