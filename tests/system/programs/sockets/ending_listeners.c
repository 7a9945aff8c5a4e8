// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A server whose listener ends as soon as a client is there, accepted or not, and begins again:
// ending_listeners PORT, until it is killed. ending_listeners PORT ADDRESS is a client, which comes
// again and again: each of its connections must end, or get the answer.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 100, SECONDS = 20, BACKLOG = 32, ACCEPTED = 3 };

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int listener_at(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (struct sockaddr*)&any, sizeof any) != 0 || listen(fd, BACKLOG) != 0) fail("listen");
  return fd;
}

static void serve(int port) {
  for (unsigned round = 0;; ++round) {
    const int listener = listener_at(port);
    struct pollfd entry = {listener, POLLIN, 0};
    if (poll(&entry, 1, -1) != 1) fail("poll");
    if (round % ACCEPTED == 0) {
      const int fd = accept(listener, NULL, NULL);
      if (fd < 0) fail("accept");
      if (write(fd, "x", 1) < 0 && errno != ECONNRESET && errno != EPIPE) fail("write");
      close(fd);
    }
    close(listener);
  }
}

// TCP of the kernel loses a connection now and then when its listener ends: it has no end then.
static int is_tcp(int fd) {
  struct sockaddr_in name = {0};
  socklen_t length = sizeof name;
  if (getsockname(fd, (struct sockaddr*)&name, &length) != 0) fail("getsockname");
  return name.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

static void come(const struct sockaddr_in* to) {
  const struct timeval limit = {SECONDS, 0};
  for (int made = 0; made < CONNECTIONS;) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char byte;
    if (connect(fd, (const struct sockaddr*)to, sizeof *to) == 0 && !is_tcp(fd)) {
      ++made;
      const ssize_t got = recv(fd, &byte, 1, 0);
      if (got == 0 || (got < 0 && errno != ECONNRESET)) fail("neither an answer nor a reset");
    } else {
      sched_yield();
    }
    close(fd);
  }
}

int main(int count, char** words) {
  if (count == 2) serve(atoi(words[1]));
  if (count != 3) return 2;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  inet_pton(AF_INET, words[2], &to.sin_addr);
  come(&to);
  puts("all right");
  return 0;
}
