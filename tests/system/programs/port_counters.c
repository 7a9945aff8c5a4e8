// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of two ports of an HCA, between which this program sends messages of every kind:
// each crosses one port on its way out and the other on its way in, in packets of the path MTU with
// their headers, and so do answers and acknowledgements. Prints one line per broken rule and fails
// if there is one.
#include "rules.h"

#include <fcntl.h>
#include <inttypes.h>

enum {
  kBytes = 1 << 20,
  kMtu = 1024,
  kQkey = 0x1111,
  kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
         IBV_ACCESS_REMOTE_ATOMIC,
  kBth = 12,
  kIcrc = 4,
  kDeth = 8,
  kGrh = 40,
  kReth = 16,
  kAtomicEth = 28,
  kAeth = 4,
  kAtomicAck = 8,
  kImmediate = 4,
  kXrcEth = 4
};

static struct ibv_context* context;
static struct ibv_port_attr ports[3];
static union ibv_gid gids[3];
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static char* memory;
static int ethernet;

// --- what the ports say ---

struct packets {
  uint64_t all, multicast, bytes;
};
struct requests {
  uint64_t writes, reads, atomics;
};
struct counters {
  struct packets sent, received;
  struct requests served;
};

static uint64_t number_in(const char* directory, int port, const char* name) {
  char path[128], text[32] = "";
  snprintf(path, sizeof path, "/sys/class/infiniband/softib0/ports/%d/%s/%s", port, directory,
           name);
  FILE* file = fopen(path, "r");
  NEED(file != NULL);
  NEED(fgets(text, sizeof text, file) != NULL);
  fclose(file);
  return strtoull(text, NULL, 10);
}
static uint64_t counter(int port, const char* name) {
  return number_in("counters", port, name);
}

static struct counters of_port(int port) {
  struct counters now = {
      {counter(port, "port_xmit_packets"), counter(port, "multicast_xmit_packets"),
       counter(port, "port_xmit_data") * 4},
      {counter(port, "port_rcv_packets"), counter(port, "multicast_rcv_packets"),
       counter(port, "port_rcv_data") * 4},
      {number_in("hw_counters", port, "rx_write_requests"),
       number_in("hw_counters", port, "rx_read_requests"),
       number_in("hw_counters", port, "rx_atomic_requests")}};
  RULE(counter(port, "unicast_xmit_packets") == now.sent.all - now.sent.multicast, "port %d", port);
  RULE(counter(port, "unicast_rcv_packets") == now.received.all - now.received.multicast, "port %d",
       port);
  return now;
}

static struct counters at_begin[3];
static void begin(void) {
  for (int port = 1; port <= 2; ++port) at_begin[port] = of_port(port);
}

// The data of ports are in words of 4 bytes.
static void compare(const char* what, int port, const char* way, struct packets before,
                    struct packets now, struct packets wanted) {
  const uint64_t bytes = now.bytes - before.bytes;
  RULE(now.all - before.all == wanted.all, "%s, port %d, %s: %" PRIu64 " packets, not %" PRIu64,
       what, port, way, now.all - before.all, wanted.all);
  RULE(now.multicast - before.multicast == wanted.multicast, "%s, port %d, %s: %" PRIu64, what,
       port, way, now.multicast - before.multicast);
  RULE(bytes + 4 > wanted.bytes && bytes < wanted.bytes + 4,
       "%s, port %d, %s: %" PRIu64 " bytes, not %" PRIu64, what, port, way, bytes, wanted.bytes);
}

static void crossed(const char* what, int port, struct packets sent, struct packets received) {
  const struct counters now = of_port(port);
  compare(what, port, "sent", at_begin[port].sent, now.sent, sent);
  compare(what, port, "received", at_begin[port].received, now.received, received);
}

// `count` requests have come to the port.
static void served(const char* what, int port, enum ibv_wr_opcode opcode, uint64_t count) {
  const struct requests now = of_port(port).served, before = at_begin[port].served;
  const int write = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const int atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  RULE(now.writes - before.writes == (write ? count : 0), "%s, port %d: %" PRIu64 " writes", what,
       port, now.writes - before.writes);
  RULE(now.reads - before.reads == (opcode == IBV_WR_RDMA_READ ? count : 0),
       "%s, port %d: %" PRIu64 " reads", what, port, now.reads - before.reads);
  RULE(now.atomics - before.atomics == (atomic ? count : 0), "%s, port %d: %" PRIu64 " atomics",
       what, port, now.atomics - before.atomics);
}

// Of each packet, without extended headers and payload.
static uint64_t base(int global) {
  const uint64_t route = ethernet ? 14 + 40 + 8 : 8 + (global ? kGrh : 0);
  return route + kBth + kIcrc;
}
static uint64_t padded(uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}
static uint64_t count_of(uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kMtu - 1) / kMtu;
}

// --- queue pairs ---

static struct ibv_qp* new_qp(enum ibv_qp_type type, struct ibv_xrcd* xrcd) {
  struct ibv_qp_init_attr_ex attr = {.qp_type = type, .send_cq = cq, .recv_cq = cq};
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 16;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 2;
  attr.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  attr.xrcd = xrcd;
  struct ibv_qp* qp = ibv_create_qp_ex(context, &attr);
  NEED(qp != NULL);
  return qp;
}

static struct ibv_ah_attr address(int from, int to, int global) {
  struct ibv_ah_attr attr = {.dlid = ports[to].lid, .port_num = (uint8_t)from};
  attr.is_global = (uint8_t)(ethernet || global);
  attr.grh.dgid = gids[to];
  attr.grh.hop_limit = 1;
  return attr;
}

static void connect_qp(struct ibv_qp* qp, int from, int to, uint32_t peer) {
  const int reliable = qp->qp_type != IBV_QPT_UC;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)from};
  attr.qp_access_flags = kAll;
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = attr.max_rd_atomic = 4;
  attr.ah_attr = address(from, to, 0);
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_SQ_PSN |
                         (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                         IBV_QP_MAX_QP_RD_ATOMIC
                                   : 0)) == 0);
}

static void post_receive(struct ibv_qp* qp, uint32_t bytes) {
  struct ibv_sge room = {(uintptr_t)memory, bytes, mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &room, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  NEED(ibv_post_recv(qp, &receive, &bad) == 0);
}

static void completions(int count) {
  while (count-- > 0) NEED(next_completion(cq).status == IBV_WC_SUCCESS);
}

// --- connected queue pairs ---

static int has_receive(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void post_one(struct ibv_qp* qp, enum ibv_wr_opcode opcode, uint32_t bytes, uint32_t srqn) {
  struct ibv_sge sge = {(uintptr_t)memory, bytes, mr->lkey};
  struct ibv_send_wr wr = {.opcode = opcode, .sg_list = &sge, .num_sge = bytes != 0};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = (uintptr_t)memory + kBytes;
  wr.wr.rdma.rkey = mr->rkey;
  if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = (uintptr_t)memory + kBytes;
    wr.wr.atomic.rkey = mr->rkey;
  }
  wr.qp_type.xrc.remote_srqn = srqn;
  NEED(ibv_post_send(qp, &wr, &bad) == 0);
}

// The packets of a request, and those that come back.
static void packets_of(enum ibv_qp_type type, enum ibv_wr_opcode opcode, uint64_t bytes,
                       struct packets* request, struct packets* answer) {
  const uint64_t xrc = type == IBV_QPT_XRC_SEND ? kXrcEth : 0;
  uint64_t extended = 0;
  uint64_t payload = bytes;
  *answer = (struct packets){1, 0, base(0) + kAeth};
  switch (opcode) {
    case IBV_WR_SEND_WITH_IMM: extended = kImmediate; break;
    case IBV_WR_RDMA_WRITE: extended = kReth; break;
    case IBV_WR_RDMA_WRITE_WITH_IMM: extended = kReth + kImmediate; break;
    case IBV_WR_RDMA_READ: {
      const uint64_t count = count_of(bytes);
      extended = kReth;
      payload = 0;
      *answer =
          (struct packets){count, 0, count * base(0) + (count > 1 ? 2 : 1) * kAeth + padded(bytes)};
      break;
    }
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      extended = kAtomicEth;
      payload = 0;
      answer->bytes += kAtomicAck;
      break;
    default: break;
  }
  if (type == IBV_QPT_UC) *answer = (struct packets){0, 0, 0};
  const uint64_t count = count_of(payload);
  *request = (struct packets){count, 0, count * (base(0) + xrc) + extended + padded(payload)};
}

static const struct {
  const char* name;
  enum ibv_wr_opcode opcode;
  int reliable;
} kOps[] = {{"SEND", IBV_WR_SEND, 0},
            {"SEND with immediate data", IBV_WR_SEND_WITH_IMM, 0},
            {"WRITE", IBV_WR_RDMA_WRITE, 0},
            {"WRITE with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM, 0},
            {"READ", IBV_WR_RDMA_READ, 1},
            {"compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, 1},
            {"fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, 1}};
enum { kOpCount = sizeof kOps / sizeof kOps[0] };
// Nothing, with padding, one packet and one byte more, and beyond what is copied at once.
static const uint32_t kSizes[] = {0, 8, 13, 256, 260, kMtu, kMtu + 1, 100000};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

// Three times each: the first request of a kind takes another way than those after it.
static void each_message(struct ibv_qp* from, struct ibv_qp* to, int from_port, int to_port) {
  for (int op = 0; op < kOpCount; ++op) {
    const enum ibv_wr_opcode opcode = kOps[op].opcode;
    const int atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (kOps[op].reliable && from->qp_type == IBV_QPT_UC) continue;
    for (int size = 0; size < (atomic ? 1 : kSizeCount); ++size) {
      const uint32_t bytes = atomic ? 8 : kSizes[size];
      begin();
      struct packets request = {0}, answer = {0}, r, a;
      for (int i = 0; i < 3; ++i) {
        if (has_receive(opcode)) post_receive(to, kBytes);
        post_one(from, opcode, bytes, 0);
        completions(has_receive(opcode) ? 2 : 1);
        packets_of(from->qp_type, opcode, bytes, &r, &a);
        request = (struct packets){request.all + r.all, 0, request.bytes + r.bytes};
        answer = (struct packets){answer.all + a.all, 0, answer.bytes + a.bytes};
      }
      served(kOps[op].name, to_port, opcode, 3);
      if (from_port != to_port) {
        served(kOps[op].name, from_port, IBV_WR_SEND, 0);
        crossed(kOps[op].name, from_port, request, answer);
        crossed(kOps[op].name, to_port, answer, request);
      } else {
        const struct packets both = {request.all + answer.all, 0, request.bytes + answer.bytes};
        crossed(kOps[op].name, from_port, both, both);
      }
    }
  }
}

static void connected_queue_pairs(enum ibv_qp_type type, int from_port, int to_port) {
  struct ibv_qp* from = new_qp(type, NULL);
  struct ibv_qp* to = new_qp(type, NULL);
  connect_qp(from, from_port, to_port, to->qp_num);
  connect_qp(to, to_port, from_port, from->qp_num);
  each_message(from, to, from_port, to_port);
  begin();
  const struct packets none = {0, 0, 0};
  struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
  NEED(ibv_modify_qp(from, &reset, IBV_QP_STATE) == 0);
  crossed("reset", from_port, none, none);
  NEED(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
  crossed("destroyed", from_port, none, none);
  crossed("destroyed", to_port, none, none);
}

static void xrc_queue_pairs(void) {
  struct ibv_xrcd_init_attr domain = {
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
  struct ibv_xrcd* xrcd = ibv_open_xrcd(context, &domain);
  NEED(xrcd != NULL);
  struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 8, .max_sge = 1},
                                      .srq_type = IBV_SRQT_XRC};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  init.pd = pd;
  init.xrcd = xrcd;
  init.cq = cq;
  struct ibv_srq* srq = ibv_create_srq_ex(context, &init);
  uint32_t number = 0;
  NEED(srq != NULL && ibv_get_srq_num(srq, &number) == 0);
  struct ibv_qp* from = new_qp(IBV_QPT_XRC_SEND, NULL);
  struct ibv_qp* to = new_qp(IBV_QPT_XRC_RECV, xrcd);
  connect_qp(from, 1, 2, to->qp_num);
  connect_qp(to, 2, 1, from->qp_num);
  struct ibv_sge room = {(uintptr_t)memory, kBytes, mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &room, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
  for (int i = 0; i < 3; ++i) {
    begin();
    if (opcodes[i] == IBV_WR_SEND) NEED(ibv_post_srq_recv(srq, &receive, &bad) == 0);
    post_one(from, opcodes[i], 5000, number);
    completions(opcodes[i] == IBV_WR_SEND ? 2 : 1);
    struct packets request, answer;
    packets_of(IBV_QPT_XRC_SEND, opcodes[i], 5000, &request, &answer);
    crossed("XRC", 1, request, answer);
    crossed("XRC", 2, answer, request);
  }
  NEED(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0 && ibv_destroy_srq(srq) == 0);
  NEED(ibv_close_xrcd(xrcd) == 0);
}

// --- datagrams ---

static struct ibv_qp* new_datagram_qp(int port) {
  struct ibv_qp* qp = new_qp(IBV_QPT_UD, NULL);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)port, .qkey = kQkey};
  NEED(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
  attr.qp_state = IBV_QPS_RTR;
  NEED(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
  attr.qp_state = IBV_QPS_RTS;
  NEED(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
  return qp;
}

static void post_datagram(struct ibv_qp* qp, struct ibv_ah* ah, uint32_t qpn, uint32_t qkey,
                          uint32_t bytes) {
  struct ibv_sge sge = {(uintptr_t)memory, bytes, mr->lkey};
  struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
  struct ibv_send_wr* bad = NULL;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = qpn;
  wr.wr.ud.remote_qkey = qkey;
  NEED(ibv_post_send(qp, &wr, &bad) == 0);
}

// Also those that the receiver drops: they have come to the port.
static void datagrams(int global) {
  struct ibv_qp* from = new_datagram_qp(1);
  struct ibv_qp* to = new_datagram_qp(2);
  struct ibv_ah_attr attr = address(1, 2, global);
  struct ibv_ah* ah = ibv_create_ah(pd, &attr);
  NEED(ah != NULL);
  const struct packets none = {0, 0, 0};
  const struct packets one = {1, 0, base(global) + kDeth + padded(101)};
  begin();
  post_receive(to, kBytes);
  post_datagram(from, ah, to->qp_num, kQkey, 101);
  completions(2);
  crossed("datagram", 1, one, none);
  crossed("datagram", 2, none, one);
  begin();
  post_datagram(from, ah, to->qp_num, kQkey + 1, 101);
  completions(1);
  crossed("datagram with a wrong Q_Key", 1, one, none);
  crossed("datagram with a wrong Q_Key", 2, none, one);
  begin();
  post_datagram(from, ah, to->qp_num ^ 0x20, kQkey, 101);
  completions(1);
  crossed("datagram to nobody", 1, one, none);
  crossed("datagram to nobody", 2, none, one);
  begin();
  NEED(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
  crossed("destroyed", 1, none, none);
  crossed("destroyed", 2, none, none);
}

// A port gets one packet, however many of its queue pairs are members; the sender's too.
static void a_group(void) {
  union ibv_gid group = {.raw = {0xff, 0x12, [15] = 0x77}};
  const uint16_t lid = ethernet ? 0 : 0xc077;
  struct ibv_qp* from = new_datagram_qp(1);
  struct ibv_qp* members[] = {new_datagram_qp(1), new_datagram_qp(2), new_datagram_qp(2)};
  for (int i = 0; i < 3; ++i) {
    NEED(ibv_attach_mcast(members[i], &group, lid) == 0);
    post_receive(members[i], kBytes);
  }
  struct ibv_ah_attr attr = {.dlid = lid, .is_global = 1, .port_num = 1};
  attr.grh.dgid = group;
  attr.grh.hop_limit = 1;
  struct ibv_ah* ah = ibv_create_ah(pd, &attr);
  NEED(ah != NULL);
  begin();
  post_datagram(from, ah, 0xffffff, kQkey, 64);
  completions(4);
  const struct packets none = {0, 0, 0};
  const struct packets one = {1, 1, base(1) + kDeth + 64};
  crossed("multicast", 1, one, one);
  crossed("multicast", 2, none, one);
  for (int i = 0; i < 3; ++i) {
    NEED(ibv_detach_mcast(members[i], &group, lid) == 0 && ibv_destroy_qp(members[i]) == 0);
  }
  NEED(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(from) == 0);
}

int main(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  NEED(list != NULL && count > 0);
  context = ibv_open_device(list[0]);
  NEED(context != NULL);
  for (uint8_t port = 1; port <= 2; ++port) {
    NEED(ibv_query_port(context, port, &ports[port]) == 0);
    NEED(ibv_query_gid(context, port, 0, &gids[port]) == 0);
  }
  ethernet = ports[1].link_layer == IBV_LINK_LAYER_ETHERNET;
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  memory = aligned_alloc(4096, 2 * kBytes);
  NEED(pd != NULL && cq != NULL && memory != NULL);
  memset(memory, 0, 2 * kBytes);
  mr = ibv_reg_mr(pd, memory, 2 * kBytes, kAll);
  NEED(mr != NULL);
  connected_queue_pairs(IBV_QPT_RC, 1, 2);
  connected_queue_pairs(IBV_QPT_RC, 2, 2);
  connected_queue_pairs(IBV_QPT_UC, 1, 2);
  xrc_queue_pairs();
  datagrams(0);
  datagrams(1);
  a_group();
  printf("%d rules broken\n", broken);
  return broken != 0;
}
