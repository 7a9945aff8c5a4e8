// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attributes of an Ethernet (RoCE v2) port in libibverbs, and the ways to address others from it: by
// the entries of its GID table. Prints one line per broken rule and fails if there is one.
#include "rules.h"

#include <net/if.h>

enum { kGrh = 40, kBytes = 4096, kRoom = 1024, kQkey = 0x1111, kHops = 9, kClass = 0x20 };

static struct ibv_context* context;
static struct ibv_port_attr port;
static union ibv_gid gids[2];  // link-local, IPv4
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static char* memory;

static int is_zero(const union ibv_gid* gid) {
  return gid->global.subnet_prefix == 0 && gid->global.interface_id == 0;
}

static void the_port_says_that_it_is_ethernet(void) {
  RULE(port.link_layer == IBV_LINK_LAYER_ETHERNET, "link layer %d", port.link_layer);
  RULE((port.flags & IBV_QPF_GRH_REQUIRED) != 0, "flags %#x", port.flags);
  RULE(port.lid == 0 && port.sm_lid == 0 && port.lmc == 0, "LID %d, %d", port.lid, port.sm_lid);
  RULE(port.gid_tbl_len > 2 && port.pkey_tbl_len == 1, "%d GIDs", port.gid_tbl_len);
  __be16 pkey = 0;
  RULE(ibv_query_pkey(context, 1, 0, &pkey) == 0 && pkey == 0xffff, "P_Key %#x", pkey);
}

static void the_gid_table_has_types_and_interfaces(void) {
  static const unsigned char kIpv4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
  RULE(gids[0].raw[0] == 0xfe && gids[0].raw[1] == 0x80, "GID 0 is link-local");
  RULE(memcmp(gids[1].raw, kIpv4, sizeof kIpv4) == 0 && gids[1].raw[15] == 1, "GID 1 is the address of the first node");
  struct ibv_gid_entry entry;
  for (unsigned i = 0; i < 2; ++i) {
    memset(&entry, 0xee, sizeof entry);
    RULE(ibv_query_gid_ex(context, 1, i, &entry, 0) == 0, "entry %u: %s", i, strerror(errno));
    RULE(memcmp(&entry.gid, &gids[i], sizeof entry.gid) == 0, "entry %u", i);
    RULE(entry.gid_index == i && entry.port_num == 1, "entry %u", i);
    RULE(entry.gid_type == IBV_GID_TYPE_ROCE_V2, "entry %u: type %u", i, entry.gid_type);
    RULE(entry.ndev_ifindex == if_nametoindex("lo"), "entry %u: %u", i, entry.ndev_ifindex);
  }
  RULE(ibv_query_gid_ex(context, 1, 5, &entry, 0) == ENODATA, "a free entry");
  RULE(ibv_query_gid_ex(context, 1, (unsigned)port.gid_tbl_len, &entry, 0) != 0, "no entry");
  union ibv_gid gid;
  RULE(ibv_query_gid(context, 1, 5, &gid) == 0 && is_zero(&gid), "a free entry");
  RULE(ibv_query_gid(context, 1, port.gid_tbl_len, &gid) != 0, "no entry");
  struct ibv_gid_entry all[8];
  const ssize_t count = ibv_query_gid_table(context, all, 8, 0);
  RULE(count == 2, "%zd entries", count);
  RULE(count != 2 || (all[1].gid_index == 1 && all[1].gid_type == IBV_GID_TYPE_ROCE_V2), "entry 1");
  RULE(ibv_query_gid_table(context, all, 1, 0) < 0, "no room for the second");
}

static struct ibv_ah_attr to_gid(unsigned index) {
  struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
  attr.grh.dgid = gids[index];
  attr.grh.sgid_index = (uint8_t)index;
  attr.grh.hop_limit = kHops;
  attr.grh.traffic_class = kClass;
  return attr;
}

static void an_address_is_global(void) {
  struct ibv_ah_attr attr = to_gid(1);
  attr.dlid = 77;
  struct ibv_ah* ah = ibv_create_ah(pd, &attr);
  RULE(ah != NULL, "the LID does not count");
  if (ah != NULL) NEED(ibv_destroy_ah(ah) == 0);
  errno = 0;
  attr.is_global = 0;
  RULE(ibv_create_ah(pd, &attr) == NULL && errno == EINVAL, "a LID reaches nobody");
  attr = to_gid(1);
  attr.grh.sgid_index = 5;
  errno = 0;
  RULE(ibv_create_ah(pd, &attr) == NULL && errno == EINVAL, "a free entry sends nothing");
  attr = to_gid(1);
  attr.grh.dgid.raw[15] = 99;
  errno = 0;
  RULE(ibv_create_ah(pd, &attr) == NULL && errno == EINVAL, "nobody has this address");
}

static struct ibv_qp* new_qp(enum ibv_qp_type type) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type};
  init.cap.max_send_wr = init.cap.max_recv_wr = 8;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  NEED(qp != NULL);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQkey};
  NEED(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                         (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
  return qp;
}

static void a_connection_is_global_too(void) {
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  struct ibv_qp* qp = new_qp(IBV_QPT_RC);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
  attr.dest_qp_num = qp->qp_num;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.dlid = 1;
  RULE(ibv_modify_qp(qp, &attr, mask) == EINVAL, "a LID reaches nobody");
  attr.ah_attr = to_gid(1);
  attr.ah_attr.dlid = 77;
  RULE(ibv_modify_qp(qp, &attr, mask) == 0, "the LID does not count");
  struct ibv_qp_attr now_is = {0};
  struct ibv_qp_init_attr init;
  NEED(ibv_query_qp(qp, &now_is, IBV_QP_AV, &init) == 0);
  RULE(now_is.ah_attr.is_global == 1 && now_is.ah_attr.grh.sgid_index == 1, "as it was set");
  RULE(memcmp(&now_is.ah_attr.grh.dgid, &gids[1], sizeof gids[1]) == 0, "as it was set");
  RULE(now_is.ah_attr.grh.hop_limit == kHops, "hop limit %d", now_is.ah_attr.grh.hop_limit);
  NEED(ibv_destroy_qp(qp) == 0);
}

// Sends a datagram from `qp` to itself; returns the completion of its receive, which is at
// memory + kRoom.
static struct ibv_wc send_to_self(struct ibv_qp* qp, struct ibv_ah* ah) {
  struct ibv_sge room = {(uintptr_t)memory + kRoom, kGrh + 64, mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &room, .num_sge = 1};
  struct ibv_recv_wr* bad_receive = NULL;
  struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
  struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
  struct ibv_send_wr* bad = NULL;
  struct ibv_wc received = {.status = IBV_WC_GENERAL_ERR};
  send.send_flags = IBV_SEND_SIGNALED;
  send.wr.ud.ah = ah;
  send.wr.ud.remote_qpn = qp->qp_num;
  send.wr.ud.remote_qkey = kQkey;
  memset(memory + kRoom, 0x5a, kGrh + 64);
  NEED(ibv_post_recv(qp, &receive, &bad_receive) == 0);
  NEED(ibv_post_send(qp, &send, &bad) == 0);
  for (int i = 0; i < 2; ++i) {
    const struct ibv_wc wc = next_completion(cq);
    RULE(wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
    if (wc.opcode == IBV_WC_RECV) received = wc;
  }
  RULE(memcmp(memory + kRoom + kGrh, memory, 64) == 0, "the data");
  return received;
}

// The answer to a datagram goes to the GID that it came from, from the GID that it went to.
static void a_datagram_can_be_answered(unsigned index) {
  struct ibv_qp* qp = new_qp(IBV_QPT_UD);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
  NEED(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
  attr.qp_state = IBV_QPS_RTS;
  NEED(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
  struct ibv_ah_attr there = to_gid(index);
  struct ibv_ah* ah = ibv_create_ah(pd, &there);
  NEED(ah != NULL);
  struct ibv_wc wc = send_to_self(qp, ah);
  RULE((wc.wc_flags & IBV_WC_GRH) != 0, "flags %#x", wc.wc_flags);
  RULE(wc.sl == (index == 1 ? 10 : 9), "service level %d, the kind of packet", wc.sl);
  struct ibv_ah_attr back;
  struct ibv_grh* grh = (struct ibv_grh*)(memory + kRoom);
  RULE(ibv_init_ah_from_wc(context, 1, &wc, grh, &back) == 0, "GID %u", index);
  RULE(back.is_global == 1 && back.port_num == 1, "GID %u", index);
  RULE(back.grh.sgid_index == index, "GID %u: index %d", index, back.grh.sgid_index);
  RULE(memcmp(&back.grh.dgid, &gids[index], sizeof gids[index]) == 0, "GID %u", index);
  RULE(back.grh.hop_limit == kHops, "GID %u: hop limit %d", index, back.grh.hop_limit);
  RULE(back.grh.traffic_class == kClass, "GID %u: %#x", index, back.grh.traffic_class);
  struct ibv_ah* answer = ibv_create_ah_from_wc(pd, &wc, grh, 1);
  RULE(answer != NULL, "GID %u: %s", index, strerror(errno));
  if (answer != NULL) {
    RULE(send_to_self(qp, answer).wc_flags & IBV_WC_GRH, "the answer");
    NEED(ibv_destroy_ah(answer) == 0);
  }
  NEED(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(qp) == 0);
}

int main(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  NEED(list != NULL && list[0] != NULL);
  context = ibv_open_device(list[0]);
  NEED(context != NULL && ibv_query_port(context, 1, &port) == 0);
  for (int i = 0; i < 2; ++i) NEED(ibv_query_gid(context, 1, i, &gids[i]) == 0);
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  memory = aligned_alloc(4096, kBytes);
  NEED(pd != NULL && cq != NULL && memory != NULL);
  memset(memory, 'x', kBytes);
  mr = ibv_reg_mr(pd, memory, kBytes, IBV_ACCESS_LOCAL_WRITE);
  NEED(mr != NULL);
  the_port_says_that_it_is_ethernet();
  the_gid_table_has_types_and_interfaces();
  an_address_is_global();
  a_connection_is_global_too();
  a_datagram_can_be_answered(0);
  a_datagram_can_be_answered(1);
  NEED(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
  NEED(ibv_close_device(context) == 0);
  ibv_free_device_list(list);
  free(memory);
  printf("%d rules broken\n", broken);
  return broken != 0;
}
