/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Two programs on different nodes: they meet by TCP, and each has the first port of its device. */
#ifndef TWO_NODES_H
#define TWO_NODES_H

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 1, SECONDS = 30 };

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static uint16_t lid;
static int sock;

static inline void die(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(2);
}

static inline void transfer(int sending, void* data, size_t size) {
  const ssize_t n =
      sending ? send(sock, data, size, MSG_NOSIGNAL) : recv(sock, data, size, MSG_WAITALL);
  if (n != (ssize_t)size) die("the other side is gone");
}

/* Both are at this place. */
static inline void meet_again(void) {
  uint32_t here = 1;
  transfer(1, &here, sizeof here);
  transfer(0, &here, sizeof here);
}

/* Without a host it waits for the other one. */
static inline void meet(const char* port, const char* host) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  const int yes = 1;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (host) {
    inet_pton(AF_INET, host, &at.sin_addr);
    if (connect(fd, (struct sockaddr*)&at, sizeof at)) die("connect");
    sock = fd;
    return;
  }
  if (bind(fd, (struct sockaddr*)&at, sizeof at) || listen(fd, 1)) die("listen");
  if ((sock = accept(fd, NULL, NULL)) < 0) die("accept");
}

static inline void open_device(void* memory, size_t size, int depth) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_port_attr port;
  if (!list || !list[0] || !(context = ibv_open_device(list[0]))) die("no device");
  if (ibv_query_port(context, PORT, &port)) die("ibv_query_port");
  lid = port.lid;
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (!(pd = ibv_alloc_pd(context)) || !(cq = ibv_create_cq(context, depth, NULL, NULL, 0)) ||
      !(mr = ibv_reg_mr(pd, memory, size, access)))
    die("resources");
}

/* Returns the next completion. */
static inline struct ibv_wc completion(void) {
  struct ibv_wc wc;
  const time_t give_up = time(NULL) + SECONDS;
  while (ibv_poll_cq(cq, 1, &wc) == 0) {
    if (time(NULL) > give_up) die("no completion");
  }
  return wc;
}

#endif
