// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations that a plug-in hands to libibverbs, of all versions of rdma-core: sorted by name,
// as the library has them. A library takes the table of its own version, which lacks the operations
// that came later: pack() makes it.
#pragma once

#include "host_abi/provider/abi/verbs_abi.h"

#include <array>
#include <cstddef>
#include <cstdint>

// Of newer headers than those that softib may be built with.
struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

namespace ib::host_abi {

struct VerbsContextOps {
  int (*advise_mr)(ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t);
  void* (*alloc_buf)(ibv_pd*, std::size_t, ibv_buf**);
  ibv_dm* (*alloc_dm)(ibv_context*, ibv_alloc_dm_attr*);
  ibv_dmah* (*alloc_dmah)(ibv_context*, ibv_dmah_init_attr*);
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
  ibv_mr* (*alloc_null_mr)(ibv_pd*);
  ibv_pd* (*alloc_parent_domain)(ibv_context*, ibv_parent_domain_init_attr*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*);
  void (*async_event)(ibv_context*, ibv_async_event*);
  int (*attach_counters_point_flow)(ibv_counters*, ibv_counter_attach_attr*, ibv_flow*);
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t);
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  int (*close_xrcd)(ibv_xrcd*);
  void (*cq_event)(ibv_cq*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  ibv_comp_cntr* (*create_comp_cntr)(ibv_context*, ibv_comp_cntr_init_attr*);
  ibv_counters* (*create_counters)(ibv_context*, ibv_counters_init_attr*);
  ibv_cq* (*create_cq)(ibv_context*, int, ibv_comp_channel*, int);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  ibv_flow* (*create_flow)(ibv_qp*, ibv_flow_attr*);
  ibv_flow_action* (*create_flow_action_esp)(ibv_context*, ibv_flow_action_esp_attr*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  ibv_rwq_ind_table* (*create_rwq_ind_table)(ibv_context*, ibv_rwq_ind_table_init_attr*);
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  ibv_srq* (*create_srq_ex)(ibv_context*, ibv_srq_init_attr_ex*);
  ibv_wq* (*create_wq)(ibv_context*, ibv_wq_init_attr*);
  int (*dealloc_dmah)(ibv_dmah*);
  int (*dealloc_mw)(ibv_mw*);
  int (*dealloc_pd)(ibv_pd*);
  int (*dealloc_td)(ibv_td*);
  int (*dereg_mr)(VerbsMr*);
  int (*destroy_ah)(ibv_ah*);
  int (*destroy_comp_cntr)(ibv_comp_cntr*);
  int (*destroy_counters)(ibv_counters*);
  int (*destroy_cq)(ibv_cq*);
  int (*destroy_flow)(ibv_flow*);
  int (*destroy_flow_action)(ibv_flow_action*);
  int (*destroy_qp)(ibv_qp*);
  int (*destroy_rwq_ind_table)(ibv_rwq_ind_table*);
  int (*destroy_srq)(ibv_srq*);
  int (*destroy_wq)(ibv_wq*);
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t);
  int (*dm_export_dmabuf_fd)(ibv_dm*);
  void (*free_buf)(ibv_buf*);
  void (*free_context)(ibv_context*);
  int (*free_dm)(ibv_dm*);
  int (*get_srq_num)(ibv_srq*, std::uint32_t*);
  ibv_dm* (*import_dm)(ibv_context*, std::uint32_t);
  ibv_mr* (*import_mr)(ibv_pd*, std::uint32_t);
  ibv_pd* (*import_pd)(ibv_context*, std::uint32_t);
  int (*inc_comp_cntr)(ibv_comp_cntr*, std::uint64_t);
  int (*inc_err_comp_cntr)(ibv_comp_cntr*, std::uint64_t);
  int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
  int (*modify_flow_action_esp)(ibv_flow_action*, ibv_flow_action_esp_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*modify_qp_rate_limit)(ibv_qp*, ibv_qp_rate_limit_attr*);
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int);
  int (*modify_wq)(ibv_wq*, ibv_wq_attr*);
  ibv_qp* (*open_qp)(ibv_context*, ibv_qp_open_attr*);
  ibv_xrcd* (*open_xrcd)(ibv_context*, ibv_xrcd_init_attr*);
  int (*poll_cq)(ibv_cq*, int, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
  int (*post_srq_ops)(ibv_srq*, ibv_ops_wr*, ibv_ops_wr**);
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
  int (*qp_attach_comp_cntr)(ibv_qp*, ibv_comp_cntr*, ibv_qp_attach_comp_cntr_attr*);
  int (*query_comp_cntr_caps)(ibv_context*, ibv_comp_cntr_caps*, std::size_t);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         std::size_t);
  int (*query_ece)(ibv_qp*, ibv_ece*);
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
  int (*query_port_speed)(ibv_context*, std::uint32_t, std::uint64_t*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  int (*query_qp_data_in_order)(ibv_qp*, ibv_wr_opcode, std::uint32_t);
  int (*query_rt_values)(ibv_context*, ibv_values_ex*);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  int (*read_comp_cntr)(ibv_comp_cntr*, std::uint64_t*);
  int (*read_counters)(ibv_counters*, std::uint64_t*, std::uint32_t, std::uint32_t);
  int (*read_err_comp_cntr)(ibv_comp_cntr*, std::uint64_t*);
  ibv_mr* (*reg_dm_mr)(ibv_pd*, ibv_dm*, std::uint64_t, std::size_t, unsigned);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, std::uint64_t, int);
  ibv_mr* (*reg_mr_ex)(ibv_pd*, VerbsMrInitAttr*);
  int (*req_notify_cq)(ibv_cq*, int);
  int (*rereg_mr)(VerbsMr*, int, ibv_pd*, void*, std::size_t, int);
  int (*resize_cq)(ibv_cq*, int);
  int (*set_comp_cntr)(ibv_comp_cntr*, std::uint64_t);
  int (*set_ece)(ibv_qp*, ibv_ece*);
  int (*set_err_comp_cntr)(ibv_comp_cntr*, std::uint64_t);
  void (*unimport_dm)(ibv_dm*);
  void (*unimport_mr)(ibv_mr*);
  void (*unimport_pd)(ibv_pd*);
};
inline constexpr std::size_t kVerbsOpCount = 93;
static_assert(sizeof(VerbsContextOps) == kVerbsOpCount * sizeof(void*));

// The tables that there are. The private ABI number does not tell them apart: 59 has two.
struct OpsTable {
  unsigned release = 0;     // of rdma-core, the first with this table
  std::size_t ops = 0;      // their number
  std::size_t context = 0;  // sizeof(verbs_context) of that library, which grows at its start
};
constexpr std::size_t context_size(std::size_t more_pointers) {
  constexpr std::size_t kFirst = sizeof(void*) == 8 ? 320 + sizeof(ibv_context) : 336;
  return kFirst + more_pointers * sizeof(void*);
}
inline constexpr std::array<OpsTable, 5> kOpsTables{{{36, 76, context_size(0)},
                                                     {59, 79, context_size(3)},
                                                     {62, 81, context_size(4)},
                                                     {64, 83, context_size(6)},
                                                     {65, 93, context_size(6)}}};

// Those that a table has and the one before has not.
#define IB_OP(table, op)                                 \
  AddedOp {                                              \
    table, offsetof(VerbsContextOps, op) / sizeof(void*) \
  }
struct AddedOp {
  std::size_t table;
  std::size_t index;
};
inline constexpr std::array kAddedOps{
    IB_OP(1, alloc_dmah),
    IB_OP(1, dealloc_dmah),
    IB_OP(1, reg_mr_ex),
    IB_OP(2, dm_export_dmabuf_fd),
    IB_OP(2, query_port_speed),
    IB_OP(3, alloc_buf),
    IB_OP(3, free_buf),
    IB_OP(4, create_comp_cntr),
    IB_OP(4, destroy_comp_cntr),
    IB_OP(4, inc_comp_cntr),
    IB_OP(4, inc_err_comp_cntr),
    IB_OP(4, qp_attach_comp_cntr),
    IB_OP(4, query_comp_cntr_caps),
    IB_OP(4, read_comp_cntr),
    IB_OP(4, read_err_comp_cntr),
    IB_OP(4, set_comp_cntr),
    IB_OP(4, set_err_comp_cntr),
};
#undef IB_OP

// Of each operation, the first table that has it.
inline constexpr std::array<std::size_t, kVerbsOpCount> kFirstTable = [] {
  std::array<std::size_t, kVerbsOpCount> first{};
  for (const AddedOp& op : kAddedOps) first[op.index] = op.table;
  return first;
}();
static_assert([] {
  for (std::size_t table = 0; table < kOpsTables.size(); ++table) {
    std::size_t ops = 0;
    for (const std::size_t first : kFirstTable) ops += first <= table ? 1u : 0u;
    if (ops != kOpsTables[table].ops) return false;
  }
  return true;
}());

// The place of an operation in a table that has it.
constexpr std::size_t place_in_table(std::size_t op, std::size_t table) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < op; ++i) place += kFirstTable[i] <= table ? 1u : 0u;
  return place;
}

// The operations of one table, in the places where a library of that version reads them.
using PackedOps = std::array<void*, kVerbsOpCount>;
PackedOps pack(const VerbsContextOps& ops, std::size_t table);

}  // namespace ib::host_abi
