// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* librpma: a client and a server that exchange private data, messages, writes, reads, atomic writes, flushes and
 * immediate data, and check all of them, round by round.
 *
 * rpma_check server|client KIND ADDRESS PORT        KIND: where the completions of receives come from
 *   one       the completion queue of the connection
 *   receives  a receive completion queue, with a channel of its own
 *   shared    a receive completion queue, with the channel of the other one
 *   srq       a shared receive queue, with its own receive completion queue
 *
 * Each waits as librpma describes: it sleeps for an event only when the queue is empty, and an event may be one of
 * completions that were taken already. */
#include <endian.h>
#include <librpma.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 500, QUEUE = 16, PAGE = 4096, DESCRIPTOR = 48 };

/* A field for each operation of the other side, and for what this one sends and receives. */
struct memory {
  uint64_t written, atomic, with_imm, source, fetched;
  uint64_t sent, received;
};
struct offer { /* private data of the connection */
  uint8_t size;
  uint8_t descriptor[DESCRIPTOR];
};
struct side {
  const char *name;
  int is_server;
  struct rpma_peer *peer;
  struct rpma_conn *conn;
  struct rpma_conn_cfg *cfg;
  struct rpma_cq *cq, *rcq;
  struct rpma_srq *srq;
  struct rpma_mr_local *mr;
  struct rpma_mr_remote *remote;
  struct memory *memory;
  struct offer offer;
};

static void check(int error, const char *what) {
  if (error == 0) return;
  fprintf(stderr, "%s: %s\n", what, rpma_err_2str(error));
  exit(1);
}

static void expect(const struct side *s, uint64_t is, uint64_t wanted, const char *what) {
  if (is == wanted) return;
  fprintf(stderr, "%s: %s: %llu, not %llu\n", s->name, what, (unsigned long long)is, (unsigned long long)wanted);
  exit(1);
}

static struct ibv_wc take(struct side *s, struct rpma_cq *cq) {
  struct ibv_wc wc;
  int error;
  int shared = 0;
  while ((error = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
    if (!shared) error = rpma_cq_wait(cq);
    if (shared || error == RPMA_E_SHARED_CHANNEL) {
      struct rpma_cq *of;
      shared = 1;
      error = rpma_conn_wait(s->conn, 0, &of, NULL);
    }
    if (error != RPMA_E_NO_COMPLETION) check(error, "wait");
  }
  check(error, "rpma_cq_get_wc");
  if (wc.status != IBV_WC_SUCCESS) {
    fprintf(stderr, "%s: %s\n", s->name, ibv_wc_status_str(wc.status));
    exit(1);
  }
  return wc;
}

static void finish(struct side *s, int error, enum ibv_wc_opcode opcode, const char *what) {
  check(error, what);
  expect(s, take(s, s->cq).opcode, opcode, what);
}

static void post_receive(struct side *s) {
  const size_t at = offsetof(struct memory, received);
  if (s->srq != NULL) {
    check(rpma_srq_recv(s->srq, s->mr, at, sizeof(uint64_t), NULL), "rpma_srq_recv");
  } else {
    check(rpma_recv(s->conn, s->mr, at, sizeof(uint64_t), NULL), "rpma_recv");
  }
}

static void configure(struct side *s, const char *kind) {
  check(rpma_conn_cfg_new(&s->cfg), "rpma_conn_cfg_new");
  check(rpma_conn_cfg_set_cq_size(s->cfg, QUEUE), "cq size");
  check(rpma_conn_cfg_set_sq_size(s->cfg, QUEUE), "sq size");
  check(rpma_conn_cfg_set_rq_size(s->cfg, QUEUE), "rq size");
  check(rpma_conn_cfg_set_timeout(s->cfg, 20000), "timeout");
  if (strcmp(kind, "receives") == 0 || strcmp(kind, "shared") == 0)
    check(rpma_conn_cfg_set_rcq_size(s->cfg, QUEUE), "rcq size");
  if (strcmp(kind, "shared") == 0) check(rpma_conn_cfg_set_compl_channel(s->cfg, true), "channel");
  if (strcmp(kind, "srq") != 0) return;
  struct rpma_srq_cfg *srq_cfg;
  check(rpma_srq_cfg_new(&srq_cfg), "rpma_srq_cfg_new");
  check(rpma_srq_cfg_set_rcq_size(srq_cfg, QUEUE), "rcq size");
  check(rpma_srq_new(s->peer, srq_cfg, &s->srq), "rpma_srq_new");
  check(rpma_srq_cfg_delete(&srq_cfg), "rpma_srq_cfg_delete");
  check(rpma_conn_cfg_set_srq(s->cfg, s->srq), "rpma_conn_cfg_set_srq");
}

static void open_side(struct side *s, const char *kind, const char *address) {
  struct ibv_context *device;
  check(rpma_utils_get_ibv_context(
            address, s->is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE, &device),
        "rpma_utils_get_ibv_context");
  check(rpma_peer_new(device, &s->peer), "rpma_peer_new");
  configure(s, kind);
  s->memory = aligned_alloc(PAGE, PAGE);
  memset(s->memory, 0, PAGE);
  const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
                    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
  check(rpma_mr_reg(s->peer, s->memory, PAGE, usage, &s->mr), "rpma_mr_reg");
  size_t size;
  check(rpma_mr_get_descriptor_size(s->mr, &size), "rpma_mr_get_descriptor_size");
  expect(s, size <= DESCRIPTOR, 1, "room for the descriptor");
  s->offer.size = (uint8_t)size;
  check(rpma_mr_get_descriptor(s->mr, s->offer.descriptor), "rpma_mr_get_descriptor");
}

static void connect_side(struct side *s, const char *address, const char *port) {
  struct rpma_conn_private_data data = {&s->offer, sizeof s->offer};
  struct rpma_conn_req *request;
  struct rpma_ep *listener = NULL;
  if (s->is_server) {
    check(rpma_ep_listen(s->peer, address, port, &listener), "rpma_ep_listen");
    check(rpma_ep_next_conn_req(listener, s->cfg, &request), "rpma_ep_next_conn_req");
  } else {
    check(rpma_conn_req_new(s->peer, address, port, s->cfg, &request), "rpma_conn_req_new");
  }
  if (s->srq == NULL) {
    check(rpma_conn_req_recv(request, s->mr, offsetof(struct memory, received), sizeof(uint64_t), NULL),
          "rpma_conn_req_recv");
  } else {
    post_receive(s);
  }
  check(rpma_conn_req_connect(&request, &data, &s->conn), "rpma_conn_req_connect");
  enum rpma_conn_event event;
  check(rpma_conn_next_event(s->conn, &event), "rpma_conn_next_event");
  expect(s, event, RPMA_CONN_ESTABLISHED, rpma_utils_conn_event_2str(event));
  if (listener != NULL) check(rpma_ep_shutdown(&listener), "rpma_ep_shutdown");
  check(rpma_conn_get_private_data(s->conn, &data), "rpma_conn_get_private_data");
  struct offer theirs;
  expect(s, data.len >= sizeof theirs, 1, "private data");
  memcpy(&theirs, data.ptr, sizeof theirs);
  check(rpma_mr_remote_from_descriptor(theirs.descriptor, theirs.size, &s->remote), "rpma_mr_remote_from_descriptor");
  check(rpma_conn_get_cq(s->conn, &s->cq), "rpma_conn_get_cq");
  check(rpma_conn_get_rcq(s->conn, &s->rcq), "rpma_conn_get_rcq");
  if (s->srq != NULL) check(rpma_srq_get_rcq(s->srq, &s->rcq), "rpma_srq_get_rcq");
  if (s->rcq == NULL) s->rcq = s->cq;
}

static void write_all(struct side *s, uint64_t value) {
  const size_t from = offsetof(struct memory, source);
  char bytes[8];
  s->memory->source = value;
  memcpy(bytes, &value, sizeof bytes);
  check(rpma_write(s->conn, s->remote, offsetof(struct memory, written), s->mr, from, sizeof value,
                   RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
  check(rpma_atomic_write(s->conn, s->remote, offsetof(struct memory, atomic), bytes, RPMA_F_COMPLETION_ON_ERROR, NULL),
        "rpma_atomic_write");
  finish(s, rpma_flush(s->conn, s->remote, 0, sizeof(struct memory), RPMA_FLUSH_TYPE_VISIBILITY,
                       RPMA_F_COMPLETION_ALWAYS, NULL), IBV_WC_RDMA_READ, "rpma_flush");
  finish(s, rpma_write_with_imm(s->conn, s->remote, offsetof(struct memory, with_imm), s->mr, from, sizeof value,
                                RPMA_F_COMPLETION_ALWAYS, (uint32_t)value, NULL), IBV_WC_RDMA_WRITE, "rpma_write_with_imm");
}

static void send_value(struct side *s, uint64_t value) {
  const size_t from = offsetof(struct memory, sent);
  s->memory->sent = value;
  finish(s, value % 2 ? rpma_send(s->conn, s->mr, from, sizeof value, RPMA_F_COMPLETION_ALWAYS, NULL)
                      : rpma_send_with_imm(s->conn, s->mr, from, sizeof value, RPMA_F_COMPLETION_ALWAYS, (uint32_t)value, NULL),
         IBV_WC_SEND, "rpma_send");
}

static void await_writes(struct side *s, uint64_t value) {
  const struct ibv_wc wc = take(s, s->rcq);
  expect(s, wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM, "the write's receive");
  expect(s, be32toh(wc.imm_data), (uint32_t)value, "its immediate data");
  expect(s, s->memory->written, value, "written");
  expect(s, s->memory->atomic, value, "atomically written");
  expect(s, s->memory->with_imm, value, "written with immediate data");
  post_receive(s);
}

static void await_message(struct side *s, uint64_t value) {
  const struct ibv_wc wc = take(s, s->rcq);
  expect(s, wc.opcode, IBV_WC_RECV, "the message's receive");
  expect(s, s->memory->received, value, "message");
  if (value % 2 == 0) expect(s, be32toh(wc.imm_data), (uint32_t)value, "its immediate data");
  post_receive(s);
}

static void read_back(struct side *s, uint64_t value) {
  finish(s, rpma_read(s->conn, s->mr, offsetof(struct memory, fetched), s->remote, offsetof(struct memory, sent),
                      sizeof value, RPMA_F_COMPLETION_ALWAYS, NULL), IBV_WC_RDMA_READ, "rpma_read");
  expect(s, s->memory->fetched, value, "read");
}

static void close_side(struct side *s) {
  enum rpma_conn_event event;
  if (!s->is_server) check(rpma_conn_disconnect(s->conn), "rpma_conn_disconnect");
  check(rpma_conn_next_event(s->conn, &event), "rpma_conn_next_event");
  expect(s, event, RPMA_CONN_CLOSED, rpma_utils_conn_event_2str(event));
  if (s->is_server) check(rpma_conn_disconnect(s->conn), "rpma_conn_disconnect");
  check(rpma_mr_remote_delete(&s->remote), "rpma_mr_remote_delete");
  check(rpma_conn_delete(&s->conn), "rpma_conn_delete");
  if (s->srq != NULL) check(rpma_srq_delete(&s->srq), "rpma_srq_delete");
  check(rpma_conn_cfg_delete(&s->cfg), "rpma_conn_cfg_delete");
  check(rpma_mr_dereg(&s->mr), "rpma_mr_dereg");
  check(rpma_peer_delete(&s->peer), "rpma_peer_delete");
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  struct side s = {.name = argv[1], .is_server = strcmp(argv[1], "server") == 0};
  open_side(&s, argv[2], argv[3]);
  connect_side(&s, argv[3], argv[4]);
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    const uint64_t question = 2 * round + round % 2, answer = question + 1;
    if (s.is_server) {
      await_writes(&s, question);
      await_message(&s, question);
      read_back(&s, question);
      send_value(&s, answer);
    } else {
      write_all(&s, question);
      send_value(&s, question);
      await_message(&s, answer);
    }
  }
  close_side(&s);
  puts("all rounds are right");
  return 0;
}
