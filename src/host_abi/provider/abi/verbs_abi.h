// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The private plug-in interface of libibverbs, as rdma-core 36 to 65 have it.
//
// There is no public header for it. This file and verbs_ops.h hold facts about that binary
// interface: the order of the operations, and the layouts that the library and a plug-in share,
// whatever the headers that softib is built with. Everything is checked: what all versions have in
// common by the static_asserts below, what differs between them against the loaded library, by
// abi_check.cpp.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

// Sizes and offsets as they were measured; 32-bit machines have the same fields, with smaller
// pointers.
#define IB_ON_64_BIT(...) static_assert(sizeof(void*) != 8 || (__VA_ARGS__))

namespace ib::host_abi {

// glibc's mutex is in several of the library's structures. Its size is the one thing in which
// 64-bit machines differ.
#if defined(__aarch64__)
inline constexpr std::size_t kMutexBytes = 48;
#else
inline constexpr std::size_t kMutexBytes = 40;
#endif
IB_ON_64_BIT(sizeof(pthread_mutex_t) == kMutexBytes && sizeof(pthread_cond_t) == 48);

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
IB_ON_64_BIT(offsetof(VerbsSysfsDev, sysfs_name) == 36);
IB_ON_64_BIT(offsetof(VerbsSysfsDev, sysfs_cdev) == 104);
IB_ON_64_BIT(offsetof(VerbsSysfsDev, ibdev_name) == 112);

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
IB_ON_64_BIT(sizeof(VerbsDeviceOps) == 72);
IB_ON_64_BIT(offsetof(VerbsDeviceOps, alloc_context) == 40);

// The library fills everything but `device`'s own extension behind it.
struct VerbsDevice {
  ibv_device device;
  const VerbsDeviceOps* ops;
  int refcount;  // atomic_int there
  ListNode entry;
  VerbsSysfsDev* sysfs;
  std::uint64_t core_support;
};
IB_ON_64_BIT(offsetof(VerbsDevice, ops) == 0x298 && offsetof(VerbsDevice, sysfs) == 0x2b8);
IB_ON_64_BIT(sizeof(VerbsDevice) == 0x2c8);

// Read by ibv_rereg_mr and ibv_dereg_mr.
enum class VerbsMrType : std::uint32_t { Region = 0, Null = 1, Imported = 2, DmaBuf = 3 };
struct VerbsMr {
  ibv_mr mr;
  VerbsMrType type;
  int access;
};
IB_ON_64_BIT(offsetof(VerbsMr, type) == 0x30 && offsetof(VerbsMr, access) == 0x34);

// struct ibv_qp_ex: the pointers of one kind of request each behind a head that is the same in all
// versions of rdma-core.
struct QpExHead {
  ibv_qp base;
  std::uint64_t comp_mask;
  std::uint64_t wr_id;
  unsigned wr_flags;
};
IB_ON_64_BIT(sizeof(QpExHead) == 144 + kMutexBytes &&
             offsetof(QpExHead, wr_flags) == offsetof(ibv_qp_ex, wr_flags));
static_assert(sizeof(QpExHead) == offsetof(ibv_qp_ex, wr_atomic_cmp_swp));

// In the library's order. rdma-core 36 to 43 have the first 20, 44 has wr_atomic_write too, later
// ones all.
struct QpExFunctions {
  void (*wr_atomic_cmp_swp)(ibv_qp_ex*, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t);
  void (*wr_atomic_fetch_add)(ibv_qp_ex*, std::uint32_t, std::uint64_t, std::uint64_t);
  void (*wr_bind_mw)(ibv_qp_ex*, ibv_mw*, std::uint32_t, const ibv_mw_bind_info*);
  void (*wr_local_inv)(ibv_qp_ex*, std::uint32_t);
  void (*wr_rdma_read)(ibv_qp_ex*, std::uint32_t, std::uint64_t);
  void (*wr_rdma_write)(ibv_qp_ex*, std::uint32_t, std::uint64_t);
  void (*wr_rdma_write_imm)(ibv_qp_ex*, std::uint32_t, std::uint64_t, __be32);
  void (*wr_send)(ibv_qp_ex*);
  void (*wr_send_imm)(ibv_qp_ex*, __be32);
  void (*wr_send_inv)(ibv_qp_ex*, std::uint32_t);
  void (*wr_send_tso)(ibv_qp_ex*, void*, std::uint16_t, std::uint16_t);
  void (*wr_set_ud_addr)(ibv_qp_ex*, ibv_ah*, std::uint32_t, std::uint32_t);
  void (*wr_set_xrc_srqn)(ibv_qp_ex*, std::uint32_t);
  void (*wr_set_inline_data)(ibv_qp_ex*, void*, std::size_t);
  void (*wr_set_inline_data_list)(ibv_qp_ex*, std::size_t, const ibv_data_buf*);
  void (*wr_set_sge)(ibv_qp_ex*, std::uint32_t, std::uint64_t, std::uint32_t);
  void (*wr_set_sge_list)(ibv_qp_ex*, std::size_t, const ibv_sge*);
  void (*wr_start)(ibv_qp_ex*);
  int (*wr_complete)(ibv_qp_ex*);
  void (*wr_abort)(ibv_qp_ex*);
  void (*wr_atomic_write)(ibv_qp_ex*, std::uint32_t, std::uint64_t, const void*);
  void (*wr_flush)(ibv_qp_ex*, std::uint32_t, std::uint64_t, std::size_t, std::uint8_t,
                   std::uint8_t);
};
// Of ibv_qp_init_attr_ex::send_ops_flags; headers before rdma-core 45 do not have it.
inline constexpr std::uint64_t kQpExWithFlush = 1u << 11;
inline constexpr std::size_t kQpExLeast = 20;
inline constexpr std::size_t kQpExKnown = sizeof(QpExFunctions) / sizeof(void*);
inline constexpr std::size_t kQpExMost = kQpExKnown + 10;  // a later library may have more
static_assert(kQpExKnown == 22);
static_assert(offsetof(ibv_qp_ex, wr_start) ==
              sizeof(QpExHead) + offsetof(QpExFunctions, wr_start));

// struct verbs_qp, which ibv_qp_to_qp_ex reads: `comp_mask` lies behind the functions, so its place
// depends on their number, which find_qp_ex_functions() finds out.
inline constexpr std::uint32_t kVerbsQpEx = 1u << 1;
struct VerbsQp {
  union {
    QpExHead qp_ex{};
    ibv_qp qp;
  };
  std::array<void*, kQpExMost + 2> rest{};  // functions, comp_mask, xrcd
};
static_assert(offsetof(VerbsQp, rest) == sizeof(QpExHead));
// Says to the library that the queue pair has `qp_ex`.
inline void mark_extended(VerbsQp& qp, std::size_t functions) {
  std::memcpy(&qp.rest[functions], &kVerbsQpEx, sizeof kVerbsQpEx);
}

struct VerbsCq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};
IB_ON_64_BIT(sizeof(VerbsCq) == 248 + kMutexBytes &&
             offsetof(ibv_cq_ex, comp_mask) == 88 + kMutexBytes);

// The records that the library reads from async_fd and from a completion channel.
struct AsyncEventRecord {
  std::uint64_t element;
  std::uint32_t event_type;
  std::uint32_t reserved;
};
static_assert(sizeof(AsyncEventRecord) == 16);

// struct ibv_mr_init_attr, of rdma-core 59 and later.
struct VerbsMrInitAttr {
  std::size_t length;
  int access;
  std::uint64_t comp_mask;
  std::uint64_t iova;
  void* addr;
  int fd;
  std::uint64_t fd_offset;
  void* dmah;
  void* buf;  // 64 and later
};
IB_ON_64_BIT(offsetof(VerbsMrInitAttr, comp_mask) == 16 && offsetof(VerbsMrInitAttr, dmah) == 56);
namespace mr_init {
inline constexpr std::uint64_t kIova = 1u << 0;
inline constexpr std::uint64_t kAddr = 1u << 1;
inline constexpr std::uint64_t kBuf = 1u << 5;
}  // namespace mr_init

IB_ON_64_BIT(sizeof(ibv_context) == 288 + kMutexBytes && sizeof(ibv_device) == 664 &&
             sizeof(ibv_qp) == 120 + kMutexBytes);
IB_ON_64_BIT(sizeof(ibv_wc) == 48 && sizeof(ibv_send_wr) == 128);
IB_ON_64_BIT(sizeof(ibv_device_attr) == 232 && sizeof(ibv_device_attr_ex) == 400);

}  // namespace ib::host_abi

#undef IB_ON_64_BIT
