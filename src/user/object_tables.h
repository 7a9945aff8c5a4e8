// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ObjectTables: the objects of this process by index, for completions, events and attention.
//
// Thread rule: add and remove under the control lock; an entry that is found stays as long as its
// reader holds what keeps it alive (a CQ's lock).
#pragma once

#include "base/sparse_table.h"
#include "hca/layout/layout.h"
#include "user/work_queues.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ib::user {

class ObjectTables {
 public:
  // Returns false if there was no memory for them; then no other call is allowed.
  bool valid() const { return qps_.valid() && srqs_.valid() && cqs_.valid(); }

  // The queues of a queue pair.
  void add(WorkQueues& queues, std::uint32_t index);
  void remove(WorkQueues& queues, std::uint32_t index);
  WorkQueues* find_qp(std::uint32_t qpn) const {
    WorkQueues* queues = qps_[hca::qp_index(qpn)].load(std::memory_order_acquire);
    return queues != nullptr && queues->qpn() == qpn ? queues : nullptr;
  }
  // Of all queue pairs. Under the control lock.
  const std::vector<WorkQueues*>& own_queues() const { return own_queues_; }

  void add(SharedReceiveQueue& srq);
  void remove(SharedReceiveQueue& srq);
  SharedReceiveQueue* find_srq(std::uint32_t index) const {
    return index < hca::kMaxSrqs ? srqs_[index].load(std::memory_order_acquire) : nullptr;
  }

  void add(CompletionQueue& cq);
  void remove(CompletionQueue& cq);
  // The completion queue with this index that is alive in this process and its cookie, or nothing:
  // turns what came out of a channel's pipe back into an object.
  Result<std::uint64_t> cq_cookie(std::uint64_t cq_index) const;

 private:
  // Entries are published and withdrawn with release/acquire.
  template <class Object, std::size_t kMost>
  using Table = SparseTable<std::atomic<Object*>, kMost>;

  Table<WorkQueues, hca::kMaxQps> qps_;
  Table<SharedReceiveQueue, hca::kMaxSrqs> srqs_;
  Table<CompletionQueue, hca::kMaxCqs> cqs_;
  std::vector<WorkQueues*> own_queues_;
};

}  // namespace ib::user
