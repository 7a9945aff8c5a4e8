// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Outcome: how one attempt to execute a request ended, or a step of it.
#pragma once

#include "verbs/control.h"
#include "verbs/types.h"

#include <cstdint>

namespace ib::hca {

using verbs::control::Cause;

struct Outcome {
  // Dropped: over for the requester, but the message went nowhere (UC, UD). Fail: both ends are
  // broken, or the requester alone if the responder never saw the request.
  enum class Kind : std::uint32_t { Done, Dropped, Wait, Fail } kind = Kind::Done;
  verbs::WcStatus status = verbs::WcStatus::Success;
  Cause cause = Cause::None;
  std::uint64_t detail = 0;
  verbs::WcStatus peer_status = verbs::WcStatus::Success;
  std::uint32_t byte_len = 0;

  static Outcome done(std::uint32_t bytes = 0) {
    return {Kind::Done, verbs::WcStatus::Success, Cause::None, 0, verbs::WcStatus::Success, bytes};
  }
  // Without a cause the trace gets no report.
  static Outcome dropped(Cause cause = Cause::None, std::uint64_t detail = 0) {
    return {Kind::Dropped, verbs::WcStatus::Success, cause, detail, verbs::WcStatus::Success, 0};
  }
  // For no cause: a matter of moments.
  static Outcome wait(Cause cause = Cause::None, std::uint64_t detail = 0) {
    return {Kind::Wait, verbs::WcStatus::Success, cause, detail, verbs::WcStatus::Success, 0};
  }
  static Outcome fail(verbs::WcStatus status, Cause cause, std::uint64_t detail = 0) {
    return {Kind::Fail, status, cause, detail, verbs::WcStatus::Success, 0};
  }
  bool is_done() const { return kind == Kind::Done; }
};

}  // namespace ib::hca
