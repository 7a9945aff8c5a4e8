// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations of the provider, one file per family of objects. They have the signatures of
// VerbsContextOps, report failure as libibverbs expects (errno, or the error number as result), and
// never throw. context.cpp puts them into the table.
#pragma once

#include "host_abi/provider/objects.h"

namespace ib::host_abi {

// context.cpp
verbs_context* alloc_context(ibv_device* device, int cmd_fd, void* private_data);
verbs_context* import_context(ibv_device* device, int cmd_fd);
void free_context(ibv_context* context);
void async_event(ibv_context* context, ibv_async_event* event);

// channel.cpp: gives the preload library the function that makes completion channels.
void register_preload_hooks();

// query.cpp
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size);
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr);
int query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* speed);
int query_rt_values(ibv_context* context, ibv_values_ex* values);

// domain.cpp
ibv_pd* alloc_pd(ibv_context* context);
int dealloc_pd(ibv_pd* pd);
ibv_pd* import_pd(ibv_context* context, std::uint32_t handle);
void unimport_pd(ibv_pd* pd);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
int close_xrcd(ibv_xrcd* xrcd);

// memory.cpp
ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access);
ibv_mr* reg_mr_ex(ibv_pd* pd, VerbsMrInitAttr* attr);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access);
ibv_mr* alloc_null_mr(ibv_pd* pd);
int rereg_mr(VerbsMr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access);
int dereg_mr(VerbsMr* mr);
ibv_mr* import_mr(ibv_pd* pd, std::uint32_t handle);
void unimport_mr(ibv_mr* mr);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count);

// window.cpp
// Describes the bind of a window to a range. `rkey`: its low byte is that of the new key.
void describe_bind(const Mw& mw, const ibv_mw_bind_info& info, std::uint32_t rkey,
                   hca::SendWqe& wqe);
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int dealloc_mw(ibv_mw* mw);

// device_memory.cpp
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr);
int free_dm(ibv_dm* dm);
ibv_dm* import_dm(ibv_context* context, std::uint32_t handle);
void unimport_dm(ibv_dm* dm);

// address.cpp
ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr);
int destroy_ah(ibv_ah* ah);
int attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);
int detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);

// cq.cpp
ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
int poll_cq(ibv_cq* cq, int count, ibv_wc* wc);
int req_notify_cq(ibv_cq* cq, int solicited_only);
int resize_cq(ibv_cq* cq, int cqe);
int destroy_cq(ibv_cq* cq);
// cq_ex.cpp: the functions of an extended CQ.
void set_cq_ex_functions(Cq& cq, std::uint64_t wc_flags);

// srq.cpp
ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask);
int query_srq(ibv_srq* srq, ibv_srq_attr* attr);
int destroy_srq(ibv_srq* srq);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);

// qp.cpp
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr);
int destroy_qp(ibv_qp* qp);
// qp_attributes.cpp
int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask);
int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);
int query_ece(ibv_qp* qp, ibv_ece* ece);
int set_ece(ibv_qp* qp, ibv_ece* ece);
int query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags);
// post.cpp
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
// qp_ex.cpp: 0, or EOPNOTSUPP if an operation is wanted that this type of QP does not have.
int check_send_ops(ibv_qp_type type, std::uint64_t ops);
void set_qp_ex_functions(Qp& qp, std::uint64_t ops);

}  // namespace ib::host_abi
