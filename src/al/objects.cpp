// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/objects.h"

#include "al/poster.h"
#include "al/verbs.h"

#include <algorithm>
#include <optional>

namespace ib::al {

void Objects::stop() {
  timer_.reset();
}

void Objects::complete(std::uint32_t index) {
  const auto cq = cqs_.find(index);
  if (cq != cqs_.end() && cq->second->on_completion) cq->second->on_completion(*cq->second);
}

void Objects::end_all_of(const Ca& ca) {
  const auto of_it = [&ca](const auto& entry) {
    if (entry.second->ca != &ca) return false;
    entry.second->end();
    return true;
  };
  std::erase_if(qps_, of_it);
  std::erase_if(srqs_, of_it);
  std::erase_if(cqs_, of_it);
}

void Objects::run_waiting() {
  const Instant start = system_.executor.now();
  for (const auto& [number, qp] : qps_) qp->run();
  // A process is stopped with a lock of device memory: other clients must go on meanwhile.
  const Instant end = system_.executor.now();
  if (end - start > kLong) not_before_ = end + kRest;
  arm_timer();
}

void Objects::arm_timer() {
  std::optional<Instant> due;
  const auto at = [&due](Instant when) {
    if (!due || when < *due) due = when;
  };
  const Instant now = std::max(system_.executor.now(), not_before_);
  if (const Duration until = poster_->sweep(); until != hca::SweepSchedule::kNever) at(now + until);
  for (const auto& [number, qp] : qps_) {
    if (qp->own.is_waiting()) at(std::max(qp->own.sends()->wake_at(), now));
    if (qp->own.is_flushing()) at(now + kPosterRetry);
  }
  timer_.reset();
  if (due) {
    timer_ = system_.executor.at(*due, [this] { run_waiting(); });
  }
}

}  // namespace ib::al
