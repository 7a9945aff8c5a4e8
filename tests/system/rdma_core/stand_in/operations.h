/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of libibverbs, in its order: the release of rdma-core that has them, and where
   verbs_set_ops() copies them to, seen from struct ibv_context. Written down apart from
   src/host_abi/provider/abi/verbs_ops.h. */
#pragma once
#include <infiniband/verbs.h>
#include <limits.h>
#include <stddef.h>

#define CONTEXT_END(field) \
  ((long)offsetof(struct verbs_context, field) - (long)offsetof(struct verbs_context, context))
#define HERE(field) CONTEXT_END(field)
#define INSIDE(field) CONTEXT_END(context.ops.field)
#define BACK(words) (-(long)sizeof(void*) * (words)) /* fields that newer headers have */
#define NOWHERE LONG_MAX

struct operation {
  int since;
  const char* name;
  long place;
};

static const struct operation operations[] = {
    {36, "advise_mr", HERE(advise_mr)},
    {64, "alloc_buf", BACK(45)},
    {36, "alloc_dm", HERE(alloc_dm)},
    {59, "alloc_dmah", BACK(41)},
    {36, "alloc_mw", INSIDE(alloc_mw)},
    {36, "alloc_null_mr", HERE(alloc_null_mr)},
    {36, "alloc_parent_domain", HERE(alloc_parent_domain)},
    {36, "alloc_pd", INSIDE(_compat_alloc_pd)},
    {36, "alloc_td", HERE(alloc_td)},
    {36, "async_event", INSIDE(_compat_async_event)},
    {36, "attach_counters_point_flow", HERE(attach_counters_point_flow)},
    {36, "attach_mcast", INSIDE(_compat_attach_mcast)},
    {36, "bind_mw", INSIDE(bind_mw)},
    {36, "close_xrcd", HERE(close_xrcd)},
    {36, "cq_event", INSIDE(_compat_cq_event)},
    {36, "create_ah", INSIDE(_compat_create_ah)},
    {65, "create_comp_cntr", NOWHERE},
    {36, "create_counters", HERE(create_counters)},
    {36, "create_cq", INSIDE(_compat_create_cq)},
    {36, "create_cq_ex", NOWHERE},
    {36, "create_flow", HERE(ibv_create_flow)},
    {36, "create_flow_action_esp", HERE(create_flow_action_esp)},
    {36, "create_qp", INSIDE(_compat_create_qp)},
    {36, "create_qp_ex", HERE(create_qp_ex)},
    {36, "create_rwq_ind_table", HERE(create_rwq_ind_table)},
    {36, "create_srq", INSIDE(_compat_create_srq)},
    {36, "create_srq_ex", HERE(create_srq_ex)},
    {36, "create_wq", HERE(create_wq)},
    {59, "dealloc_dmah", BACK(42)},
    {36, "dealloc_mw", INSIDE(dealloc_mw)},
    {36, "dealloc_pd", INSIDE(_compat_dealloc_pd)},
    {36, "dealloc_td", HERE(dealloc_td)},
    {36, "dereg_mr", INSIDE(_compat_dereg_mr)},
    {36, "destroy_ah", INSIDE(_compat_destroy_ah)},
    {65, "destroy_comp_cntr", NOWHERE},
    {36, "destroy_counters", HERE(destroy_counters)},
    {36, "destroy_cq", INSIDE(_compat_destroy_cq)},
    {36, "destroy_flow", HERE(ibv_destroy_flow)},
    {36, "destroy_flow_action", HERE(destroy_flow_action)},
    {36, "destroy_qp", INSIDE(_compat_destroy_qp)},
    {36, "destroy_rwq_ind_table", HERE(destroy_rwq_ind_table)},
    {36, "destroy_srq", INSIDE(_compat_destroy_srq)},
    {36, "destroy_wq", HERE(destroy_wq)},
    {36, "detach_mcast", INSIDE(_compat_detach_mcast)},
    {62, "dm_export_dmabuf_fd", BACK(44)},
    {64, "free_buf", BACK(46)},
    {36, "free_context", NOWHERE},
    {36, "free_dm", HERE(free_dm)},
    {36, "get_srq_num", HERE(get_srq_num)},
    {36, "import_dm", NOWHERE},
    {36, "import_mr", NOWHERE},
    {36, "import_pd", NOWHERE},
    {65, "inc_comp_cntr", NOWHERE},
    {65, "inc_err_comp_cntr", NOWHERE},
    {36, "modify_cq", HERE(modify_cq)},
    {36, "modify_flow_action_esp", HERE(modify_flow_action_esp)},
    {36, "modify_qp", INSIDE(_compat_modify_qp)},
    {36, "modify_qp_rate_limit", HERE(modify_qp_rate_limit)},
    {36, "modify_srq", INSIDE(_compat_modify_srq)},
    {36, "modify_wq", HERE(modify_wq)},
    {36, "open_qp", HERE(open_qp)},
    {36, "open_xrcd", HERE(open_xrcd)},
    {36, "poll_cq", INSIDE(poll_cq)},
    {36, "post_recv", INSIDE(post_recv)},
    {36, "post_send", INSIDE(post_send)},
    {36, "post_srq_ops", HERE(post_srq_ops)},
    {36, "post_srq_recv", INSIDE(post_srq_recv)},
    {65, "qp_attach_comp_cntr", NOWHERE},
    {65, "query_comp_cntr_caps", NOWHERE},
    {36, "query_device_ex", HERE(query_device_ex)},
    {36, "query_ece", NOWHERE},
    {36, "query_port", NOWHERE},
    {62, "query_port_speed", NOWHERE},
    {36, "query_qp", INSIDE(_compat_query_qp)},
    {36, "query_qp_data_in_order", NOWHERE},
    {36, "query_rt_values", HERE(query_rt_values)},
    {36, "query_srq", INSIDE(_compat_query_srq)},
    {65, "read_comp_cntr", NOWHERE},
    {36, "read_counters", HERE(read_counters)},
    {65, "read_err_comp_cntr", NOWHERE},
    {36, "reg_dm_mr", HERE(reg_dm_mr)},
    {36, "reg_dmabuf_mr", NOWHERE},
    {36, "reg_mr", INSIDE(_compat_reg_mr)},
    {59, "reg_mr_ex", BACK(43)},
    {36, "req_notify_cq", INSIDE(req_notify_cq)},
    {36, "rereg_mr", INSIDE(_compat_rereg_mr)},
    {36, "resize_cq", INSIDE(_compat_resize_cq)},
    {65, "set_comp_cntr", NOWHERE},
    {36, "set_ece", NOWHERE},
    {65, "set_err_comp_cntr", NOWHERE},
    {36, "unimport_dm", NOWHERE},
    {36, "unimport_mr", NOWHERE},
    {36, "unimport_pd", NOWHERE},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))
