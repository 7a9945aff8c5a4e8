// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Work: the engine of an end (ulp/sdp/stream.h) over its queue pair: what came in goes to the
// engine, what that wants sent is executed. The link is not its matter (bells.h).
//
// Thread rule: under the lock of the end and inside an OpScope.
#pragma once

#include "hca/memory/memory_plane.h"
#include "streams/bells.h"
#include "streams/queue_view.h"
#include "streams/shared_end.h"
#include "ulp/sdp/stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace ib::streams {

// Part of the program's memory.
struct Part {
  std::byte* at = nullptr;
  std::size_t length = 0;
};
struct ConstPart {
  const std::byte* at = nullptr;
  std::size_t length = 0;
};

template <class One>
std::size_t length_of(std::span<One> parts) {
  std::size_t sum = 0;
  for (const auto& part : parts) sum += part.length;
  return sum;
}

// Bytes that a call of the program writes: the engine counts them as bytes of the send ring from
// `begin` on, but they are sent from where they are. The rest of them is put into the ring.
struct Fresh {
  std::uint64_t begin = 0;  // position in the ring, of the first of `parts`
  std::uint64_t end = 0;
  std::span<const ConstPart> parts;
  std::size_t skip = 0;  // bytes of `parts` before `begin`

  // Calls visit(at, length) for each piece of the bytes at the positions from `from` to `to`, until
  // it returns false.
  template <class Visit>
  bool for_each(std::uint64_t from, std::uint64_t to, Visit&& visit) const {
    std::uint64_t before = skip + (from - begin);
    std::uint64_t left = to - from;
    for (const ConstPart& part : parts) {
      if (left == 0) break;
      if (before >= part.length) {
        before -= part.length;
        continue;
      }
      const std::uint64_t here = std::min<std::uint64_t>(part.length - before, left);
      if (!visit(part.at + before, here)) return false;
      left -= here;
      before = 0;
    }
    return left == 0;
  }
};

class Work {
 public:
  static Result<std::unique_ptr<Work>> open(hca::MemoryPlane& plane, SharedEnd& end);

  // Whether there is anything for receive().
  bool has_arrival() const { return queue_->rings().has_arrival(); }
  // Everything that has come goes to the engine.
  void receive();
  // Sends what may be sent. `bell` is announced before what the peer may read: bytes, an end, a
  // reset; nullptr if it is rung already.
  void send(Bell* bell, const Fresh* fresh = nullptr);
  // Buffers that have been read are posted again.
  void give_receives();
  // Puts the rest of these bytes into the ring.
  void keep(const Fresh& fresh);
  // Something waits for receives of the peer, or for a port.
  bool has_backlog() const;
  // Where a receive buffer is.
  std::byte* buffer(std::uint32_t index) const { return queue_->rings().buffer(index); }
  // Goes on with a larger ring; false if it is not in device memory.
  bool use_ring(std::uint64_t offset, std::uint32_t length);

  Instant now() const { return plane_.host().now(); }

 private:
  Work(hca::MemoryPlane& plane, SharedEnd& end, std::unique_ptr<QueueView> queue)
      : plane_(plane), end_(end), queue_(std::move(queue)) {}

  std::byte* ring() const;
  struct Pieces {
    std::array<hca::Sge, QueueView::kMostPieces> all{};
    std::size_t count = 0;
    bool add(const std::byte* at, std::size_t length);
  };
  bool add_payload(Pieces& pieces, std::uint64_t position, std::uint32_t length,
                   const Fresh* fresh);
  void put(std::uint64_t position, const Fresh& fresh, std::uint64_t end);
  enum class Sent : std::uint8_t { Done, NotNow, Lost };
  Sent send_pending();
  void keep_pending(const sdp::Post& post, std::uint64_t position, const Fresh* fresh);
  Sent execute(const Pieces& pieces, std::uint64_t tag);
  bool hold(hca::Cause cause);

  hca::MemoryPlane& plane_;
  SharedEnd& end_;
  std::unique_ptr<QueueView> queue_;
};

}  // namespace ib::streams
