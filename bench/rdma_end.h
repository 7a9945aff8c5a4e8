// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One process's end of connections by librdmacm: an event channel, and queue pairs that share one
// completion queue. For this folder's programs about connections.
#pragma once

#include "tcp_end.h"

#include <rdma/rdma_cma.h>

#include <cstdint>

namespace ib::bench {

constexpr int kTimeoutMs = 10000;

class RdmaEnd {
 public:
  RdmaEnd() : channel_(made(rdma_create_event_channel(), "rdma_create_event_channel")) {}

  rdma_cm_id* create_id(void* context) {
    rdma_cm_id* id = nullptr;
    require(rdma_create_id(channel_, &id, context, RDMA_PS_TCP) == 0, "rdma_create_id");
    return id;
  }
  // The smallest queue pair there is.
  void create_qp(rdma_cm_id* id) {
    if (cq_ == nullptr) {
      pd_ = made(ibv_alloc_pd(id->verbs), "ibv_alloc_pd");
      cq_ = made(ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0), "ibv_create_cq");
    }
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    require(rdma_create_qp(id, pd_, &attr) == 0, "rdma_create_qp");
  }
  static rdma_conn_param parameters() {
    rdma_conn_param param{};
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = param.rnr_retry_count = 7;
    return param;
  }
  void connect(rdma_cm_id* id) {
    create_qp(id);
    rdma_conn_param param = parameters();
    require(rdma_connect(id, &param) == 0, "rdma_connect");
  }
  void accept(rdma_cm_id* id) {
    create_qp(id);
    rdma_conn_param param = parameters();
    require(rdma_accept(id, &param) == 0, "rdma_accept");
  }
  static void destroy(rdma_cm_id* id) {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    require(rdma_destroy_id(id) == 0, "rdma_destroy_id");
  }
  // Waits for one event; it is acknowledged when the next one is waited for.
  struct Event {
    rdma_cm_event_type type;
    rdma_cm_id* id;
  };
  Event next_event() {
    rdma_cm_event* event = nullptr;
    require(rdma_get_cm_event(channel_, &event) == 0, "rdma_get_cm_event");
    const Event next{event->event, event->id};
    const bool has_failed = event->status != 0;
    require(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
    if (has_failed) fail(rdma_event_str(next.type));
    return next;
  }

  // Takes the next step of a connection that is being made. Returns whether the event was for one.
  bool goes_on(const Event& event) {
    if (event.type == RDMA_CM_EVENT_ADDR_RESOLVED) {
      require(rdma_resolve_route(event.id, kTimeoutMs) == 0, "rdma_resolve_route");
      return true;
    }
    if (event.type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
      connect(event.id);
      return true;
    }
    return false;
  }

 private:
  rdma_event_channel* channel_;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

// Accepts connections and ends them when the other side does, until it is killed.
[[noreturn]] inline void serve_rdma(const char* address, const char* port) {
  RdmaEnd end;
  rdma_cm_id* listener = end.create_id(nullptr);
  sockaddr_in where = address_of(address, port);
  require(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&where)) == 0, "rdma_bind_addr");
  require(rdma_listen(listener, 1024) == 0, "rdma_listen");
  std::printf("listening\n");
  std::fflush(stdout);
  for (;;) {
    const RdmaEnd::Event event = end.next_event();
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) end.accept(event.id);
    if (event.type == RDMA_CM_EVENT_DISCONNECTED) RdmaEnd::destroy(event.id);
  }
}

}  // namespace ib::bench
