// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection over TCP on which both sides wait and exchange bytes in every way that libc has: echo PORT serves one
// client, echo PORT ADDRESS SOURCE is it, and SOURCE the address that the server must see. Each message goes to the
// server and back, and its sum is checked at both ends.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WAYS = 6, ROUNDS = 60, LARGEST = 300000 };
static int set = -1;  // of epoll

static void fail(const char* what) {
  perror(what);
  exit(1);
}

#define NEED(condition) \
  do {                  \
    if (!(condition)) fail(#condition); \
  } while (0)

// Waits for bytes, if `milliseconds` is -1 without an end. Returns how many descriptors are ready.
static int wait_by(int way, int fd, int milliseconds) {
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  const struct timespec* limit = milliseconds < 0 ? NULL : &time;
  struct pollfd entry = {fd, POLLIN, 0};
  struct epoll_event event;
  fd_set in;
  FD_ZERO(&in);
  FD_SET(fd, &in);
  switch (way) {
    case 0: return poll(&entry, 1, milliseconds);
    case 1: return ppoll(&entry, 1, limit, NULL);
    case 2: {
      struct timeval left = {time.tv_sec, time.tv_nsec / 1000};
      return select(fd + 1, &in, NULL, NULL, limit == NULL ? NULL : &left);
    }
    case 3: return pselect(fd + 1, &in, NULL, NULL, limit, NULL);
    case 4: return epoll_wait(set, &event, 1, milliseconds);
    default: return epoll_pwait2(set, &event, 1, limit, NULL);
  }
}

static void prepare(int fd) {
  set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  NEED(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
  int error = -1;
  socklen_t length = sizeof error;
  NEED(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
  const int on = 1;
  NEED(ioctl(fd, FIONBIO, &on) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  char none;
  NEED(recv(fd, &none, 1, 0) == -1 && (errno == EAGAIN || errno == EWOULDBLOCK));
  NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
  const struct timeval short_time = {0, 20000};
  const struct timeval no_limit = {0, 0};
  NEED(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time) == 0);
  struct timeval is = {7, 7};
  length = sizeof is;
  NEED(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &is, &length) == 0 && is.tv_sec == 0 && is.tv_usec >= 20000);
  NEED(recv(fd, &none, 1, 0) == -1 && (errno == EAGAIN || errno == EWOULDBLOCK));
  NEED(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &no_limit, sizeof no_limit) == 0);
  for (int way = 0; way < WAYS; ++way) NEED(wait_by(way, fd, 0) == 0 && wait_by(way, fd, 20) == 0);
}

static void send_all(int fd, int way, const char* bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    const size_t left = length - done;
    struct iovec parts[2] = {{(char*)bytes + done, left / 3}, {(char*)bytes + done + left / 3, left - left / 3}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    const ssize_t sent = way % 4 == 0   ? send(fd, bytes + done, left, 0)
                         : way % 4 == 1 ? sendmsg(fd, &message, 0)
                         : way % 4 == 2 ? writev(fd, parts, 2)
                                        : write(fd, bytes + done, left);
    NEED(sent > 0);
    done += (size_t)sent;
  }
}

static void receive_all(int fd, int way, char* bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    NEED(wait_by(way, fd, way % 2 == 0 ? -1 : 30000) == 1);
    int there = 0;
    NEED(ioctl(fd, FIONREAD, &there) == 0 && there > 0);
    const size_t left = length - done;
    struct iovec parts[2] = {{bytes + done, left / 2}, {bytes + done + left / 2, left - left / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    const ssize_t got = way % 4 == 0   ? recv(fd, bytes + done, left, 0)
                        : way % 4 == 1 ? recvmsg(fd, &message, 0)
                        : way % 4 == 2 ? readv(fd, parts, 2)
                                       : read(fd, bytes + done, left);
    NEED(got > 0);
    done += (size_t)got;
  }
}

static uint32_t sum_of(const char* bytes, size_t length) {
  uint32_t sum = 2166136261u;
  for (size_t i = 0; i < length; ++i) sum = (sum ^ (unsigned char)bytes[i]) * 16777619u;
  return sum;
}

struct head {
  uint32_t length;
  uint32_t sum;
};

static void receive_message(int fd, int way, char* bytes, struct head* head) {
  receive_all(fd, way, (char*)head, sizeof *head);
  NEED(head->length <= LARGEST);
  receive_all(fd, way, bytes, head->length);
  if (sum_of(bytes, head->length) == head->sum) return;
  printf("%u bytes with a wrong sum\n", (unsigned)head->length);
  exit(1);
}

static void send_message(int fd, int way, const char* bytes, size_t length) {
  const struct head head = {(uint32_t)length, sum_of(bytes, length)};
  send_all(fd, way, (const char*)&head, sizeof head);
  send_all(fd, way, bytes, length);
}

static void converse(int fd, int first) {
  static char bytes[LARGEST];
  for (int round = 0; round < ROUNDS; ++round) {
    const int way = round % WAYS;
    struct head head;
    if (first) {
      const size_t length = round < WAYS ? (size_t)round + 1 : (size_t)round * 7919 % LARGEST;
      for (size_t i = 0; i < length; ++i) bytes[i] = (char)(i * 31 + (size_t)round);
      const uint32_t sum = sum_of(bytes, length);
      send_message(fd, way, bytes, length);
      memset(bytes, 0, length);
      receive_message(fd, way, bytes, &head);
      NEED(head.length == length && head.sum == sum);
    } else {
      receive_message(fd, way, bytes, &head);
      send_message(fd, way, bytes, head.length);
    }
  }
}

static int serve(struct sockaddr_in here) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in peer;
  socklen_t length = sizeof peer;
  NEED(bind(listener, (struct sockaddr*)&here, sizeof here) == 0 && listen(listener, 4) == 0);
  const int fd = accept(listener, (struct sockaddr*)&peer, &length);
  NEED(fd >= 0);
  prepare(fd);
  send_message(fd, 0, inet_ntoa(peer.sin_addr), strlen(inet_ntoa(peer.sin_addr)));
  converse(fd, 0);
  char none;
  NEED(recv(fd, &none, 1, 0) == 0);
  return 0;
}

static int ask(struct sockaddr_in there, const char* source) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  NEED(connect(fd, (struct sockaddr*)&there, sizeof there) == 0);
  char seen[64] = "";
  struct head head;
  receive_message(fd, 0, seen, &head);
  if (strcmp(seen, source) != 0) {
    printf("the server has seen a client at %s, not at %s\n", seen, source);
    return 1;
  }
  prepare(fd);
  converse(fd, 1);
  return 0;
}

int main(int argc, char** argv) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  if (argc != 2 && argc != 4) return 2;
  address.sin_port = htons((uint16_t)atoi(argv[1]));
  if (argc == 4 && inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) return 2;
  const int result = argc == 2 ? serve(address) : ask(address, argv[3]);
  if (result == 0) printf("all right, time_t has %zu bytes\n", sizeof(time_t));
  return result;
}
