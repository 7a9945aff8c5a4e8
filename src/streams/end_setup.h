// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How softibd begins an end: the structure in device memory, its engine, its receives.
#pragma once

#include "base/result.h"
#include "hca/layout/arena.h"
#include "streams/shared_end.h"
#include "verbs/control.h"

#include <cstdint>

namespace ib::streams {

// The objects and places of an end.
struct EndParts {
  std::uint64_t stream = 0;
  std::uint32_t end = 0;    // 0: of who connects
  std::uint64_t place = 0;  // offset of kPlaceBytes in device memory, page-aligned
  std::uint64_t peer_place = 0;
  std::uint32_t qp = 0;  // index
  std::uint32_t cq = 0;  // index
  std::uint32_t pd = 0;  // index
  std::uint32_t lkey = 0;
  std::uint64_t buffers_address = 0;  // of the receive buffers within the region of `lkey`
  verbs::control::QpOut queue_pair;
  verbs::control::CqOut completions;
  verbs::control::StreamAddress local;
  verbs::control::StreamAddress remote;
};

// Fills in the structure, which no process has yet, and posts its receives. The queue pair is in
// Init at least. Then the caller exchanges Hello and HelloAck with `SharedEnd::state` (ulp/sdp).
// InvalidParameter: parts that do not fit.
Status set_up(const hca::Arena& arena, const EndParts& parts);
// The structure of an end, or nullptr if there is none at that offset.
SharedEnd* find_end(const hca::Arena& arena, std::uint64_t place);
// No process will find it any more.
void take_down(SharedEnd& end);
// A process has died in the middle of its work with this end, or the end loses its HCA: both ends
// are broken. Their programs find out at their next call; those that sleep have to be woken by the
// end of a link.
void break_stream(const hca::Arena& arena, SharedEnd& end);

}  // namespace ib::streams
