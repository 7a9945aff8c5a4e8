// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The private plug-in interface of libibverbs, number 34, as rdma-core 44 has it on x86-64.
//
// There is no public header for it. This file holds facts about that binary interface: the order of
// the operations, and the layouts that the library and a plug-in share. Everything is checked:
// sizes and offsets by the static_asserts below, the order of the operations against the loaded
// library by abi_check.cpp (number 34 alone does not guarantee it: operations were added without a
// change of the number).
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace ib::host_abi {

struct ListNode {
  ListNode* next = nullptr;
  ListNode* prev = nullptr;
};

// The device in sysfs, filled in and owned by libibverbs.
struct VerbsSysfsDev {
  ListNode entry;
  void* provider_data;
  const void* match;
  unsigned flags;
  char sysfs_name[IBV_SYSFS_NAME_MAX];  // uverbs0
  dev_t sysfs_cdev;
  char ibdev_name[IBV_SYSFS_NAME_MAX];  // softib0
  char ibdev_path[IBV_SYSFS_PATH_MAX];
  // More fields follow that a plug-in does not need.
};
static_assert(offsetof(VerbsSysfsDev, sysfs_name) == 36);
static_assert(offsetof(VerbsSysfsDev, sysfs_cdev) == 104);
static_assert(offsetof(VerbsSysfsDev, ibdev_name) == 112);

struct VerbsDevice;

struct VerbsDeviceOps {
  const char* name;
  std::uint32_t match_min_abi_version;
  std::uint32_t match_max_abi_version;
  const void* match_table;
  const VerbsDeviceOps** static_providers;
  bool (*match_device)(VerbsSysfsDev* sysfs_dev);
  verbs_context* (*alloc_context)(ibv_device* device, int cmd_fd, void* private_data);
  verbs_context* (*import_context)(ibv_device* device, int cmd_fd);
  VerbsDevice* (*alloc_device)(VerbsSysfsDev* sysfs_dev);
  void (*uninit_device)(VerbsDevice* device);
};
static_assert(sizeof(VerbsDeviceOps) == 72);
static_assert(offsetof(VerbsDeviceOps, alloc_context) == 40);

// The library fills everything but `device`'s own extension behind it.
struct VerbsDevice {
  ibv_device device;
  const VerbsDeviceOps* ops;
  int refcount;  // atomic_int there
  ListNode entry;
  VerbsSysfsDev* sysfs;
  std::uint64_t core_support;
};
static_assert(offsetof(VerbsDevice, ops) == 0x298 && offsetof(VerbsDevice, sysfs) == 0x2b8);
static_assert(sizeof(VerbsDevice) == 0x2c8);

// Read by ibv_rereg_mr and ibv_dereg_mr.
enum class VerbsMrType : std::uint32_t { Region = 0, Null = 1, Imported = 2, DmaBuf = 3 };
struct VerbsMr {
  ibv_mr mr;
  VerbsMrType type;
  int access;
};
static_assert(offsetof(VerbsMr, type) == 0x30 && offsetof(VerbsMr, access) == 0x34);

// Read by ibv_qp_to_qp_ex.
inline constexpr std::uint32_t kVerbsQpEx = 1u << 1;
struct VerbsQp {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
  };
  std::uint32_t comp_mask;
  void* xrcd;
};
static_assert(offsetof(ibv_qp_ex, qp_base) == 0 && offsetof(VerbsQp, comp_mask) == 352);

struct VerbsCq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};
static_assert(sizeof(VerbsCq) == 288 && offsetof(ibv_cq_ex, comp_mask) == 128);

// The records that the library reads from async_fd and from a completion channel.
struct AsyncEventRecord {
  std::uint64_t element;
  std::uint32_t event_type;
  std::uint32_t reserved;
};
static_assert(sizeof(AsyncEventRecord) == 16);

// The operations, sorted by name as the library has them.
struct VerbsContextOps {
  int (*advise_mr)(ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t);
  ibv_dm* (*alloc_dm)(ibv_context*, ibv_alloc_dm_attr*);
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
  int (*dealloc_mw)(ibv_mw*);
  int (*dealloc_pd)(ibv_pd*);
  int (*dealloc_td)(ibv_td*);
  int (*dereg_mr)(VerbsMr*);
  int (*destroy_ah)(ibv_ah*);
  int (*destroy_counters)(ibv_counters*);
  int (*destroy_cq)(ibv_cq*);
  int (*destroy_flow)(ibv_flow*);
  int (*destroy_flow_action)(ibv_flow_action*);
  int (*destroy_qp)(ibv_qp*);
  int (*destroy_rwq_ind_table)(ibv_rwq_ind_table*);
  int (*destroy_srq)(ibv_srq*);
  int (*destroy_wq)(ibv_wq*);
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t);
  void (*free_context)(ibv_context*);
  int (*free_dm)(ibv_dm*);
  int (*get_srq_num)(ibv_srq*, std::uint32_t*);
  ibv_dm* (*import_dm)(ibv_context*, std::uint32_t);
  ibv_mr* (*import_mr)(ibv_pd*, std::uint32_t);
  ibv_pd* (*import_pd)(ibv_context*, std::uint32_t);
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
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         std::size_t);
  int (*query_ece)(ibv_qp*, ibv_ece*);
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  int (*query_qp_data_in_order)(ibv_qp*, ibv_wr_opcode, std::uint32_t);
  int (*query_rt_values)(ibv_context*, ibv_values_ex*);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  int (*read_counters)(ibv_counters*, std::uint64_t*, std::uint32_t, std::uint32_t);
  ibv_mr* (*reg_dm_mr)(ibv_pd*, ibv_dm*, std::uint64_t, std::size_t, unsigned);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, std::uint64_t, int);
  int (*req_notify_cq)(ibv_cq*, int);
  int (*rereg_mr)(VerbsMr*, int, ibv_pd*, void*, std::size_t, int);
  int (*resize_cq)(ibv_cq*, int);
  int (*set_ece)(ibv_qp*, ibv_ece*);
  void (*unimport_dm)(ibv_dm*);
  void (*unimport_mr)(ibv_mr*);
  void (*unimport_pd)(ibv_pd*);
};
inline constexpr std::size_t kVerbsOpCount = 76;
static_assert(sizeof(VerbsContextOps) == kVerbsOpCount * sizeof(void*));
// The table that the library's own entry points (ibv_import_dm, ibv_query_qp_data_in_order, ...)
// use.
static_assert(offsetof(VerbsContextOps, create_qp) == 0x98);
static_assert(offsetof(VerbsContextOps, free_context) == 0x138);
static_assert(offsetof(VerbsContextOps, import_dm) == 0x150);
static_assert(offsetof(VerbsContextOps, query_qp_data_in_order) == 0x1f0);
static_assert(offsetof(VerbsContextOps, unimport_dm) == 0x248);

// The private functions, found at run time (abi_check.h).
struct VerbsPrivate {
  void (*register_driver)(const VerbsDeviceOps* ops);
  void* (*init_and_alloc_context)(ibv_device* device, int cmd_fd, std::size_t size,
                                  verbs_context* context_offset, std::uint32_t driver_id);
  void (*uninit_context)(verbs_context* context);
  void (*set_ops)(verbs_context* context, const VerbsContextOps* ops);
};

static_assert(sizeof(verbs_context) == 648 && offsetof(verbs_context, context) == 320);
static_assert(offsetof(verbs_context, priv) == 208 && sizeof(ibv_context) == 328);
static_assert(sizeof(ibv_device) == 664 && sizeof(ibv_wc) == 48 && sizeof(ibv_send_wr) == 128);
static_assert(sizeof(ibv_device_attr) == 232 && sizeof(ibv_device_attr_ex) == 400);
static_assert(sizeof(ibv_qp_ex) == 352 && offsetof(ibv_qp_ex, wr_atomic_write) == 344);

}  // namespace ib::host_abi
