// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QueueView: the queue pair of an end, as a process works with it that does not own it: receives
// and completions by the rings in device memory, sends by a requester of this process.
//
// All positions are in device memory, so views of several processes may take turns; nothing is kept
// here but what can be found again. Sends are executed at once or not at all (Requester::try_now).
//
// Thread rule: under the lock of the end and inside an OpScope.
#pragma once

#include "base/result.h"
#include "hca/layout/ring_order.h"
#include "hca/memory/memory_plane.h"
#include "hca/poster/requester.h"
#include "streams/shared_end.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ib::streams {

// The geometry of the rings of an end, checked. For softibd, too, which posts the first receives.
class Rings {
 public:
  // InvalidParameter: nonsense.
  static Result<Rings> find(const hca::Arena& arena, const SharedEnd& end);

  // The receive that is filled by a message becomes that of buffer `index` < kBuffers.
  void post_receive(std::uint32_t index);
  struct Arrival {
    std::uint32_t buffer = 0;
    std::uint32_t bytes = 0;
    bool is_good = false;  // false: the connection has failed
  };
  bool has_arrival() const;
  Arrival take();
  bool is_connected() const;  // the queue pair can send and receive
  std::byte* buffer(std::uint32_t index) const {
    return buffers_ + std::size_t{index} * kBufferBytes;
  }

 private:
  const hca::Cqe& head(std::uint64_t position) const;

  hca::QpEntry* qp_ = nullptr;
  hca::CqEntry* cq_ = nullptr;
  std::byte* receives_ = nullptr;
  const hca::Cqe* completions_ = nullptr;
  std::byte* buffers_ = nullptr;
  hca::RingOrder receive_order_;
  hca::RingOrder completion_order_;
  std::uint32_t stride_ = 0;
  std::uint32_t log_completions_ = 0;
  std::uint64_t buffers_address_ = 0;
  std::uint32_t lkey_ = 0;
};

class QueueView {
 public:
  static Result<std::unique_ptr<QueueView>> open(hca::MemoryPlane& plane, const SharedEnd& end);

  Rings& rings() { return rings_; }
  // A message of these pieces of this process's memory, at most kMostPieces.
  static constexpr std::size_t kMostPieces = 8;
  hca::Requester::Tried send(std::span<const hca::Sge> pieces);

 private:
  QueueView(hca::MemoryPlane& plane, const Rings& rings, const hca::RequesterConfig& config)
      : rings_(rings), requester_(plane, config) {}

  Rings rings_;
  hca::Requester requester_;
};

}  // namespace ib::streams
