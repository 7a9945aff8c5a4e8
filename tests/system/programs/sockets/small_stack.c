// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread with the smallest stack that there is. Thread-local variables of libraries are a part of
// it.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void* nothing(void* argument) {
  return argument;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  const int error = pthread_create(&thread, &attributes, nothing, NULL);
  if (error != 0) {
    printf("pthread_create: %s\n", strerror(error));
    return 1;
  }
  pthread_join(thread, NULL);
  puts("all right");
  return 0;
}
