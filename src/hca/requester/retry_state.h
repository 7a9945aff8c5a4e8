// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RetryState: what the request at the head of a send queue waits for, since when, and for how long
// it may: transport timeout and retry count [IBA1 9.9.2.1], RNR timer and retries
// [IBA1 9.7.5.2.8].
//
// Pure: the time is an argument.
#pragma once

#include "base/time.h"
#include "hca/requester/outcome.h"
#include "verbs/control.h"

#include <cstdint>

namespace ib::hca {

// The limits that modify-QP sets.
struct RetryLimits {
  std::uint8_t timeout = 0;  // 4.096 us << timeout; 0: no limit
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;  // 7: no limit
  std::uint8_t max_rd_atomic = 1;

  // Those of a successful modify-QP; `mask`: verbs::qp_attr.
  void change(std::uint32_t mask, const verbs::control::QpAttr& attr) {
    if ((mask & verbs::qp_attr::kTimeout) != 0) timeout = attr.timeout;
    if ((mask & verbs::qp_attr::kRetryCnt) != 0) retry_count = attr.retry_cnt;
    if ((mask & verbs::qp_attr::kRnrRetry) != 0) rnr_retry = attr.rnr_retry;
    if ((mask & verbs::qp_attr::kMaxQpRdAtomic) != 0) max_rd_atomic = attr.max_rd_atomic;
  }
};

class RetryState {
 public:
  explicit RetryState(bool unreliable) : unreliable_(unreliable) {}
  void set_limits(const RetryLimits& limits) { limits_ = limits; }
  const RetryLimits& limits() const { return limits_; }

  // Returns whether the head may go on waiting for what this attempt waits for; also sets the time
  // of the next try.
  bool may_wait(const Outcome& attempt, Instant now);
  // How it ends when it may not.
  Outcome exhausted(const Outcome& attempt) const;
  Cause waits_for() const { return waits_for_; }
  // The head is over, or there is none any more.
  void forget_head() { waits_for_ = Cause::None; }
  // A message was lost for want of a receive, or was not: the one after a lost one does not wait.
  [[gnu::always_inline]] void message_ended(bool lost) { lost_one_ = lost; }

  Instant wake_at() const { return wake_at_; }
  void try_again_soon(Instant now);

 private:
  RetryLimits limits_;
  bool unreliable_;
  bool lost_one_ = false;
  Cause waits_for_ = Cause::None;
  Instant since_{};
  Instant wake_at_{};
};

}  // namespace ib::hca
