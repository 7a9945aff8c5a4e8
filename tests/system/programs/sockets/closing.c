// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A server that closes descriptors in its own way (close, number, range, ring), as runtimes with
// their own I/O do: closing PORT WAY FILE. For each connection it makes an epoll set, answers,
// closes all, and writes a line into FILE, which gets one of these numbers. At the end it waits for
// SIGTERM, in no call of sockets. closing PORT WAY ADDRESS is its client, which checks that each
// connection ends after the answer. The listener ends before it accepts the others (LATE), which are
// reset. Nor does the client's end of these wait for the peer, whatever the timeouts of the fabric.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CONNECTIONS = 4, LATE = 12, SECONDS = 20, LISTENER = 1000 };
static const char kQuestion[] = "hello", kAnswer[] = "answer", kLine[] = "a line of the log\n";
static const char* way;
static struct io_uring ring;

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static void close_in_ring(int fd) {
  struct io_uring_cqe* done = NULL;
  io_uring_prep_close(io_uring_get_sqe(&ring), fd);
  if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &done) != 0 || done->res != 0) {
    fail("close in the ring");
  }
  io_uring_cqe_seen(&ring, done);
}

static void close_by_way(int fd) {
  if (strcmp(way, "ring") == 0) {
    close_in_ring(fd);
    return;
  }
  long result = 0;
  if (strcmp(way, "close") == 0) result = close(fd);
  if (strcmp(way, "number") == 0) result = syscall(SYS_close, fd);
  if (strcmp(way, "range") == 0) result = syscall(SYS_close_range, fd, fd, 0);
  if (result != 0) fail("close");
}

static void add(int set, int fd, uint64_t tag) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
  if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

static void wait_for_tag(int set, uint64_t tag) {
  struct epoll_event event = {0};
  if (epoll_wait(set, &event, 1, SECONDS * 1000) != 1) fail("epoll_wait");
  if (event.data.u64 != tag) fail("an event of something else");
}

// The client connects again as soon as it has seen the end: an event of the listener is right.
static void expect_listener_only(int set) {
  struct epoll_event events[4];
  const int count = epoll_wait(set, events, 4, 0);
  if (count < 0) fail("epoll_wait");
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 != LISTENER) fail("an event of what is closed");
  }
}

static void wait_for_client(int listener) {
  struct pollfd entry = {listener, POLLIN, 0};
  if (poll(&entry, 1, SECONDS * 1000) != 1) fail("no client");
}

static void write_line(int set, int listener, const char* path, int number) {
  const int file = open(path, O_CREAT | O_RDWR | O_APPEND, 0600);
  struct stat now;
  if (write(file, kLine, sizeof kLine - 1) != (ssize_t)(sizeof kLine - 1)) fail("write");
  if (fstat(file, &now) != 0) fail("fstat");
  if (now.st_size != (off_t)(sizeof kLine - 1) * (number + 1)) fail("the line is not in the file");
  if (number > 0) wait_for_client(listener);  // there is an event of the listener, then
  expect_listener_only(set);
  close_by_way(file);
}

static void serve(int port, const char* path) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr*)&any, sizeof any) != 0 || listen(listener, LATE) != 0) {
    fail("listen");
  }
  for (int i = 0; i < CONNECTIONS; ++i) {
    const int set = epoll_create1(0);
    add(set, listener, LISTENER);
    wait_for_tag(set, LISTENER);
    const int fd = accept(listener, NULL, NULL);
    char bytes[64];
    add(set, fd, (uint64_t)i);
    if (i < CONNECTIONS - 1) wait_for_tag(set, (uint64_t)i);  // then, others have come meanwhile
    if (read(fd, bytes, sizeof bytes) != (ssize_t)(sizeof kQuestion - 1)) fail("read");
    if (write(fd, kAnswer, sizeof kAnswer - 1) < 0) fail("write");
    close_by_way(fd);
    if (i % 2 == 0) write_line(set, listener, path, i / 2);
    close_by_way(set);
  }
  close_by_way(listener);
}

static int connected(int port, const char* address) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  const struct timeval limit = {SECONDS, 0};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, address, &to.sin_addr);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(fd, (struct sockaddr*)&to, sizeof to) != 0) fail("connect");
  return fd;
}

static void ask(int port, const char* address) {
  int late[LATE];
  for (int i = 0; i < CONNECTIONS; ++i) {
    const int fd = connected(port, address);
    char bytes[64];
    for (int k = 0; i == CONNECTIONS - 1 && k < LATE; ++k) late[k] = connected(port, address);
    if (write(fd, kQuestion, sizeof kQuestion - 1) < 0) fail("write");
    const ssize_t got = recv(fd, bytes, sizeof bytes, MSG_WAITALL);
    if (got != (ssize_t)(sizeof kAnswer - 1) || memcmp(bytes, kAnswer, (size_t)got) != 0) {
      fprintf(stderr, "connection %d: %zd bytes, %.*s\n", i, got, got > 0 ? (int)got : 0, bytes);
      fail("no answer and an end");
    }
    close(fd);
  }
  // Half of them end with the process.
  for (int i = 0; i < LATE; ++i) {
    char byte;
    if (recv(late[i], &byte, 1, 0) != -1 || errno != ECONNRESET) fail("no reset by the end");
    if (i % 2 == 0) close(late[i]);
  }
}

int main(int count, char** words) {
  if (count != 4) return 2;
  sigset_t end;
  int signal = 0;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, NULL);
  way = words[2];
  if (strcmp(way, "ring") == 0 && io_uring_queue_init(4, &ring, 0) != 0) {
    puts("no io_uring");
    return 0;
  }
  if (strchr(words[3], '/') == NULL) {
    ask(atoi(words[1]), words[3]);
  } else {
    serve(atoi(words[1]), words[3]);
    puts("served");
    fflush(stdout);
    sigwait(&end, &signal);
  }
  puts("all right");
  return 0;
}
