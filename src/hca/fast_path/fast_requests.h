// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests that the fast path takes, by what they are (fast_path.h).
#pragma once

#include "verbs/types.h"

#include <cstdint>

namespace ib::hca {

inline bool is_plain_send(verbs::WrOpcode opcode) {
  return opcode == verbs::WrOpcode::Send || opcode == verbs::WrOpcode::SendWithImm;
}
inline bool has_fast_path(verbs::WrOpcode opcode) {
  return is_plain_send(opcode) || opcode == verbs::WrOpcode::RdmaWrite ||
         opcode == verbs::WrOpcode::RdmaRead;
}
// Whether more than one piece of it may have a fast path.
inline bool may_be_gathered(verbs::WrOpcode opcode, std::uint32_t flags) {
  return is_plain_send(opcode) && (flags & verbs::send_flag::kInline) != 0;
}
template <class Send>
bool is_inline(Send send) {
  return (send.flags() & verbs::send_flag::kInline) != 0;
}

}  // namespace ib::hca
