// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For programs that check rules of libibverbs: one line per broken rule, counted.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int broken;

#define RULE(holds, ...)                         \
  do {                                           \
    if (!(holds)) {                              \
      ++broken;                                  \
      printf("line %d: %s: ", __LINE__, #holds); \
      printf(__VA_ARGS__);                       \
      printf("\n");                              \
    }                                            \
  } while (0)
#define NEED(thing)                                                          \
  do {                                                                       \
    if (!(thing)) {                                                          \
      printf("line %d: %s failed: %s\n", __LINE__, #thing, strerror(errno)); \
      exit(2);                                                               \
    }                                                                        \
  } while (0)

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline struct ibv_wc next_completion(struct ibv_cq* cq) {
  struct ibv_wc wc = {0};
  const double end = now() + 20;
  while (now() < end) {
    if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
  }
  printf("no completion came\n");
  exit(2);
}
