// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of a stream as it lies in device memory (docs/design/0030).
//
// A stream belongs to the fabric, as a TCP connection belongs to the kernel: its queue pairs,
// completion queues and memory are softibd's, and a process that holds the link of an end works
// with it under the end's lock. So fork(), exec() and SCM_RIGHTS need nothing, and what a process
// has written when it dies is still delivered: its peer goes on with both ends (end.h).
//
// Trust: as in all of device memory (hca/layout/layout.h). Offsets and indexes are checked where
// they are used (end.cpp).
#pragma once

#include "hca/layout/layout.h"
#include "ulp/sdp/stream_state.h"
#include "verbs/control_streams.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::streams {

// The buffers that an end receives into, and the ring from which it sends when the peer has no
// receive left.
inline constexpr std::uint32_t kBuffers = 12;
inline constexpr std::uint32_t kBufferBytes = 32 * 1024;  // header included
inline constexpr std::uint32_t kSmallRing = 64 * 1024;
// The queue pair and completion queue of an end, as softibd makes them.
inline constexpr std::uint32_t kReceives = 16;     // a power of two, more than kBuffers
inline constexpr std::uint32_t kCompletions = 31;  // of a ring of 32

// A message that could not be sent when it was its turn, because a port is down or an HCA sleeps.
// Its bytes are in the send ring.
struct PendingPost {
  static constexpr std::uint32_t kMostHeader = 40;
  static_assert(sdp::kLongestHeader <= kMostHeader);
  std::uint64_t tag = 0;
  std::uint64_t ring_offset = 0;
  std::uint32_t length = 0;
  std::uint32_t header_length = 0;  // 0: none
  std::array<std::byte, kMostHeader> header{};
  std::int64_t deadline_ns = 0;  // then the connection is lost
};

// An option of a TCP socket that the link does not have.
struct SharedOption {
  std::int16_t level = 0;
  std::int16_t name = 0;
  std::int32_t value = 0;
};

struct alignas(hca::kLine) SharedEnd {
  // --- softibd's, there before a process has the end ---
  hca::Shared64 stream;               // verbs::control::StreamOut; 0: in no use
  std::uint64_t peer = 0;             // offset of the other end
  std::uint64_t buffers = 0;          // offset of kBuffers times kBufferBytes
  std::uint64_t buffers_address = 0;  // the same for receives: within the region of `lkey`
  std::uint64_t small_ring = 0;       // offset of kSmallRing bytes
  std::uint64_t rq_ring = 0;          // control::QpOut
  std::uint64_t cq_ring = 0;          // control::CqOut
  std::uint32_t end = 0;              // 0 or 1
  std::uint32_t qp = 0;               // index of its queue pair
  std::uint32_t cq = 0;               // index of the completion queue of its receives
  std::uint32_t pd = 0;               // index of its protection domain
  std::uint32_t lkey = 0;             // of its receive buffers
  std::uint32_t rq_slots = 0;
  std::uint32_t rq_stride = 0;
  std::uint32_t cq_slots = 0;
  verbs::control::StreamAddress local;
  verbs::control::StreamAddress remote;
  std::uint32_t family = 0;  // AF_INET or AF_INET6 of the program's socket, as it has told
  std::array<std::uint32_t, 7> reserved{};

  // --- shared words ---
  // hca::lock_owner() of the process that works with this end. softibd frees that of a process that
  // has died with it, after it has set `broken` at both ends.
  alignas(hca::kLine) hca::Shared32 lock;
  hca::Shared32 broken;  // a process died in the middle: ECONNRESET
  hca::Shared32 wanted;  // the peer has found the lock taken, and wants this end to go on sending
  hca::Shared32 last_user;                 // slot + 1 of the last holder of the lock
  alignas(hca::kLine) hca::Shared32 bell;  // packets in the queue of this end's link (bells.h)
  hca::Shared32 has_backlog;  // this end has bytes or messages that wait for receives of the peer
  hca::Shared32 close_hint;   // a process has closed the link: maybe it was the last
  hca::Shared32 wants_edges;  // the link is in an edge-triggered epoll set
  hca::Shared32 edge_due;     // it was read since the last packet

  // --- under the lock ---
  alignas(hca::kLine) std::uint64_t ring = 0;  // offset of settings.send_ring_bytes
  std::uint64_t bytes_sent = 0;                // for people
  std::uint64_t bytes_received = 0;
  std::uint32_t peer_is_buried =
      0;                           // its link is closed everywhere; this end's user has taken over
  std::uint32_t shut = 0;          // bits of streams/shut.h
  std::uint32_t end_reported = 0;  // the reset was told to a read
  std::uint32_t linger_zero = 0;   // SO_LINGER with time 0
  std::uint8_t urgent_byte = 0;    // that a read has passed over
  std::uint8_t has_urgent_byte = 0;
  std::uint8_t urgent_was_read = 0;  // before a read came to it
  std::uint8_t spare = 0;
  std::uint32_t owed = 0;  // packets of the link that are still to be taken (bells.h)
  std::uint32_t option_count = 0;
  std::array<SharedOption, 24> options{};
  PendingPost pending;
  sdp::Stream state;
};

// The memory that softibd allocates for an end, page-aligned: the structure, the ring, the buffers.
inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kEndBytes = (sizeof(SharedEnd) + kPage - 1) / kPage * kPage;
inline constexpr std::uint64_t kPlaceBytes =
    kEndBytes + kSmallRing + std::uint64_t{kBuffers} * kBufferBytes;

}  // namespace ib::streams
