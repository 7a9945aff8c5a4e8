/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Connections of a process with itself, an epoll set, and ways to look at both, for the programs
 * that try epoll sets under `--sockets`. A failure ends the program with a line on stderr. */
#ifndef OWN_CONNECTION_H
#define OWN_CONNECTION_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static int set = -1, listener = -1;
static struct sockaddr_in name = {.sin_family = AF_INET}; /* of the listener */

static inline void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static inline void expect(int is_right, const char* what) {
  if (!is_right) fail(what);
}

static inline void listen_at(const char* address) {
  socklen_t length = sizeof name;
  listener = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, address, &name.sin_addr);
  expect(bind(listener, (struct sockaddr*)&name, sizeof name) == 0 && listen(listener, 64) == 0 &&
             getsockname(listener, (struct sockaddr*)&name, &length) == 0,
         "listen");
}

/* A small write goes out at once, also over TCP. */
static inline void make_ends(int* near_end, int* far_end) {
  const int on = 1;
  *far_end = socket(AF_INET, SOCK_STREAM, 0);
  expect(connect(*far_end, (const struct sockaddr*)&name, sizeof name) == 0, "connect");
  *near_end = accept(listener, NULL, NULL);
  expect(*near_end >= 0, "accept");
  setsockopt(*far_end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(*near_end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static inline uint64_t data_of(int fd) {
  return 0x1234567800000000u + (unsigned)fd;
}

static inline int control_with(int operation, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event = {.events = events, .data = {.u64 = data}};
  return epoll_ctl(set, operation, fd, &event);
}

static inline void control(int operation, int fd, uint32_t events) {
  expect(control_with(operation, fd, events, data_of(fd)) == 0, "epoll_ctl");
}

static inline int is_ready_by_poll(int fd) {
  struct pollfd entry = {fd, POLLIN, 0};
  expect(poll(&entry, 1, 0) >= 0, "poll");
  return entry.revents != 0;
}

static inline int is_ready_by_select(int fd) {
  fd_set in;
  FD_ZERO(&in);
  FD_SET(fd, &in);
  struct timeval none = {0, 0};
  const int found = select(fd + 1, &in, NULL, NULL, &none);
  expect(found >= 0, "select");
  return found != 0;
}

/* `function` gets the address of the result. */
static inline int in_thread(void* (*function)(void*)) {
  pthread_t thread;
  int found = -1;
  pthread_create(&thread, NULL, function, &found);
  pthread_join(thread, NULL);
  return found;
}

#endif
