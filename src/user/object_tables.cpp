// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/object_tables.h"

#include "user/queue_pair.h"

namespace ib::user {

Result<std::uint64_t> ObjectTables::cq_cookie(std::uint64_t cq_index) const {
  if (cq_index >= hca::kMaxCqs) return Status::NotFound;
  const CompletionQueue* cq = cqs_[cq_index].load(std::memory_order_acquire);
  if (cq == nullptr) return Status::NotFound;
  return cq->cookie();
}

void ObjectTables::add(WorkQueues& queues, std::uint32_t index) {
  own_queues_.push_back(&queues);
  qps_[index].store(&queues, std::memory_order_release);
}

void ObjectTables::remove(WorkQueues& queues, std::uint32_t index) {
  std::erase(own_queues_, &queues);
  qps_[index].store(nullptr, std::memory_order_release);
}

void ObjectTables::add(SharedReceiveQueue& srq) {
  srqs_[srq.index()].store(&srq, std::memory_order_release);
}
void ObjectTables::remove(SharedReceiveQueue& srq) {
  srqs_[srq.index()].store(nullptr, std::memory_order_release);
}
void ObjectTables::add(CompletionQueue& cq) {
  cqs_[cq.index()].store(&cq, std::memory_order_release);
}
void ObjectTables::remove(CompletionQueue& cq) {
  cqs_[cq.index()].store(nullptr, std::memory_order_release);
}

}  // namespace ib::user
