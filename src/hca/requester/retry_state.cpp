// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/retry_state.h"

#include "hca/requester/rnr_timer.h"

#include <algorithm>

namespace ib::hca {

using verbs::WcStatus;

namespace {

constexpr Duration kRetryTick = std::chrono::milliseconds(1);
constexpr Duration kSleepTick = std::chrono::milliseconds(500);
constexpr Duration kUnreliableTimeLimit = std::chrono::seconds(1);

}  // namespace

void RetryState::try_again_soon(Instant now) {
  wake_at_ = now + kRetryTick;
}

bool RetryState::may_wait(const Outcome& attempt, Instant now) {
  if (attempt.cause == Cause::None) {  // pages moving, budget spent: a matter of moments
    wake_at_ = now;
    return true;
  }
  if (waits_for_ != attempt.cause) {
    waits_for_ = attempt.cause;
    since_ = now;
  }
  if (attempt.cause == Cause::HcaAsleep) {
    wake_at_ = now + kSleepTick;  // resume kicks us; this is for a kick that got lost
    return true;
  }
  if (attempt.cause == Cause::NoReceive && unreliable_) {
    // On a wire the message would be lost. Here the sender is as fast as memory and programs that
    // count on the pace of a link would lose most of what they send, so a receiver gets some time,
    // unless it let the message before this one expire.
    wake_at_ = now + kRetryTick;
    return !lost_one_ && now < since_ + kUnreliableTimeLimit;
  }
  if (attempt.cause == Cause::NoReceive) {
    const Duration timer = rnr_delay(static_cast<std::uint8_t>(attempt.detail));
    wake_at_ = now + std::min(timer, Duration(kRetryTick));
    return limits_.rnr_retry == 7 || now < since_ + timer * limits_.rnr_retry;
  }
  const Duration transport = limits_.timeout == 0
                                 ? Duration::max()
                                 : Duration(4096ll << std::min<std::uint8_t>(limits_.timeout, 31)) *
                                       (limits_.retry_count + 1);
  wake_at_ = now + std::min(transport, Duration(kRetryTick));
  return limits_.timeout == 0 || now < since_ + transport;
}

Outcome RetryState::exhausted(const Outcome& attempt) const {
  if (attempt.cause != Cause::NoReceive) {
    return Outcome::fail(WcStatus::RetryExcErr, attempt.cause, attempt.detail);
  }
  if (unreliable_) return Outcome::dropped(attempt.cause, attempt.detail);
  return Outcome::fail(WcStatus::RnrRetryExcErr, attempt.cause, limits_.rnr_retry);
}

}  // namespace ib::hca
