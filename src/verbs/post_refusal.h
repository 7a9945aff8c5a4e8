// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reasons for which posting refuses a work request. A reason travels in the field `cause` of
// TraceErrorIn, above the causes of completions (cause.h): no completion ever has one.
#pragma once

#include <cstdint>

namespace ib::verbs::control {

enum class PostRefusal : std::uint32_t {
  // ibv_post_send. In TraceErrorIn `detail` is the limit, `length` the value.
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
  // ibv_post_srq_recv; qp_index is that of the SRQ.
  SrqSges,
  SrqQueueFull,
  // ibv_wr_start .. ibv_wr_complete
  BatchTooLong,  // more requests than the send queue has places
  BatchNoRoom,   // `length` requests, `address` places free
  BatchOrder,    // ibv_wr_set_... before the request that it is about
  SendNoInline,  // this operation takes no inline data
};
inline constexpr std::uint32_t kFirstPostRefusal = 0x100;
inline constexpr std::uint32_t kPostRefusalCount = 17;
// Set in `cause` beside a refusal of a send that ibv_wr_complete found.
inline constexpr std::uint32_t kRefusedInBatch = 0x80;

}  // namespace ib::verbs::control
