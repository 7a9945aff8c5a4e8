// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads that are cancelled in calls that wait. cancelled PORT serves: in each call, some threads
// after they have fallen asleep, some before, some asynchronously. After each call the connection
// or the listener still does its work. cancelled PORT ADDRESS is its client, which does what single
// bytes command.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 8, CHECKS = 3, LARGE = 1 << 20 };
enum { ECHO = 'e', CONNECT = 'c', END = 'x' };

static struct sockaddr_in name = {.sin_family = AF_INET};
static int listener, connection, sink, set;
static char large[LARGE];
static sem_t started;
static atomic_int cleaned;
static atomic_int tid;  // of the thread that waits

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static void wait_in_accept(void) {
  close(accept(listener, NULL, NULL));
}
static void wait_in_recv(void) {
  char byte;
  recv(connection, &byte, 1, 0);
}
static void wait_in_read(void) {
  char byte;
  if (read(connection, &byte, 1) == 1) fail("a byte out of nowhere");
}
static void wait_in_send(void) {
  send(sink, large, sizeof large, 0);
}
static void wait_in_poll(void) {
  struct pollfd entry = {connection, POLLIN, 0};
  poll(&entry, 1, -1);
}
static void wait_in_select(void) {
  fd_set in;
  FD_ZERO(&in);
  FD_SET(connection, &in);
  select(connection + 1, &in, NULL, NULL, NULL);
}
static void wait_in_epoll(void) {
  struct epoll_event event;
  epoll_wait(set, &event, 1, -1);
}

static const struct call {
  const char* name;
  void (*wait)(void);
} kCalls[] = {{"accept", wait_in_accept}, {"recv", wait_in_recv},     {"read", wait_in_read},
              {"poll", wait_in_poll},     {"select", wait_in_select}, {"epoll_wait", wait_in_epoll},
              {"send", wait_in_send}};

struct task {
  const struct call* call;
  int is_asynchronous;
};

static void count_clean_up(void* argument) {
  (void)argument;
  atomic_fetch_add(&cleaned, 1);
}

static void* wait_for_ever(void* argument) {
  const struct task* task = argument;
  pthread_cleanup_push(count_clean_up, NULL);
  atomic_store(&tid, (int)syscall(SYS_gettid));
  sem_post(&started);
  if (task->is_asynchronous) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  while (1) task->call->wait();
  pthread_cleanup_pop(0);
  return NULL;
}

// Whether the thread sleeps in the kernel.
static int is_asleep(void) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&tid));
  FILE* file = fopen(path, "r");
  if (file == NULL || fgets(text, sizeof text, file) == NULL) fail(path);
  fclose(file);
  return strstr(text, ") S ") != NULL;
}

static void cancel_one(const struct call* call, int number) {
  struct task task = {call, number % 4 >= 2};
  pthread_t thread;
  void* result = NULL;
  if (pthread_create(&thread, NULL, wait_for_ever, &task) != 0) fail("pthread_create");
  while (sem_wait(&started) != 0) continue;
  while (number % 2 == 0 && !is_asleep()) sched_yield();
  if (pthread_cancel(thread) != 0 || pthread_join(thread, &result) != 0) fail("pthread_cancel");
  if (result != PTHREAD_CANCELED) fail("the thread has not been cancelled");
}

static void command(char byte) {
  if (send(connection, &byte, 1, 0) != 1) fail("command");
}

static void* command_when_asleep(void* byte) {
  while (!is_asleep()) sched_yield();
  command(*(char*)byte);
  return NULL;
}

// Commands `byte` as soon as this thread sleeps, in the call that follows.
static pthread_t command_later(char* byte) {
  pthread_t thread;
  atomic_store(&tid, (int)syscall(SYS_gettid));
  if (pthread_create(&thread, NULL, command_when_asleep, byte) != 0) fail("pthread_create");
  return thread;
}

static int accept_another(void) {
  char byte = CONNECT;
  const pthread_t other = command_later(&byte);
  const int fd = accept(listener, NULL, NULL);
  if (fd < 0) fail("accept");
  pthread_join(other, NULL);
  return fd;
}

static void hear_echo(void) {
  char byte = ECHO, back = 0;
  const pthread_t other = command_later(&byte);
  if (recv(connection, &back, 1, 0) != 1 || back != ECHO) fail("no echo");
  pthread_join(other, NULL);
}

static void check(void) {
  for (int i = 0; i < CHECKS; ++i) {
    hear_echo();
    if (close(accept_another()) != 0) fail("close");
  }
}

static void serve(void) {
  const int on = 1;
  listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr*)&name, sizeof name) != 0 || listen(listener, 8) != 0) {
    fail("listen");
  }
  connection = accept(listener, NULL, NULL);
  sink = accept_another();
  set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  if (epoll_ctl(set, EPOLL_CTL_ADD, connection, &event) != 0) fail("epoll_ctl");
  const int calls = sizeof kCalls / sizeof *kCalls;
  for (int i = 0; i < calls; ++i) {
    for (int k = 0; k < THREADS; ++k) cancel_one(&kCalls[i], k);
    check();
    printf("%s\n", kCalls[i].name);
    fflush(stdout);
  }
  if (atomic_load(&cleaned) != calls * THREADS) fail("frames of the program were left out");
  close(sink);
  command(END);
}

static int make_connection(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr*)&name, sizeof name) != 0) fail("connect");
  return fd;
}

static void obey(void) {
  char byte = 0;
  connection = make_connection();
  do {
    if (recv(connection, &byte, 1, 0) != 1) fail("recv");
    if (byte == ECHO && send(connection, &byte, 1, 0) != 1) fail("send");
    if (byte == CONNECT) make_connection();  // never read, and open to the end
  } while (byte != END);
}

int main(int count, char** words) {
  if (count < 2) return 2;
  name.sin_port = htons((uint16_t)atoi(words[1]));
  sem_init(&started, 0, 0);
  if (count > 2) {
    inet_pton(AF_INET, words[2], &name.sin_addr);
    obey();
  } else {
    serve();
  }
  puts("all right");
  return 0;
}
