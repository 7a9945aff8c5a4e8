// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP connections whose both directions are used by threads of their own, each in a way that the
// seed draws: socket_storm SEED PORT accepts them, socket_storm SEED PORT ADDRESS makes them.
//
// A writer sends what the other side expects, and ends its part; a reader checks it. Some wait in
// the call, some by poll(), select() or an epoll set. A thread that watches all connections looks
// at them by poll() and epoll_wait() all the time.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
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

enum { CONNECTIONS = 6, ROUNDS = 3, MOST_BYTES = 3 << 20, LARGEST = 1 << 17 };
enum { SMALL = 600, OFTEN_SMALL = 3 };

#define NOT_USED EXDEV

struct connection {
  int fd;
  int number;
};

struct direction {
  struct connection* connection;
  int fd;  // the connection's, or a copy of it
  uint64_t random;
  uint64_t seed;  // of its bytes
  uint64_t total;
};

static unsigned long seed;
static int is_client;
static atomic_int watching;

static void fail(const char* what, const struct direction* direction, long long place) {
  const int error = errno;
  fprintf(stderr, "%s, connection %d, at %lld of %lld: %s\n", what,
          direction == NULL ? -1 : direction->connection->number, place,
          direction == NULL ? 0LL : (long long)direction->total, strerror(error));
  exit(1);
}

static uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

static uint64_t draw(struct direction* direction, uint64_t below) {
  direction->random = mixed(direction->random);
  return direction->random % below;
}

static unsigned char byte_at(const struct direction* direction, uint64_t place) {
  return (unsigned char)(direction->seed + place * 131 + (place >> 8));
}

static void fill(const struct direction* direction, uint64_t place, unsigned char* bytes, size_t length) {
  for (size_t i = 0; i < length; ++i) bytes[i] = byte_at(direction, place + i);
}

static void check(const struct direction* direction, uint64_t place, const unsigned char* bytes, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    if (bytes[i] == byte_at(direction, place + i)) continue;
    errno = 0;
    fail("wrong byte", direction, (long long)(place + i));
  }
}

static void wait_by_epoll(int fd, uint32_t events) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl", NULL, 0);
  while (epoll_wait(set, &event, 1, -1) < 0) {
    if (errno != EINTR) fail("epoll_wait", NULL, 0);
  }
  close(set);
}

static void wait_by_select(int fd, int writes) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  if (select(fd + 1, writes ? NULL : &set, writes ? &set : NULL, NULL, NULL) != 1) fail("select", NULL, 0);
}

static void wait_for(struct direction* direction, int writes) {
  const int fd = direction->fd;
  struct pollfd entry = {.fd = fd, .events = writes ? POLLOUT : POLLIN};
  switch (draw(direction, 3)) {
    case 0: wait_by_epoll(fd, writes ? EPOLLOUT : EPOLLIN | EPOLLRDHUP); break;
    case 1: wait_by_select(fd, writes); break;
    default:
      if (poll(&entry, 1, -1) != 1) fail("poll", direction, 0);
  }
}

static size_t draw_length(struct direction* direction) {
  return 1 + draw(direction, draw(direction, OFTEN_SMALL) == 0 ? LARGEST : SMALL);
}

// -DERRNO_CHANGES: of calls that succeed, too, as rsockets have it.
#ifdef ERRNO_CHANGES
static const int errno_changes = 1;
#else
static const int errno_changes = 0;
#endif

// A call that succeeds leaves errno alone, as the kernel's do: programs look at that of a call before it.
static ssize_t left_alone(ssize_t done, struct direction* direction) {
  if (done >= 0 && errno != NOT_USED && !errno_changes) fail("errno of a call that has succeeded", direction, 0);
  return done;
}

static ssize_t send_somehow(struct direction* direction, unsigned char* bytes, size_t length) {
  struct iovec parts[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  switch (draw(direction, 5)) {
    case 0: return write(direction->fd, bytes, length);
    case 1: return writev(direction->fd, parts, 2);
    case 2: return sendmsg(direction->fd, &message, MSG_NOSIGNAL);
    case 3: return send(direction->fd, bytes, length, MSG_DONTWAIT);
    default: return send(direction->fd, bytes, length, 0);
  }
}

static void* write_all(void* argument) {
  struct direction* const direction = argument;
  unsigned char* const bytes = malloc(LARGEST);
  for (uint64_t place = 0; place < direction->total;) {
    size_t length = draw_length(direction);
    if (length > direction->total - place) length = direction->total - place;
    fill(direction, place, bytes, length);
    if (draw(direction, 8) == 0) wait_for(direction, 1);
    errno = NOT_USED;
    const ssize_t sent = left_alone(send_somehow(direction, bytes, length), direction);
    if (sent < 0 && errno == EAGAIN) {
      wait_for(direction, 1);
    } else if (sent <= 0) {
      fail("write", direction, (long long)place);
    } else {
      place += (uint64_t)sent;
    }
  }
  free(bytes);
  if (shutdown(direction->fd, SHUT_WR) != 0) fail("shutdown", direction, 0);
  return NULL;
}

static ssize_t receive_somehow(struct direction* direction, uint64_t place, unsigned char* bytes, size_t length) {
  struct iovec parts[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  int waiting = 0;
  switch (draw(direction, 7)) {
    case 0: return read(direction->fd, bytes, length);
    case 1: return readv(direction->fd, parts, 2);
    case 2: return recvmsg(direction->fd, &message, 0);
    case 3: return recv(direction->fd, bytes, length, MSG_DONTWAIT);
    case 4: return recv(direction->fd, bytes, length, MSG_WAITALL);
    case 5: {
      const ssize_t got = recv(direction->fd, bytes, length, MSG_PEEK);
      if (got > 0) check(direction, place, bytes, (size_t)got);
      if (ioctl(direction->fd, FIONREAD, &waiting) != 0) fail("FIONREAD", direction, (long long)place);
      return got <= 0 ? got : recv(direction->fd, bytes, (size_t)got, 0);
    }
    default: return recv(direction->fd, bytes, length, 0);
  }
}

static void* read_all(void* argument) {
  struct direction* const direction = argument;
  unsigned char* const bytes = malloc(LARGEST);
  uint64_t place = 0;
  while (1) {
    const size_t length = draw_length(direction);
    if (draw(direction, 8) == 0) wait_for(direction, 0);
    errno = NOT_USED;
    const ssize_t got = left_alone(receive_somehow(direction, place, bytes, length), direction);
    if (got < 0 && errno == EAGAIN) {
      wait_for(direction, 0);
      continue;
    }
    if (got < 0) fail("read", direction, (long long)place);
    if (got == 0) break;
    check(direction, place, bytes, (size_t)got);
    place += (uint64_t)got;
  }
  free(bytes);
  errno = 0;
  if (place != direction->total) fail("early end", direction, (long long)place);
  return NULL;
}

static void* watch(void* argument) {
  struct connection* const connections = argument;
  struct pollfd entries[CONNECTIONS];
  const int set = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < CONNECTIONS; ++i) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = connections[i].fd};
    if (epoll_ctl(set, EPOLL_CTL_ADD, connections[i].fd, &event) != 0) fail("epoll_ctl", NULL, 0);
    entries[i] = (struct pollfd){.fd = connections[i].fd, .events = POLLIN};
  }
  while (atomic_load(&watching) != 0) {
    struct epoll_event events[CONNECTIONS];
    if (poll(entries, CONNECTIONS, 3) < 0) fail("poll", NULL, 0);
    if (epoll_wait(set, events, CONNECTIONS, 3) < 0) fail("epoll_wait", NULL, 0);
  }
  close(set);
  return NULL;
}

static struct direction direction_of(struct connection* connection, int round, int from_client) {
  const uint64_t both = mixed(seed * 1000003 + (uint64_t)(round * CONNECTIONS + connection->number) * 2 + (uint64_t)from_client);
  struct direction direction = {.connection = connection, .seed = both, .total = mixed(both) % MOST_BYTES};
  direction.random = both ^ (from_client == is_client ? 1 : 2);
  direction.fd = draw(&direction, 3) == 0 ? dup(connection->fd) : connection->fd;
  return direction;
}

static void use(struct connection* connections, int round) {
  struct direction directions[CONNECTIONS][2];
  pthread_t threads[CONNECTIONS][2];
  pthread_t watcher;
  atomic_store(&watching, 1);
  if (pthread_create(&watcher, NULL, watch, connections) != 0) fail("pthread_create", NULL, 0);
  for (int i = 0; i < CONNECTIONS; ++i) {
    for (int from_client = 0; from_client < 2; ++from_client) {
      struct direction* const direction = &directions[i][from_client];
      *direction = direction_of(&connections[i], round, from_client);
      if (pthread_create(&threads[i][from_client], NULL, from_client == is_client ? write_all : read_all, direction) != 0) {
        fail("pthread_create", NULL, 0);
      }
    }
  }
  for (int i = 0; i < CONNECTIONS; ++i) {
    for (int k = 0; k < 2; ++k) {
      pthread_join(threads[i][k], NULL);
      if (directions[i][k].fd != connections[i].fd) close(directions[i][k].fd);
    }
  }
  atomic_store(&watching, 0);
  pthread_join(watcher, NULL);
  for (int i = 0; i < CONNECTIONS; ++i) close(connections[i].fd);
}

// Connections may be accepted in another order than they were made: one says which it is.
static struct connection connect_to(const struct sockaddr_in* address, int number) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (const struct sockaddr*)address, sizeof *address) != 0) fail("connect", NULL, 0);
  if (send(fd, &number, sizeof number, 0) != sizeof number) fail("send", NULL, 0);
  return (struct connection){fd, number};
}

static struct connection accept_from(int listener) {
  int number = 0;
  const int fd = accept(listener, NULL, NULL);
  if (fd < 0) fail("accept", NULL, 0);
  if (recv(fd, &number, sizeof number, MSG_WAITALL) != sizeof number) fail("recv", NULL, 0);
  return (struct connection){fd, number};
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "socket_storm SEED PORT [ADDRESS]\n");
    return 2;
  }
  seed = strtoul(argv[1], NULL, 10);
  is_client = argc > 3;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
  if (is_client && inet_pton(AF_INET, argv[3], &address.sin_addr) != 1) fail(argv[3], NULL, 0);
  const int listener = is_client ? -1 : socket(AF_INET, SOCK_STREAM, 0);
  if (!is_client && (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, CONNECTIONS) != 0)) {
    fail("listen", NULL, 0);
  }
  for (int round = 0; round < ROUNDS; ++round) {
    struct connection connections[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; ++i) {
      const struct connection connection = is_client ? connect_to(&address, i) : accept_from(listener);
      const int fd = connection.fd;
      const int nonblocking = mixed(seed + (uint64_t)(i * 2 + is_client)) % 2 == 0;
      if (nonblocking && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) fail("fcntl", NULL, 0);
      connections[i] = connection;
    }
    use(connections, round);
  }
  puts("all right");
  return 0;
}
