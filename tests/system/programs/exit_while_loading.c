// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program of libibverbs that ends while a thread of it loads and unloads a library, as a thread
// that is cancelled does for the unwinder.
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int rounds;

static void *load(void *unused) {
  for (;;) {
    void *library = dlopen("libutil.so.1", RTLD_NOW);
    if (library != NULL) dlclose(library);
    atomic_fetch_add(&rounds, 1);
  }
  return unused;
}

int main(void) {
  int count = 0;
  struct ibv_device **devices = ibv_get_device_list(&count);
  if (devices == NULL || count == 0) return 1;
  ibv_free_device_list(devices);
  pthread_t thread;
  for (int i = 0; i < 4; ++i)
    if (pthread_create(&thread, NULL, load, NULL) != 0) return 1;
  while (atomic_load(&rounds) < 20) sched_yield();
  printf("ends\n");
  return 0;
}
