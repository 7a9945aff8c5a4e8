// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Extended polling: one completion at a time, read field by field between start_poll and end_poll.
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/forked.h"
#include "host_abi/provider/ops.h"

#include <ctime>

namespace ib::host_abi {

namespace {

std::int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The queue's lock is held by the caller.
int take(Cq& cq) {
  if (!cq.engine->take(cq.current)) return ENOENT;
  cq.cq_ex.wr_id = cq.current.wr_id;
  cq.cq_ex.status = static_cast<ibv_wc_status>(cq.current.status);
  return 0;
}

int start_poll(ibv_cq_ex* ibcq, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  Cq& cq = cq_of(ibcq);
  if (inherited(cq)) return fail_inherited("ibv_start_poll");
  cq.engine->begin_batch();
  const int result = take(cq);
  if (result != 0) cq.engine->end_batch();  // end_poll is not called after a failure
  return result;
}

int start_poll_wallclock(ibv_cq_ex* ibcq, ibv_poll_cq_attr* attr) {
  Cq& cq = cq_of(ibcq);
  cq.wallclock_offset = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC);
  return start_poll(ibcq, attr);
}

int next_poll(ibv_cq_ex* cq) {
  return take(cq_of(cq));
}

void end_poll(ibv_cq_ex* cq) {
  cq_of(cq).engine->end_batch();
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
  return static_cast<ibv_wc_opcode>(cq_of(cq).current.opcode);
}
std::uint32_t read_vendor_err(ibv_cq_ex* cq) {
  return cq_of(cq).current.vendor_err;
}
std::uint32_t read_byte_len(ibv_cq_ex* cq) {
  return cq_of(cq).current.byte_len;
}
__be32 read_imm_data(ibv_cq_ex* cq) {
  return cq_of(cq).current.imm;
}
std::uint32_t read_qp_num(ibv_cq_ex* cq) {
  return cq_of(cq).current.qpn;
}
std::uint32_t read_src_qp(ibv_cq_ex* cq) {
  return cq_of(cq).current.src_qp;
}
unsigned read_wc_flags(ibv_cq_ex* cq) {
  return cq_of(cq).current.flags;
}
std::uint32_t read_slid(ibv_cq_ex* cq) {
  return cq_of(cq).current.slid;
}
std::uint8_t read_sl(ibv_cq_ex* cq) {
  return cq_of(cq).current.sl;
}
std::uint8_t read_dlid_path_bits(ibv_cq_ex* cq) {
  return cq_of(cq).current.path_bits;
}
std::uint64_t read_completion_ts(ibv_cq_ex* cq) {
  return cq_of(cq).current.timestamp;
}
std::uint64_t read_completion_wallclock_ns(ibv_cq_ex* ibcq) {
  const Cq& cq = cq_of(ibcq);
  return cq.current.timestamp + static_cast<std::uint64_t>(cq.wallclock_offset);
}

}  // namespace

void set_cq_ex_functions(Cq& cq, std::uint64_t wc_flags) {
  ibv_cq_ex& ex = cq.cq_ex;
  const bool wallclock = (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0;
  ex.start_poll = wallclock ? start_poll_wallclock : start_poll;
  ex.next_poll = next_poll;
  ex.end_poll = end_poll;
  // The fields that every completion has may be read whether they were requested or not.
  ex.read_opcode = read_opcode;
  ex.read_vendor_err = read_vendor_err;
  ex.read_wc_flags = read_wc_flags;
  ex.read_byte_len = read_byte_len;
  ex.read_imm_data = read_imm_data;
  ex.read_qp_num = read_qp_num;
  ex.read_src_qp = read_src_qp;
  ex.read_slid = read_slid;
  ex.read_sl = read_sl;
  ex.read_dlid_path_bits = read_dlid_path_bits;
  if ((wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0) {
    ex.read_completion_ts = read_completion_ts;
  }
  if (wallclock) ex.read_completion_wallclock_ns = read_completion_wallclock_ns;
}

}  // namespace ib::host_abi
