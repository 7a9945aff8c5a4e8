// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Work requests and completions as a user-mode client sees them [IBA1 11.4]. A request is the
// hca::SendWqe that will be executed; what it points to needs to live only for the call that posts
// it. Fields that its opcode does not have may hold anything.
#pragma once

#include "hca/queues/completion.h"
#include "hca/requester/send_wqe.h"

#include <cstdint>
#include <span>

namespace ib::user {

using hca::Completion;
using hca::SendWqe;
using hca::Sge;  // same layout as ibv_sge

// `flags`: verbs::send_flag.
inline void set_flags(SendWqe& wqe, std::uint32_t flags) {
  wqe.flags = flags;
  wqe.inline_data = (flags & verbs::send_flag::kInline) != 0;
}
inline void set_sges(SendWqe& wqe, std::span<const Sge> list) {
  wqe.sge = list.data();
  wqe.num_sge = static_cast<std::uint32_t>(list.size());
}

}  // namespace ib::user
