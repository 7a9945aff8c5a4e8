// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/queue_pair.h"

#include "hca/layout/large_datagrams.h"
#include "user/hca.h"

#include <mutex>

namespace ib::user {

using control::Code;

Result<std::unique_ptr<QueuePair>> QueuePair::create(Hca& hca, Process& process,
                                                     const QpOptions& options, std::uint32_t handle,
                                                     const control::CreateQpIn& in,
                                                     const control::QpOut& out) {
  std::unique_ptr<QueuePair> qp(new QueuePair(hca, process, options, handle, out));
  if (!qp->queues_.open(qp->index(), in, out, options.signal_all)) {
    return failed(Status::Malformed, "softibd gave an impossible queue pair");
  }
  return qp;
}

QueuePair::QueuePair(Hca& hca, Process& process, const QpOptions& options, std::uint32_t handle,
                     const control::QpOut& out)
    : hca_(hca),
      process_(process),
      handle_(handle),
      cookie_(options.cookie),
      caps_(out.caps),
      takes_large_((options.flags & control::qp_flag::kTakesLarge) != 0),
      queues_(process, options, out),
      changes_(hca, handle, queues_) {}

Result<control::ModifyQpOut> QueuePair::modify(std::uint32_t mask, const control::QpAttr& attr) {
  std::lock_guard guard(process_.connection().control_lock());
  return changes_.modify(mask, attr);
}

Result<control::QueryQpOut> QueuePair::query() {
  if (changes_.is_behind()) {
    std::lock_guard guard(process_.connection().control_lock());
    IB_CHECK(changes_.catch_up());
  }
  control::QueryQpOut out;
  const control::IndexIn in{handle_, 0};
  const auto done = process_.connection().call_for(Code::QueryQp, hca_.file(), in, out);
  if (!done) return done.error();
  return out;
}

Status QueuePair::attach_mcast(const verbs::Gid& mgid, std::uint16_t mlid) {
  return hca_.command(Code::AttachMcast, control::McastIn{handle_, mlid, 0, mgid});
}

Status QueuePair::detach_mcast(const verbs::Gid& mgid, std::uint16_t mlid) {
  return hca_.command(Code::DetachMcast, control::McastIn{handle_, mlid, 0, mgid});
}

bool QueuePair::may_send_large(const verbs::AddressVector& av, std::uint32_t qpn) const {
  if (!takes_large_) return false;
  const hca::Arena& arena = process_.arena();
  return hca::takes_large(arena, arena.qp(index())->id.port, av, qpn);
}

void QueuePair::tell(const control::TraceErrorIn& error) {
  process_.poster().trace(error);
}

Status QueuePair::destroy() {
  if (!process_.connection().is_mine()) return Status::Ok;
  std::lock_guard guard(process_.connection().control_lock());
  const Status status = hca_.command(Code::DestroyQp, control::IndexIn{handle_, 0});
  if (!Hca::is_gone(status)) return status;
  queues_.forget_completions();
  process_.objects().remove(queues_, index());
  process_.waiting().withdraw(queues_);
  queues_.forget_in_polls();
  process_.service().peer_may_go();
  return Status::Ok;
}

}  // namespace ib::user
