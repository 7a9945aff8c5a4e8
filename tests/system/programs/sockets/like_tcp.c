// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ways to use connections that TCP allows. like_tcp MODE PORT serves, like_tcp MODE
// PORT ADDRESS is the client.
//   both   both sides write much before they read
//   shut   shutdown(SHUT_RD) ends the waits of other threads
//   stdio  streams by fdopen(), dprintf(), and bytes that are written when the program ends
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CONNECTIONS = 6, MOST = 4 << 20, WAITS = 3, SECONDS = 20 };

static struct sockaddr_in name = {.sin_family = AF_INET};
static int is_client, listener;

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int make_connection(void) {
  const struct timeval limit = {SECONDS, 0};
  int fd = -1;
  if (is_client) {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr*)&name, sizeof name) != 0) fail("connect");
  } else {
    fd = accept(listener, NULL, NULL);
    if (fd < 0) fail("accept");
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return fd;
}

static unsigned char byte_at(size_t place, int of_client) {
  return (unsigned char)(place * 131 + (place >> 8) + (of_client ? 7 : 0));
}

static void write_then_read(int fd, size_t length) {
  static unsigned char bytes[MOST];
  for (size_t i = 0; i < length; ++i) bytes[i] = byte_at(i, is_client);
  if (write(fd, bytes, length) != (ssize_t)length) fail("write");
  if (recv(fd, bytes, length / 2, MSG_PEEK) <= 0) fail("peek");
  for (size_t done = 0; done < length;) {
    const ssize_t got = read(fd, bytes + done, length - done);
    if (got <= 0) fail("read");
    done += (size_t)got;
  }
  for (size_t i = 0; i < length; ++i) {
    if (bytes[i] != byte_at(i, !is_client)) fail("another byte");
  }
}

// The later connections have the smaller buffers.
static void both(void) {
  int fds[CONNECTIONS];
  for (int i = 0; i < CONNECTIONS; ++i) fds[i] = make_connection();
  for (int i = 0; i < CONNECTIONS; i += CONNECTIONS - 1) {
    for (size_t length = 65536; length <= MOST; length *= 4) write_then_read(fds[i], length);
  }
  for (int i = 0; i < CONNECTIONS; ++i) {
    char byte = 0;
    shutdown(fds[i], SHUT_WR);
    if (recv(fds[i], &byte, 1, 0) != 0) fail("no end");
  }
}

struct wait {
  int (*ends_well)(int fd);
  int fd;
  atomic_int tid;
};

static int recv_ends(int fd) {
  char byte = 0;
  return recv(fd, &byte, 1, 0) == 0;
}
static int poll_ends(int fd) {
  struct pollfd entry = {fd, POLLIN | POLLRDHUP, 0};
  return poll(&entry, 1, SECONDS * 1000) == 1 && entry.revents == (POLLIN | POLLRDHUP);
}
static int epoll_ends(int fd) {
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0 &&
         epoll_wait(set, &event, 1, SECONDS * 1000) == 1 && event.events == EPOLLIN;
}

static void* wait_for_end(void* argument) {
  struct wait* wait = argument;
  atomic_store(&wait->tid, (int)syscall(SYS_gettid));
  if (!wait->ends_well(wait->fd)) fail("a wait does not end as over TCP");
  return NULL;
}

static int is_asleep(int tid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE* file = tid != 0 ? fopen(path, "r") : NULL;
  if (file == NULL) return 0;
  const int has_text = fgets(text, sizeof text, file) != NULL;
  fclose(file);
  return has_text && strstr(text, ") S ") != NULL;
}

static void shut(void) {
  const int fd = make_connection();
  char byte = 0;
  if (is_client) {
    if (recv(fd, &byte, 1, 0) != 1) fail("the other direction");
    return;
  }
  struct wait waits[WAITS] = {{recv_ends, fd, 0}, {poll_ends, fd, 0}, {epoll_ends, fd, 0}};
  pthread_t threads[WAITS];
  for (int i = 0; i < WAITS; ++i) pthread_create(&threads[i], NULL, wait_for_end, &waits[i]);
  for (int i = 0; i < WAITS; ++i) {
    while (!is_asleep(atomic_load(&waits[i].tid))) sched_yield();
  }
  if (shutdown(fd, SHUT_RD) != 0) fail("shutdown");
  for (int i = 0; i < WAITS; ++i) pthread_join(threads[i], NULL);
  if (send(fd, &byte, 1, 0) != 1) fail("send");
}

static void expect_line(FILE* in, const char* line) {
  char got[64] = "";
  if (fgets(got, sizeof got, in) == NULL || strcmp(got, line) != 0) fail(line);
}

static void stdio(void) {
  const int fd = make_connection();
  FILE* in = fdopen(fd, "r");
  FILE* out = fdopen(dup(fd), "w");
  if (in == NULL || out == NULL || fileno(in) != fd || fileno(out) < 0) fail("fdopen");
  if (is_client) {
    fprintf(out, "line %d\n", 1);
    if (fflush(out) != 0) fail("fflush");
    expect_line(in, "line 1\n");
    if (dprintf(fd, "line %d\n", 2) != 7) fail("dprintf");
    expect_line(in, "line 2\n");
    fprintf(out, "line %d\n", 3);  // written by exit()
    return;
  }
  for (int i = 1; i <= 2; ++i) {
    char line[64];
    if (fgets(line, sizeof line, in) == NULL || fputs(line, out) < 0 || fflush(out) != 0) {
      fail("echo");
    }
  }
  expect_line(in, "line 3\n");
  if (fgetc(in) != EOF || ferror(in) || fclose(in) != 0 || fclose(out) != 0) fail("end");
}

int main(int count, char** words) {
  if (count < 3) return 2;
  const int on = 1;
  name.sin_port = htons((uint16_t)atoi(words[2]));
  is_client = count > 3;
  if (is_client) {
    inet_pton(AF_INET, words[3], &name.sin_addr);
  } else {
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr*)&name, sizeof name) != 0 || listen(listener, 8) != 0) {
      fail("listen");
    }
  }
  if (strcmp(words[1], "both") == 0) both();
  if (strcmp(words[1], "shut") == 0) shut();
  if (strcmp(words[1], "stdio") == 0) stdio();
  puts("all right");
  return 0;
}
