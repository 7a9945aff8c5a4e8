// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections over TCP with a thread that writes and one that reads, at each side: duplex PORT waits
// for CONNECTIONS of them, one after the other, duplex PORT ADDRESS makes them. Both sides write the
// same stream in messages of 1 to LARGEST bytes, end their part, and check what they read.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 4, MESSAGES = 100000, LARGEST = 700 };

static void fail(const char* what) {
  perror(what);
  exit(1);
}

// The byte at a place of the stream.
static unsigned char byte_at(uint64_t place) {
  return (unsigned char)(place * 131 + (place >> 8));
}

static size_t length_of(int message) {
  return 1 + (size_t)(message % LARGEST);
}

static uint64_t total(void) {
  uint64_t sum = 0;
  for (int i = 0; i < MESSAGES; ++i) sum += length_of(i);
  return sum;
}

static void* write_all(void* argument) {
  const int fd = *(int*)argument;
  unsigned char bytes[LARGEST];
  uint64_t place = 0;
  for (int i = 0; i < MESSAGES; ++i) {
    const size_t length = length_of(i);
    for (size_t k = 0; k < length; ++k) bytes[k] = byte_at(place + k);
    for (size_t done = 0; done < length;) {
      const ssize_t sent = send(fd, bytes + done, length - done, 0);
      if (sent <= 0) fail("send");
      done += (size_t)sent;
    }
    place += length;
  }
  if (shutdown(fd, SHUT_WR) != 0) fail("shutdown");
  return NULL;
}

static void read_all(int fd) {
  unsigned char bytes[4096];
  uint64_t place = 0;
  while (1) {
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got < 0) fail("recv");
    if (got == 0) break;
    for (ssize_t k = 0; k < got; ++k) {
      if (bytes[k] == byte_at(place + (uint64_t)k)) continue;
      printf("wrong byte at %llu\n", (unsigned long long)place + k);
      exit(1);
    }
    place += (uint64_t)got;
  }
  if (place != total()) {
    printf("%llu bytes instead of %llu\n", (unsigned long long)place, (unsigned long long)total());
    exit(1);
  }
}

static void use(int fd) {
  pthread_t writer;
  if (pthread_create(&writer, NULL, write_all, &fd) != 0) fail("pthread_create");
  read_all(fd);
  pthread_join(writer, NULL);
  if (close(fd) != 0) fail("close");
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "duplex PORT [ADDRESS]\n");
    return 2;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
  if (argc > 2 && inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) fail(argv[2]);
  int listener = -1;
  if (argc == 2) {
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0) fail("bind");
    if (listen(listener, 4) != 0) fail("listen");
  }
  for (int i = 0; i < CONNECTIONS; ++i) {
    const int fd = listener >= 0 ? accept(listener, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) fail("accept");
    if (listener < 0 && connect(fd, (struct sockaddr*)&address, sizeof address) != 0) fail("connect");
    use(fd);
  }
  puts("all right");
  return 0;
}
