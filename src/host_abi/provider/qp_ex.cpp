// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_qp_ex: work requests built by calls. The requests of one ibv_wr_start() .. ibv_wr_complete()
// are collected in the SendBatch of the QP, under its send lock.
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/forked.h"
#include "host_abi/provider/ops.h"
#include "host_abi/provider/post_refusal.h"
#include "host_abi/provider/provider.h"

#include <algorithm>
#include <cstring>

namespace ib::host_abi {

namespace {

using verbs::WrOpcode;

constexpr std::uint64_t kDatagramOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUnreliableOps =
    kDatagramOps | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr std::uint64_t kReliableOps =
    kUnreliableOps | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE | kQpExWithFlush;

SendBatch& batch_of(ibv_qp_ex* qp) {
  return *qp_of(qp).batch;
}

hca::SendWqe& begin(ibv_qp_ex* qp, WrOpcode opcode) {
  constexpr unsigned kFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  SendBatch& batch = batch_of(qp);
  const bool datagram = qp->qp_base.qp_type == IBV_QPT_UD;
  if (datagram && (qp->wr_flags & IBV_SEND_IP_CSUM) != 0)
    batch.set_error(EINVAL, PostRefusal::SendOther);
  return batch.begin(opcode, qp->wr_id, qp->wr_flags & kFlags);
}
hca::SendWqe& begin_remote(ibv_qp_ex* qp, WrOpcode opcode, std::uint32_t rkey,
                           std::uint64_t address) {
  hca::SendWqe& request = begin(qp, opcode);
  request.rkey = rkey;
  request.remote_address = address;
  return request;
}

void wr_send(ibv_qp_ex* qp) {
  begin(qp, WrOpcode::Send);
}
void wr_send_imm(ibv_qp_ex* qp, __be32 imm) {
  begin(qp, WrOpcode::SendWithImm).imm = imm;
}
void wr_send_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  begin(qp, WrOpcode::SendWithInv).imm = rkey;
}
void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  begin_remote(qp, WrOpcode::RdmaWrite, rkey, address);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 imm) {
  begin_remote(qp, WrOpcode::RdmaWriteWithImm, rkey, address).imm = imm;
}
void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  begin_remote(qp, WrOpcode::RdmaRead, rkey, address);
}
void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                       std::uint64_t compare, std::uint64_t swap) {
  hca::SendWqe& request = begin_remote(qp, WrOpcode::AtomicCmpSwap, rkey, address);
  request.compare_add = compare;
  request.swap = swap;
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                         std::uint64_t add) {
  begin_remote(qp, WrOpcode::AtomicFetchAdd, rkey, address).compare_add = add;
}
void wr_atomic_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, const void* bytes) {
  hca::SendWqe& request = begin_remote(qp, WrOpcode::AtomicWrite, rkey, address);
  std::memcpy(&request.compare_add, bytes, sizeof request.compare_add);
}
void wr_local_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  begin(qp, WrOpcode::LocalInv).imm = rkey;
}

void wr_flush(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::size_t bytes,
              std::uint8_t type, std::uint8_t level) {
  hca::SendWqe& request = begin_remote(qp, WrOpcode::Flush, rkey, address);
  request.compare_add = bytes;
  request.imm = verbs::flush::operands(type, level);
}

// No queue pair has it, and ibv_create_qp_ex() refuses it. A program may call it without such a
// request, which must end in an error, not in a jump to address 0.
void wr_send_tso(ibv_qp_ex* qp, void*, std::uint16_t, std::uint16_t) {
  batch_of(qp).set_error(EOPNOTSUPP, PostRefusal::SendOther);
}
void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  Mw& window = mw_of(mw);
  describe_bind(window, *info, rkey, begin(qp, WrOpcode::BindMw));
  batch_of(qp).set_window(*window.engine);
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  hca::SendWqe& request = batch_of(qp).current();
  request.av = ah_of(ah).engine->av();
  request.remote_qpn = qpn;
  request.remote_qkey = qkey;
}
void wr_set_xrc_srqn(ibv_qp_ex* qp, std::uint32_t srqn) {
  batch_of(qp).current().remote_srqn = srqn;
}
void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  batch_of(qp).set_sge({.address = address, .length = length, .lkey = lkey});
}
void wr_set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  batch_of(qp).set_sges({reinterpret_cast<const user::Sge*>(list), count});
}
void wr_set_inline_data(ibv_qp_ex* qp, void* bytes, std::size_t length) {
  SendBatch& batch = batch_of(qp);
  batch.start_inline();
  batch.add_inline(bytes, length);
}
void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  SendBatch& batch = batch_of(qp);
  batch.start_inline();
  for (const ibv_data_buf& one : std::span(list, count)) batch.add_inline(one.addr, one.length);
}

// In a forked child the lock may be held by a thread of the parent, which never releases it.
void wr_start(ibv_qp_ex* qp) {
  if (!inherited(qp_of(qp))) qp_of(qp).engine->queues().send_lock().lock();
  batch_of(qp).start();
}

// Posts all or none, as far as that can be checked before. Returns 0, or an errno that the trace
// shows.
int post_batch(Qp& qp) {
  SendBatch& batch = *qp.batch;
  if (batch.error() != 0) {
    tell_batch_refusal(qp, batch.refusal());
    return batch.error();
  }
  user::WorkQueues& queues = qp.engine->queues();
  if (queues.send_room() < batch.size()) {
    tell_no_room(qp, batch.size());
    return ENOMEM;
  }
  const hca::SendWqe* last = nullptr;
  const Status status = batch.post([&](const hca::SendWqe& request, user::MemoryWindow* window) {
    last = &request;
    return window != nullptr ? queues.post_bind(request, *window) : queues.post_send(request);
  });
  if (status != Status::Ok && last != nullptr) tell_refusal(qp, *last, status);
  return errno_of_posting(status);
}

int wr_complete(ibv_qp_ex* ibqp) {
  Qp& qp = qp_of(ibqp);
  if (inherited(qp)) return fail_inherited("ibv_wr_complete");
  const int error = post_batch(qp);
  qp.engine->queues().send_lock().unlock();
  return error == 0 ? 0 : fail("ibv_wr_complete", error, "a request of the batch was refused");
}

void wr_abort(ibv_qp_ex* qp) {
  batch_of(qp).start();
  if (!inherited(qp_of(qp))) qp_of(qp).engine->queues().send_lock().unlock();
}

constexpr QpExFunctions kFunctions{
    .wr_atomic_cmp_swp = wr_atomic_cmp_swp,
    .wr_atomic_fetch_add = wr_atomic_fetch_add,
    .wr_bind_mw = wr_bind_mw,
    .wr_local_inv = wr_local_inv,
    .wr_rdma_read = wr_rdma_read,
    .wr_rdma_write = wr_rdma_write,
    .wr_rdma_write_imm = wr_rdma_write_imm,
    .wr_send = wr_send,
    .wr_send_imm = wr_send_imm,
    .wr_send_inv = wr_send_inv,
    .wr_send_tso = wr_send_tso,
    .wr_set_ud_addr = wr_set_ud_addr,
    .wr_set_xrc_srqn = wr_set_xrc_srqn,
    .wr_set_inline_data = wr_set_inline_data,
    .wr_set_inline_data_list = wr_set_inline_data_list,
    .wr_set_sge = wr_set_sge,
    .wr_set_sge_list = wr_set_sge_list,
    .wr_start = wr_start,
    .wr_complete = wr_complete,
    .wr_abort = wr_abort,
    .wr_atomic_write = wr_atomic_write,
    .wr_flush = wr_flush,
};

}  // namespace

int check_send_ops(ibv_qp_type type, std::uint64_t ops) {
  std::uint64_t known = 0;
  if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) known = kReliableOps;
  if (type == IBV_QPT_UC) known = kUnreliableOps;
  if (type == IBV_QPT_UD) known = kDatagramOps;
  if (verbs_private().qp_ex_functions < kQpExKnown) known &= ~kQpExWithFlush;
  return (ops & ~known) == 0 ? 0 : EOPNOTSUPP;
}

// Operations that were not requested are there too if the type of QP has them: a program that uses
// one nevertheless gets an error from the engine instead of a jump to address 0.
void set_qp_ex_functions(Qp& qp, std::uint64_t) {
  const control::QpCaps& caps = qp.engine->caps();
  qp.batch = std::make_unique<SendBatch>(BatchLimits{
      .max_wr = caps.max_send_wr, .max_sge = caps.max_send_sge, .max_inline = caps.max_inline});
  const std::size_t functions = verbs_private().qp_ex_functions;
  std::memcpy(qp.rest.data(), &kFunctions, std::min(functions, kQpExKnown) * sizeof(void*));
  mark_extended(qp, functions);
}

}  // namespace ib::host_abi
