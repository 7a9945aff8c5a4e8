// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QueuePair: the control of a queue pair [IBA1 11.2.5]; its consumer posts to its WorkQueues.
// SharedReceiveQueue: control, and posting [IBA1 11.4.1].
#pragma once

#include "hca/queues/own_shared_queue.h"
#include "user/api.h"
#include "user/biased_lock.h"
#include "user/completion_queue.h"
#include "user/qp_changes.h"
#include "user/work_queues.h"

#include <cstdint>
#include <memory>
#include <span>

namespace ib::user {

class QueuePair {
 public:
  static Result<std::unique_ptr<QueuePair>> create(Hca& hca, Process& process,
                                                   const QpOptions& options, std::uint32_t handle,
                                                   const control::CreateQpIn& in,
                                                   const control::QpOut& out);

  std::uint32_t index() const { return control::index_of(handle_); }
  std::uint32_t handle() const { return handle_; }
  std::uint32_t qpn() const { return queues_.qpn(); }
  std::uint64_t cookie() const { return cookie_; }
  verbs::QpType type() const { return queues_.type(); }
  const control::QpCaps& caps() const { return caps_; }
  verbs::QpState state() const { return queues_.state(); }  // as device memory has it now
  // The same after each change that modify() has made: softibd may not have executed the last one.
  verbs::QpState settled_state() { return queues_.settled_state(); }
  WorkQueues& queues() { return queues_; }
  const WorkQueues& queues() const { return queues_; }

  Result<control::ModifyQpOut> modify(std::uint32_t mask, const control::QpAttr& attr);
  Result<control::QueryQpOut> query();
  Status attach_mcast(const verbs::Gid& mgid, std::uint16_t mlid);
  Status detach_mcast(const verbs::Gid& mgid, std::uint16_t mlid);
  // Of one with control::qp_flag::kTakesLarge: whether a datagram to `qpn` at `av` may be longer
  // than a packet, up to verbs::limits::kMaxLargeDatagram (hca/layout/large_datagrams.h). A few
  // loads, for each send; thread safe.
  bool may_send_large(const verbs::AddressVector& av, std::uint32_t qpn) const;
  Status destroy();
  // To the trace of softibd.
  void tell(const control::TraceErrorIn& error);

 private:
  QueuePair(Hca& hca, Process& process, const QpOptions& options, std::uint32_t handle,
            const control::QpOut& out);

  Hca& hca_;
  Process& process_;
  std::uint32_t handle_;
  std::uint64_t cookie_;
  control::QpCaps caps_;
  bool takes_large_;
  WorkQueues queues_;
  QpChanges changes_;
};

class SharedReceiveQueue {
 public:
  static Result<std::unique_ptr<SharedReceiveQueue>> create(Hca& hca, Process& process,
                                                            const SrqOptions& options,
                                                            std::uint32_t handle,
                                                            const control::SrqOut& out);
  ~SharedReceiveQueue();

  std::uint32_t index() const { return index_; }
  std::uint32_t handle() const { return handle_; }
  std::uint32_t srqn() const { return srqn_; }
  std::uint64_t cookie() const { return cookie_; }
  std::uint32_t max_wr() const { return max_wr_; }
  std::uint32_t max_sge() const { return max_sge_; }

  Status post_recv(std::uint64_t wr_id, std::span<const Sge> sge);
  // To the trace of softibd.
  void tell(const control::TraceErrorIn& error);
  Result<control::SrqOut> modify(const control::ModifySrqIn& in);
  Result<control::SrqOut> query();
  Status destroy();

 private:
  friend class CompletionQueue;
  SharedReceiveQueue(Hca& hca, Process& process, const SrqOptions& options, std::uint32_t handle,
                     const control::SrqOut& out);

  Hca& hca_;
  Process& process_;
  std::uint32_t handle_;
  std::uint32_t index_;
  std::uint32_t srqn_;
  std::uint64_t cookie_;
  std::uint32_t max_wr_;
  std::uint32_t max_sge_;
  std::uint32_t pd_;
  CompletionQueue* cq_;
  BiasedLock recv_lock_;
  hca::OwnSharedQueue own_;
};

}  // namespace ib::user
