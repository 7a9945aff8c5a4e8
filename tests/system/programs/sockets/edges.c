// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Servers with EPOLLET, as the runtimes of many languages are built. edges PORT greet takes all
// connections at each edge of its listener, and greets them; greet-out has EPOLLOUT in its events too. edges
// PORT echo has a thread that waits for edges of a connection, and another one that reads it and
// answers. With an ADDRESS behind they are the clients. The servers end after all of it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_TURN = 6, AT_ONCE = 8, ROUND_TRIPS = 2000, SECONDS = 20 };
static sem_t edges;
static struct sockaddr_in name = {.sin_family = AF_INET};

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int make_listener(int type) {
  const int listener = socket(AF_INET, type, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr*)&name, sizeof name) != 0 || listen(listener, 32) != 0) {
    fail("listen");
  }
  return listener;
}

static int watch(int fd, uint32_t events) {
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = events | EPOLLET, .data.fd = fd};
  if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
  return set;
}

static void wait_for_edge(int set) {
  struct epoll_event event;
  if (epoll_wait(set, &event, 1, -1) != 1) fail("epoll_wait");
}

static void greet(uint32_t events, int count) {
  const int listener = make_listener(SOCK_STREAM | SOCK_NONBLOCK);
  const int set = watch(listener, events);
  while (count > 0) {
    wait_for_edge(set);
    int fd = -1;
    while ((fd = accept4(listener, NULL, NULL, 0)) >= 0) {
      if (write(fd, "!", 1) != 1 || close(fd) != 0) fail("greet");
      --count;
    }
    if (errno != EAGAIN) fail("accept4");
  }
  close(set);
  close(listener);
}

static int make_connection(void) {
  const struct timeval limit = {SECONDS, 0};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(fd, (struct sockaddr*)&name, sizeof name) != 0) fail("connect");
  return fd;
}

static void expect_greeting(int fd) {
  char byte = 0;
  if (recv(fd, &byte, 1, 0) != 1 || byte != '!') fail("no greeting");
  close(fd);
}

static void be_greeted(void) {
  int fds[AT_ONCE];
  for (int i = 0; i < IN_TURN; ++i) expect_greeting(make_connection());
  for (int i = 0; i < AT_ONCE; ++i) fds[i] = make_connection();
  for (int i = 0; i < AT_ONCE; ++i) expect_greeting(fds[i]);
}

static void* answer(void* argument) {
  const int fd = *(int*)argument;
  char bytes[64];
  while (1) {
    ssize_t got = 0;
    while (sem_wait(&edges) != 0) continue;
    while ((got = read(fd, bytes, sizeof bytes)) > 0) {
      if (write(fd, bytes, (size_t)got) != got) fail("write");
    }
    if (got == 0) return NULL;
    if (errno != EAGAIN) fail("read");
  }
}

static void* watch_connection(void* argument) {
  const int set = watch(*(int*)argument, EPOLLIN);
  while (1) {
    wait_for_edge(set);
    sem_post(&edges);
  }
  return NULL;
}

static void echo(void) {
  const int listener = make_listener(SOCK_STREAM);
  int fd = accept(listener, NULL, NULL);
  pthread_t watcher, worker;
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || sem_init(&edges, 0, 0) != 0) fail("echo");
  pthread_create(&worker, NULL, answer, &fd);
  pthread_create(&watcher, NULL, watch_connection, &fd);
  pthread_join(worker, NULL);
  close(fd);
}

static void hear_echo(void) {
  const int fd = make_connection();
  for (int i = 0; i < ROUND_TRIPS; ++i) {
    int back = -1;
    if (write(fd, &i, sizeof i) != sizeof i) fail("write");
    if (recv(fd, &back, sizeof back, MSG_WAITALL) != sizeof back || back != i) fail("no echo");
  }
  close(fd);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  const int is_client = count > 3;
  const int is_echo = strcmp(words[2], "echo") == 0;
  name.sin_port = htons((uint16_t)atoi(words[1]));
  if (is_client) inet_pton(AF_INET, words[3], &name.sin_addr);
  if (is_echo) {
    (is_client ? hear_echo : echo)();
  } else if (is_client) {
    be_greeted();
  } else {
    const uint32_t events = strcmp(words[2], "greet-out") == 0 ? EPOLLIN | EPOLLOUT : EPOLLIN;
    greet(events, IN_TURN + AT_ONCE);
  }
  puts("all right");
  return 0;
}
