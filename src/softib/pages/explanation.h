// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion statuses and causes in words, with the remedy.
#pragma once

#include "verbs/control.h"
#include "verbs/post_refusal.h"
#include "verbs/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

struct Explanation {
  const char* name = nullptr;  // RetryExcErr
  const char* meaning = nullptr;
  const char* advice = nullptr;
};

inline constexpr std::uint32_t kWcStatusCount = 22;
inline constexpr std::uint32_t kCauseCount = 34;

Explanation explain(verbs::WcStatus status);
Explanation explain(verbs::control::Cause cause);
Explanation explain(verbs::control::PostRefusal why);
// The refusals of a call ("ibv_post_send"); of all calls, if it is empty.
std::vector<verbs::control::PostRefusal> refusals_of(std::string_view call);
// IBV_WC_RETRY_EXC_ERR, as verbs.h and most programs call it.
const char* verbs_name(verbs::WcStatus status);
// By name in any spelling ("NoReceive", "no_receive").
std::optional<verbs::control::Cause> find_cause(std::string_view name);

// The whole answer to `softib explain WORD`: a number is a completion status; a name in any
// spelling ("IBV_WC_RETRY_EXC_ERR", "retry exc err", "NoReceive"), "vendor_err 14" or "cause 14"
// are accepted, and so is the name of a call that refuses requests. Returns an empty text for other
// words.
std::string explain_word(std::string_view word);

// All names, for the error about an unknown one.
std::string known_words();

}  // namespace ib::softib
