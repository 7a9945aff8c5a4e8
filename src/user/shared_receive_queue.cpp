// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/hca.h"
#include "user/queue_pair.h"

namespace ib::user {

using control::Code;

Result<std::unique_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(Hca& hca, Process& process,
                                                                       const SrqOptions& options,
                                                                       std::uint32_t handle,
                                                                       const control::SrqOut& out) {
  std::unique_ptr<SharedReceiveQueue> srq(
      new SharedReceiveQueue(hca, process, options, handle, out));
  if (!srq->own_.open(process.plane(), srq->index_, out)) {
    return failed(Status::Malformed, "softibd gave an impossible SRQ");
  }
  return srq;
}

SharedReceiveQueue::SharedReceiveQueue(Hca& hca, Process& process, const SrqOptions& options,
                                       std::uint32_t handle, const control::SrqOut& out)
    : hca_(hca),
      process_(process),
      handle_(handle),
      index_(control::index_of(handle)),
      srqn_(out.srqn),
      cookie_(options.cookie),
      max_wr_(out.max_wr),
      max_sge_(out.max_sge),
      pd_(options.pd != nullptr ? options.pd->index() : control::kNoIndex),
      cq_(options.cq),
      recv_lock_(process.host().barriers()) {}

SharedReceiveQueue::~SharedReceiveQueue() = default;

Status SharedReceiveQueue::post_recv(std::uint64_t wr_id, std::span<const Sge> sge) {
  recv_lock_.lock();
  const Status status = own_.receives()->post(wr_id, sge);
  recv_lock_.unlock();
  if (status == Status::Ok) own_.serve_awaited();
  return status;
}

void SharedReceiveQueue::tell(const control::TraceErrorIn& error) {
  process_.poster().trace(error);
}

Result<control::SrqOut> SharedReceiveQueue::modify(const control::ModifySrqIn& in) {
  std::lock_guard guard(process_.connection().control_lock());
  control::ModifySrqIn mine = in;
  mine.index = handle_;
  control::SrqOut out;
  const auto done = process_.connection().call_for(Code::ModifySrq, hca_.file(), mine, out);
  if (!done) return done.error();
  return out;
}

Result<control::SrqOut> SharedReceiveQueue::query() {
  control::SrqOut out;
  const control::IndexIn in{handle_, 0};
  const auto done = process_.connection().call_for(Code::QuerySrq, hca_.file(), in, out);
  if (!done) return done.error();
  return out;
}

Status SharedReceiveQueue::destroy() {
  if (!process_.connection().is_mine()) return Status::Ok;
  std::lock_guard guard(process_.connection().control_lock());
  const Status status = hca_.command(Code::DestroySrq, control::IndexIn{handle_, 0});
  if (!Hca::is_gone(status)) return status;
  process_.objects().remove(*this);
  if (cq_ != nullptr) {
    cq_->lock();
    cq_->unlock();
  }
  return Status::Ok;
}

}  // namespace ib::user
