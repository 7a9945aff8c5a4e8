// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Causes and completion statuses in words: the one table of names, meanings and advice. Sentences
// with the values of one failure are in drivers/trace/explain.h.
#pragma once

#include "verbs/cause.h"
#include "verbs/types.h"

#include <cstdint>

namespace ib::verbs {

struct Explanation {
  const char* name = nullptr;  // RetryExcErr
  const char* meaning = nullptr;
  const char* advice = nullptr;
};

inline constexpr std::uint32_t kWcStatusCount = 22;
inline constexpr std::uint32_t kCauseCount = 40;

// All null: no such cause or status.
Explanation explain(control::Cause cause);
Explanation explain(WcStatus status);
const char* cause_name(control::Cause cause);  // "remote_key_unknown": stable, for JSON; never null
// IBV_WC_RETRY_EXC_ERR, as verbs.h and most programs call it; never null.
const char* wc_status_name(WcStatus status);

}  // namespace ib::verbs
