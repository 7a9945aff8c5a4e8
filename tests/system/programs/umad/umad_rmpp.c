/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Long messages through umad, which leaves RMPP to softibd, between two nodes.
 *
 * umad_rmpp server           answers GetTable with as many bytes as the attribute modifier says, and
 *                            Set, of any length, with the sum of its bytes. "good", after a Delete.
 *   With 'silent' it never reads. With 'aborts' it takes packets itself, and ends each by ABORT.
 * umad_rmpp client LID       both ways in sizes from 0 to 1 MiB. "good"
 * umad_rmpp alone LID        a long request to a server that is silent or aborts: what comes back. */
#include "umad_port.h"

enum { MOST = 1 << 20, DELETE = 0x15, ATTRIBUTE = 0xff01 };

static unsigned char* message; /* a header, headers of the class and data */
static struct ib_user_mad_hdr* head;
static unsigned char* mad;

static void allocate(void) {
  message = calloc(1, HEADER + SA_HEADER + MOST);
  need(message != NULL, "memory");
  head = (struct ib_user_mad_hdr*)message;
  mad = message + HEADER;
}

static unsigned char pattern(unsigned size, unsigned i) { return (unsigned char)(i * 7 + size); }

static uint32_t word_at(unsigned offset) {
  uint32_t big = 0;
  memcpy(&big, mad + offset, sizeof big);
  return ntohl(big);
}

/* The next message, whole; its size without the headers, or -1: its time is up. */
static long receive(int fd, int ms) {
  if (!wait_for(fd, ms)) {
    printf("nothing comes\n");
    exit(1);
  }
  ssize_t n = read(fd, message, WHOLE); /* as libibumad does: then again with the size it says */
  const size_t size = head->length;
  if (n < 0 && errno == ENOSPC) n = read(fd, message, size);
  need(n >= 0, "read");
  if (head->status == ETIMEDOUT) return -1;
  if (head->status != 0 || (size_t)n != head->length) {
    printf("status %u, %zd bytes, length %u\n", head->status, n, head->length);
    exit(1);
  }
  return n - HEADER - SA_HEADER;
}

static void send_message(int fd, int agent, unsigned timeout_ms, unsigned method, uint32_t modifier,
                         uint64_t tid, const struct place* to, unsigned size, int is_long) {
  const struct mad first = make_mad(agent, timeout_ms, 0, SA, method, ATTRIBUTE, tid, to);
  memcpy(message, &first, HEADER + SA_HEADER);
  modifier = htonl(modifier);
  memcpy(mad + 20, &modifier, sizeof modifier);
  memset(mad + 24, 0, 12);
  if (is_long) set_rmpp(mad);
  const size_t whole = HEADER + SA_HEADER + (is_long ? size : (unsigned)SA_DATA);
  if (write(fd, message, whole) != (ssize_t)whole) {
    printf("write of %zu: %s\n", whole, strerror(errno));
    exit(1);
  }
}

static void server(void) {
  const int fd = open_umad(0);
  const int agent = add_agent(fd, 1, SA, 2, 1 << SET | 1 << GET_TABLE | 1 << DELETE, 1);
  need(agent >= 0, "agent");
  printf("ready\n");
  for (;;) {
    const long got = receive(fd, -1);
    const unsigned method = mad[3];
    const struct place to = {.lid = ntohs(head->lid)};
    uint64_t tid = 0;
    memcpy(&tid, mad + 8, sizeof tid);
    tid = be64toh(tid);
    if (method == DELETE) break;
    if (method == GET_TABLE) {
      const unsigned size = word_at(20);
      for (unsigned i = 0; i < size; ++i) mad[SA_HEADER + i] = pattern(size, i);
      send_message(fd, agent, 0, GET_TABLE | RESPONSE, size, tid, &to, size, 1);
    } else {
      uint32_t sum = 0;
      for (long i = 0; i < got; ++i) sum += mad[SA_HEADER + i];
      send_message(fd, agent, 0, GET | RESPONSE, sum, tid, &to, 0, 0);
    }
  }
  printf("good\n");
}

static const unsigned kSizes[] = {0,    1,    199,   200,   201,    400,    401,     3200,
                                  3201, 4097, 60000, 65536, 300000, 999999, MOST - 1, MOST};

static void check(int right, const char* what, unsigned size) {
  if (right) return;
  printf("%s, size %u\n", what, size);
  exit(1);
}

static void client(struct place to) {
  const int fd = open_umad(0);
  const int agent = add_agent(fd, 1, SA, 2, 0, 1);
  uint64_t tid = 1;
  for (unsigned s = 0; s < sizeof kSizes / sizeof kSizes[0]; ++s) {
    const unsigned size = kSizes[s];
    send_message(fd, agent, 20000, GET_TABLE, size, ++tid, &to, 0, 0);
    const long got = receive(fd, 30000);
    check(got == (long)size && mad[3] == (GET_TABLE | RESPONSE), "an answer of another size", size);
    for (unsigned i = 0; i < size; ++i) {
      check(mad[SA_HEADER + i] == pattern(size, i), "other bytes", size);
    }
    uint32_t sum = 0;
    for (unsigned i = 0; i < size; ++i) sum += mad[SA_HEADER + i] = (unsigned char)(i * 5);
    send_message(fd, agent, 20000, SET, 0, ++tid, &to, size, 1);
    check(receive(fd, 30000) == SA_DATA && word_at(20) == sum, "another sum", size);
  }
  send_message(fd, agent, 0, DELETE, 0, ++tid, &to, 0, 0);
  printf("good\n");
}

/* Takes packets itself: to each it answers ABORT (status 127). */
static void aborting_server(void) {
  const int fd = open_umad(0);
  struct ib_user_mad_reg_req2 request = {.qpn = 1,
                                         .mgmt_class = SA,
                                         .mgmt_class_version = 2,
                                         .flags = IB_USER_MAD_USER_RMPP,
                                         .method_mask = {1 << SET},
                                         .rmpp_version = 1};
  need(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &request) == 0, "agent");
  printf("ready\n");
  for (;;) {
    struct mad packet;
    need(read(fd, &packet, sizeof packet) == WHOLE, "packet");
    if (packet.bytes[25] != 1) continue;
    packet.head.id = request.id;
    packet.head.timeout_ms = 0;
    packet.head.qkey = htonl(0x80010000);
    packet.bytes[3] = SET | RESPONSE;
    packet.bytes[25] = 4; /* ABORT */
    packet.bytes[27] = 127;
    need(write(fd, &packet, WHOLE) == WHOLE, "ABORT");
  }
}

static void alone(struct place to) {
  const int fd = open_umad(0);
  const int agent = add_agent(fd, 1, SA, 2, 0, 1);
  send_message(fd, agent, 500, SET, 0, 77, &to, 5000, 1);
  if (!wait_for(fd, 15000)) {
    printf("nothing came back\n");
    return;
  }
  printf(receive(fd, 0) < 0 ? "its time is up\n" : "an answer\n");
}

int main(int count, char** words) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  allocate();
  if (count == 2 && strcmp(words[1], "server") == 0) {
    server();
  } else if (count == 2 && strcmp(words[1], "silent") == 0) {
    const int fd = open_umad(0);
    need(add_agent(fd, 1, SA, 2, 1 << SET, 1) >= 0, "agent");
    printf("ready\n");
    for (;;) pause();
  } else if (count == 2 && strcmp(words[1], "aborts") == 0) {
    aborting_server();
  } else if (count == 3) {
    const struct place to = {.lid = (unsigned)atoi(words[2])};
    strcmp(words[1], "client") == 0 ? client(to) : alone(to);
  } else {
    return 2;
  }
  return 0;
}
