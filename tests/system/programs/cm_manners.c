// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls of librdmacm that come too often, too late or in vain, with their results on Linux: a
// connection is disconnected more than once, and notified of when it is established; a link-local
// address lacks its link. Usage: cm_manners ADDRESS PORT; prints "all right".
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));         \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

static struct rdma_cm_id* expect(struct rdma_event_channel* channel, enum rdma_cm_event_type kind) {
  struct rdma_cm_event* event;
  CHECK(rdma_get_cm_event(channel, &event) == 0);
  if (event->event != kind) {
    fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event), rdma_event_str(kind));
    exit(1);
  }
  struct rdma_cm_id* const id = event->id;
  CHECK(rdma_ack_cm_event(event) == 0);
  return id;
}

static void make_queue_pair(struct rdma_cm_id* id) {
  struct ibv_qp_init_attr wanted = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  CHECK(rdma_create_qp(id, NULL, &wanted) == 0);
}

int main(int count, char** words) {
  CHECK(count == 3);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[2]))};
  CHECK(inet_pton(AF_INET, words[1], &to.sin_addr) == 1);
  struct rdma_event_channel* const here = rdma_create_event_channel();
  struct rdma_event_channel* const there = rdma_create_event_channel();
  struct rdma_cm_id *listener, *active;
  CHECK(rdma_create_id(there, &listener, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(listener, (struct sockaddr*)&to) == 0 && rdma_listen(listener, 1) == 0);
  CHECK(rdma_create_id(here, &active, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_resolve_addr(active, NULL, (struct sockaddr*)&to, 2000) == 0);
  expect(here, RDMA_CM_EVENT_ADDR_RESOLVED);
  CHECK(rdma_resolve_route(active, 2000) == 0);
  expect(here, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_queue_pair(active);
  struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
  CHECK(rdma_connect(active, &param) == 0);
  struct rdma_cm_id* const passive = expect(there, RDMA_CM_EVENT_CONNECT_REQUEST);
  make_queue_pair(passive);
  CHECK(rdma_accept(passive, &param) == 0);
  expect(here, RDMA_CM_EVENT_ESTABLISHED);
  expect(there, RDMA_CM_EVENT_ESTABLISHED);

  CHECK(rdma_notify(passive, IBV_EVENT_COMM_EST) == -1 && errno == EISCONN);
  CHECK(rdma_notify(active, IBV_EVENT_COMM_EST) == -1 && errno == EISCONN);
  CHECK(rdma_disconnect(active) == 0 && rdma_disconnect(active) == 0);
  expect(there, RDMA_CM_EVENT_DISCONNECTED);
  CHECK(rdma_disconnect(passive) == 0 && rdma_disconnect(passive) == 0);
  expect(here, RDMA_CM_EVENT_DISCONNECTED);
  expect(here, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  CHECK(rdma_disconnect(active) == 0);
  CHECK(rdma_notify(active, IBV_EVENT_COMM_EST) == -1 && errno == EINVAL);

  struct sockaddr_in6 link = {.sin6_family = AF_INET6};
  CHECK(inet_pton(AF_INET6, "fe80::77", &link.sin6_addr) == 1);
  struct rdma_cm_id* other;
  CHECK(rdma_create_id(here, &other, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(other, (struct sockaddr*)&link) == -1 && errno == EINVAL);
  link.sin6_scope_id = 1;
  CHECK(rdma_bind_addr(other, (struct sockaddr*)&link) == -1 && errno != EINVAL);

  struct rdma_cm_id* const all[] = {active, passive};
  for (int i = 0; i < 2; ++i) rdma_destroy_qp(all[i]);
  CHECK(rdma_destroy_id(other) == 0 && rdma_destroy_id(active) == 0);
  CHECK(rdma_destroy_id(passive) == 0 && rdma_destroy_id(listener) == 0);
  puts("all right");
  return 0;
}
