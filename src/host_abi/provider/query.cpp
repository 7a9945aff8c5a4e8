// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Attributes of the HCA, its ports and its clock.
#include "host_abi/provider/ops.h"
#include "host_abi/provider/provider.h"
#include "verbs/link_speed.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>

namespace ib::host_abi {

namespace {

constexpr std::uint64_t kAllTimestampBits = ~0ull;
constexpr std::uint64_t kClockKhz = 1'000'000;  // timestamps count nanoseconds

constexpr std::uint32_t kOdpDatagram =
    IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
constexpr std::uint32_t kOdpUnreliable = kOdpDatagram | IBV_ODP_SUPPORT_WRITE;
constexpr std::uint32_t kOdpReliable =
    kOdpUnreliable | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

// Older programs have no name for the last two, and say so (ibv_devinfo -v).
std::uint32_t odp_reliable() {
  constexpr std::uint32_t kFlush = 1u << 6;
  constexpr std::uint32_t kAtomicWrite = 1u << 7;
  constexpr int kFirstAbi = 65;
  return verbs_private().abi >= kFirstAbi ? kOdpReliable | kFlush | kAtomicWrite : kOdpReliable;
}

// Beyond the 32 bits of ibv_query_device(): the kernel's numbers, for which libibverbs has no
// names. Only where it has the functions (rdma-core 45). Not FLUSH_PERSISTENT, bit 39.
std::uint64_t more_caps() {
  constexpr std::uint64_t kFlushGlobal = 1ull << 38;
  constexpr std::uint64_t kAtomicWrite = 1ull << 40;
  return verbs_private().qp_ex_functions >= kQpExKnown ? kFlushGlobal | kAtomicWrite : 0;
}

int as_int(std::uint32_t value) {
  return static_cast<int>(std::min<std::uint32_t>(value, 0x7fffffff));
}

__be64 wire_guid(std::uint64_t guid) {
  static_assert(std::endian::native == std::endian::little);
  return __builtin_bswap64(guid);
}

void fill(const control::CaAttr& from, ibv_device_attr& to) {
  std::copy(from.fw_ver.begin(), from.fw_ver.end(), to.fw_ver);
  to.node_guid = wire_guid(from.node_guid);
  to.sys_image_guid = wire_guid(from.sys_image_guid);
  to.max_mr_size = from.max_mr_size;
  to.page_size_cap = from.page_size_cap;
  to.vendor_id = from.vendor_id;
  to.vendor_part_id = from.vendor_part_id;
  to.hw_ver = from.hw_ver;
  to.max_qp = as_int(from.max_qp);
  to.max_qp_wr = as_int(from.max_qp_wr);
  to.device_cap_flags = from.device_cap_flags;
  to.max_sge = as_int(from.max_sge);
  to.max_sge_rd = as_int(from.max_sge_rd);
  to.max_cq = as_int(from.max_cq);
  to.max_cqe = as_int(from.max_cqe);
  to.max_mr = as_int(from.max_mr);
  to.max_pd = as_int(from.max_pd);
  to.max_qp_rd_atom = as_int(from.max_qp_rd_atom);
  to.max_qp_init_rd_atom = as_int(from.max_qp_init_rd_atom);
  to.max_res_rd_atom = as_int(from.max_res_rd_atom);
  // Not GLOB: memory that peers cannot map is updated under a lock of the HCA, which the CPU's own
  // atomics do not take.
  to.atomic_cap = IBV_ATOMIC_HCA;
  to.max_mw = as_int(from.max_mw);
  to.max_mcast_grp = as_int(from.max_mcast_grp);
  to.max_mcast_qp_attach = as_int(from.max_mcast_qp_attach);
  to.max_total_mcast_qp_attach = as_int(from.max_total_mcast_qp_attach);
  to.max_ah = as_int(from.max_ah);
  to.max_srq = as_int(from.max_srq);
  to.max_srq_wr = as_int(from.max_srq_wr);
  to.max_srq_sge = as_int(from.max_srq_sge);
  to.max_pkeys = static_cast<std::uint16_t>(from.max_pkeys);
  to.local_ca_ack_delay = static_cast<std::uint8_t>(from.local_ca_ack_delay);
  to.phys_port_cnt = static_cast<std::uint8_t>(from.port_count);
}

}  // namespace

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) {
    return fail("ibv_query_device_ex", EINVAL, "comp_mask of the input must be 0");
  }
  const control::CaAttr& from = hca_of(context).attributes();
  ibv_device_attr_ex all{};
  fill(from, all.orig_attr);
  all.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  all.odp_caps.per_transport_caps.rc_odp_caps = odp_reliable();
  all.odp_caps.per_transport_caps.uc_odp_caps = kOdpUnreliable;
  all.odp_caps.per_transport_caps.ud_odp_caps = kOdpDatagram;
  all.xrc_odp_caps = odp_reliable();
  all.completion_timestamp_mask = kAllTimestampBits;
  all.hca_core_clock = kClockKhz;
  all.device_cap_flags_ex = from.device_cap_flags | more_caps();
  all.max_dm_size = from.max_dm_size;
  all.phys_port_cnt_ex = from.port_count;
  // A caller built against an older header has a shorter struct (ibv_query_device: orig_attr only).
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) {
  return guarded_int("ibv_query_port", [&] {
    const auto got = hca_of(context).query_port(port);
    if (!got) return fail("ibv_query_port", got.error());
    const control::PortAttr& from = *got;
    attr->state = static_cast<ibv_port_state>(from.state);
    attr->max_mtu = static_cast<ibv_mtu>(from.max_mtu);
    attr->active_mtu = static_cast<ibv_mtu>(from.active_mtu);
    attr->gid_tbl_len = as_int(from.gid_tbl_len);
    attr->port_cap_flags = from.port_cap_flags;
    attr->max_msg_sz = from.max_msg_sz;
    attr->bad_pkey_cntr = from.bad_pkey_cntr;
    attr->qkey_viol_cntr = from.qkey_viol_cntr;
    attr->pkey_tbl_len = static_cast<std::uint16_t>(from.pkey_tbl_len);
    attr->lid = from.lid;
    attr->sm_lid = from.sm_lid;
    attr->lmc = from.lmc;
    attr->max_vl_num = from.max_vl_num;
    attr->sm_sl = from.sm_sl;
    attr->subnet_timeout = from.subnet_timeout;
    attr->init_type_reply = from.init_type_reply;
    attr->active_width = from.active_width;
    attr->active_speed = from.active_speed;
    attr->phys_state = from.phys_state;
    attr->link_layer = static_cast<std::uint8_t>(from.link_layer);
    attr->flags = static_cast<std::uint8_t>(from.flags);
    return 0;
  });
}

// In units of 100 Mb/s, of all lanes [man ibv_query_port_speed].
int query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* speed) {
  return guarded_int("ibv_query_port_speed", [&] {
    if (port > 0xff) return fail("ibv_query_port_speed", EINVAL, "no such port");
    const auto got = hca_of(context).query_port(static_cast<std::uint8_t>(port));
    if (!got) return fail("ibv_query_port_speed", got.error());
    *speed = std::uint64_t{verbs::link_lanes(got->active_width)} *
             verbs::link_speed(got->active_speed).tenths;
    return 0;
  });
}

// The clock that completion timestamps are read from. All of it is in tv_nsec, since programs
// written for adapters take that field as the counter; those that add both fields are right too.
int query_rt_values(ibv_context*, ibv_values_ex* values) {
  const std::uint32_t wanted = values->comp_mask;
  values->comp_mask = 0;
  if ((wanted & IBV_VALUES_MASK_RAW_CLOCK) == 0) return 0;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  values->raw_clock.tv_sec = 0;
  values->raw_clock.tv_nsec = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

}  // namespace ib::host_abi
