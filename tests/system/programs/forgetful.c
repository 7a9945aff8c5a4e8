/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * A program that forgets what it has made, for the leak checkers of tools_test.py: they name its
 * own functions, and nothing else. Prints "good" at its end. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context* context;

__attribute__((noinline)) static void forget_memory(void) {
  char* volatile memory = malloc(777);
  memset(memory, 1, 777);
  memory = NULL;
}
__attribute__((noinline)) static void forget_pd(void) {
  struct ibv_pd* volatile pd = ibv_alloc_pd(context);
  if (!pd) exit(2);
  pd = NULL;
}
__attribute__((noinline)) static void forget_cq(void) {
  struct ibv_cq* volatile cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  if (!cq) exit(2);
  cq = NULL;
}
/* Over what the others have left on the stack. */
__attribute__((noinline)) static void forget_stack(void) {
  char volatile room[16384];
  for (size_t i = 0; i < sizeof room; ++i) room[i] = 0;
}

int main(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  if (!list || !list[0] || !(context = ibv_open_device(list[0]))) return 2;
  ibv_free_device_list(list);
  forget_memory();
  forget_pd();
  forget_cq();
  forget_stack();
  ibv_close_device(context);
  puts("good");
  fflush(stdout); /* LeakSanitizer ends the program */
  return 0;
}
