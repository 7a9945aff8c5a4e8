// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a work request was not taken when it was posted. Travels in the field `cause` of
// TraceErrorIn, above the causes of completions (cause.h): no completion ever has one.
#pragma once

#include <cstdint>

namespace ib::verbs::control {

enum class PostRefusal : std::uint32_t {
  // ibv_post_send. What TraceErrorIn has: `detail` the limit, `length` the value.
  SendState = 0x100,  // detail: the state
  SendSges,
  SendInline,
  SendQueueFull,
  SendOpcode,
  SendNoAddress,  // UD without an address handle
  SendOther,
  // ibv_post_recv
  RecvState,
  RecvSges,
  RecvQueueFull,
  RecvShared,  // the queue pair has a shared receive queue
};

}  // namespace ib::verbs::control
