// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Clients that connect by librdmacm, leave and are killed at random, and their server.
//   storm server ADDRESS PORT                     until SIGTERM, which must find no connection
//   storm clients ADDRESS PORT COUNT SEED         COUNT processes, up to 24 at a time
// The private data of a request says what the server does: its first byte 'a' accepts, 'r' rejects,
// 'i' does not answer, 'd' accepts and disconnects at once; the answer returns them. A client that
// nobody kills checks all that it sees, and ends with 0.
//
// As on Linux a server is not told that the client of a request that it has not answered is gone:
// it ends these ids with the next 'r', which the last client sends.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kAtATime = 24, kTimeoutMs = 30000, kMostRequestBytes = 56, kMostReplyBytes = 196, kMostIgnored = 1024 };

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct sockaddr_in address_of(char** words) {
  struct sockaddr_in out = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  check(inet_pton(AF_INET, words[0], &out.sin_addr) == 1, "the address");
  return out;
}

static int make_qp(struct rdma_cm_id* id) {
  struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  return rdma_create_qp(id, NULL, &attr);
}

static void destroy(struct rdma_cm_id* id) {
  if (id->qp != NULL) rdma_destroy_qp(id);
  check(rdma_destroy_id(id) == 0, "rdma_destroy_id");
}

// Any length up to `most`: each has its bytes.
static uint8_t fill(uint8_t* bytes, uint8_t kind, unsigned number, unsigned most) {
  const unsigned length = 1 + number % most;
  for (unsigned i = 0; i < length; ++i) bytes[i] = (uint8_t)(number * 7 + i);
  bytes[0] = kind;
  return (uint8_t)length;
}

// --- the server

static volatile sig_atomic_t ends;
static void end(int number) {
  (void)number;
  ends = 1;
}

static unsigned connections;
static struct rdma_cm_id* ignored[kMostIgnored];
static unsigned ignored_count;

static void on_request(struct rdma_cm_id* id, const struct rdma_conn_param* request) {
  uint8_t kind = 0;
  struct rdma_conn_param reply = {.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7};
  uint8_t bytes[kMostReplyBytes] = {0};
  check(request->private_data_len >= kMostRequestBytes, "the private data of a request");
  memcpy(bytes, request->private_data, kMostRequestBytes);
  kind = bytes[0];
  id->context = NULL;
  if (kind == 'r') {
    while (ignored_count > 0) destroy(ignored[--ignored_count]);
    (void)rdma_reject(id, bytes, 148);
    destroy(id);
    return;
  }
  if (kind == 'i') {
    check(ignored_count < kMostIgnored, "the number of requests without an answer");
    ignored[ignored_count++] = id;
    return;
  }
  ++connections;
  reply.private_data = bytes;
  reply.private_data_len = kMostReplyBytes;
  // Both fail if the client has gone meanwhile: nobody is told of a request that was not accepted.
  if (make_qp(id) != 0 || rdma_accept(id, &reply) != 0) {
    destroy(id);
    --connections;
  } else if (kind == 'd') {
    id->context = id;
  }
}

static void on_event(struct rdma_cm_event* event) {
  struct rdma_cm_id* const id = event->id;
  const enum rdma_cm_event_type type = event->event;
  const struct rdma_conn_param param = event->param.conn;
  uint8_t bytes[256] = {0};
  if (type == RDMA_CM_EVENT_CONNECT_REQUEST && param.private_data != NULL) {
    memcpy(bytes, param.private_data, param.private_data_len);
  }
  check(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
  struct rdma_conn_param copy = param;
  copy.private_data = bytes;
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST: on_request(id, &copy); break;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (id->context != NULL) (void)rdma_disconnect(id);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      destroy(id);
      --connections;
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
    default: fprintf(stderr, "storm: %s\n", rdma_event_str(type)); exit(1);
  }
}

static int serve(char** words) {
  struct rdma_event_channel* const channel = rdma_create_event_channel();
  struct sockaddr_in where = address_of(words);
  struct rdma_cm_id* listener = NULL;
  struct sigaction action = {.sa_handler = end};
  check(channel != NULL && rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  check(rdma_bind_addr(listener, (struct sockaddr*)&where) == 0, "rdma_bind_addr");
  check(rdma_listen(listener, 1024) == 0, "rdma_listen");
  sigaction(SIGTERM, &action, NULL);
  while (!ends) {
    struct rdma_cm_event* event = NULL;
    if (rdma_get_cm_event(channel, &event) == 0) on_event(event);
    else check(errno == EINTR, "rdma_get_cm_event");
  }
  printf("%u connections left\n", connections);
  destroy(listener);
  rdma_destroy_event_channel(channel);
  return connections == 0 ? 0 : 1;
}

// --- the clients

static enum rdma_cm_event_type next_event(struct rdma_event_channel* channel, uint8_t* bytes) {
  struct rdma_cm_event* event = NULL;
  check(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
  const enum rdma_cm_event_type type = event->event;
  if (bytes != NULL && event->param.conn.private_data != NULL) {
    memcpy(bytes, event->param.conn.private_data, event->param.conn.private_data_len);
  }
  check(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
  return type;
}

static void expect(enum rdma_cm_event_type seen, enum rdma_cm_event_type wanted) {
  if (seen == wanted) return;
  fprintf(stderr, "storm: %s instead of %s\n", rdma_event_str(seen), rdma_event_str(wanted));
  exit(1);
}

static const char kKinds[] = "aaaardaai";
enum { kKindCount = sizeof kKinds - 1, kReject = 4 };

static void connect_once(struct rdma_event_channel* channel, struct sockaddr_in* to, unsigned number) {
  const char kind = kKinds[number % kKindCount];
  struct rdma_cm_id* id = NULL;
  uint8_t request[kMostRequestBytes];
  uint8_t reply[256] = {0};
  struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
  param.private_data = request;
  param.private_data_len = fill(request, (uint8_t)kind, number, kMostRequestBytes);
  check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  check(rdma_resolve_addr(id, NULL, (struct sockaddr*)to, kTimeoutMs) == 0, "rdma_resolve_addr");
  expect(next_event(channel, NULL), RDMA_CM_EVENT_ADDR_RESOLVED);
  check(rdma_resolve_route(id, kTimeoutMs) == 0, "rdma_resolve_route");
  expect(next_event(channel, NULL), RDMA_CM_EVENT_ROUTE_RESOLVED);
  check(make_qp(id) == 0, "rdma_create_qp");
  check(rdma_connect(id, &param) == 0, "rdma_connect");
  if (kind != 'i') {
    expect(next_event(channel, reply), kind == 'r' ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_ESTABLISHED);
    check(memcmp(reply, request, param.private_data_len) == 0, "the private data of the answer");
    if (kind == 'd') expect(next_event(channel, NULL), RDMA_CM_EVENT_DISCONNECTED);
    if (kind == 'a' && number % 2 != 0) check(rdma_disconnect(id) == 0, "rdma_disconnect");
  }
  destroy(id);
}

// A process: some connections, one after the other or with ids that the exit of the process ends.
static void be_client(struct sockaddr_in to, unsigned seed) {
  struct rdma_event_channel* const channel = rdma_create_event_channel();
  check(channel != NULL, "rdma_create_event_channel");
  const unsigned rounds = 1 + seed % 4;
  for (unsigned i = 0; i < rounds; ++i) connect_once(channel, &to, seed / 4 + i * 31);
  if (seed % 3 != 0) rdma_destroy_event_channel(channel);
  exit(0);
}

static unsigned random_state;
static unsigned draw(unsigned below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % below;
}

static int storm(char** words) {
  const struct sockaddr_in to = address_of(words);
  const unsigned count = (unsigned)atoi(words[2]);
  pid_t running[kAtATime] = {0};
  uint8_t is_killed[kAtATime] = {0};
  unsigned begun = 0, ended = 0, killed = 0, served = 0;
  random_state = (unsigned)atoi(words[3]);
  while (ended < count) {
    for (unsigned i = 0; i < kAtATime && begun < count; ++i) {
      if (running[i] != 0) continue;
      const unsigned seed = draw(1u << 20);
      is_killed[i] = 0;
      running[i] = fork();
      check(running[i] >= 0, "fork");
      if (running[i] == 0) be_client(to, seed);
      ++begun;
    }
    const struct timespec pause = {0, (long)draw(4000) * 1000};
    nanosleep(&pause, NULL);  // the kills come at any moment
    const unsigned victim = draw(kAtATime);
    if (running[victim] != 0 && draw(8) == 0 && !is_killed[victim]) {
      check(kill(running[victim], SIGKILL) == 0, "kill");
      is_killed[victim] = 1;
    }
    for (unsigned i = 0; i < kAtATime; ++i) {
      int status = 0;
      if (running[i] == 0 || waitpid(running[i], &status, WNOHANG) != running[i]) continue;
      if (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0) {
        fprintf(stderr, "storm: a client failed (status %#x)\n", (unsigned)status);
        exit(1);
      }
      check(!WIFSIGNALED(status) || is_killed[i], "a client died");
      WIFSIGNALED(status) ? ++killed : ++served;
      running[i] = 0;
      ++ended;
    }
  }
  const pid_t last = fork();
  int status = 0;
  check(last >= 0, "fork");
  if (last == 0) be_client(to, 4 * kReject);
  check(waitpid(last, &status, 0) == last && status == 0, "the last client failed");
  printf("%u clients, %u served, %u killed\n", count, served, killed);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "server") == 0) return serve(argv + 2);
  if (argc == 6 && strcmp(argv[1], "clients") == 0) return storm(argv + 2);
  fprintf(stderr, "usage: see the head of storm.c\n");
  return 2;
}
