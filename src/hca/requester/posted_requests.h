// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PostedRequests: the requests of a send queue from their posting until their completion is polled:
// their positions, and what the program calls them.
//
// Thread rule: append() and reset() under the send lock; polled() and queued(): any thread, one at
// a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ib::hca {

class PostedRequests {
 public:
  explicit PostedRequests(std::uint32_t most)
      : mask_(std::bit_ceil(std::max(most, 1u)) - 1), wr_ids_(mask_ + std::size_t{1}) {}

  std::uint32_t mask() const { return mask_; }  // of positions: the slots of so many requests
  std::uint64_t end() const { return posted_.load(std::memory_order_relaxed); }
  std::uint32_t queued() const {
    return static_cast<std::uint32_t>(posted_.load(std::memory_order_relaxed) -
                                      freed_.load(std::memory_order_acquire));
  }
  // Room for one more is known. Gives its position.
  [[gnu::always_inline]] std::uint64_t append(std::uint64_t wr_id) {
    const std::uint64_t position = posted_.load(std::memory_order_relaxed);
    wr_ids_[position & mask_] = wr_id;
    posted_.store(position + 1, std::memory_order_release);  // after the wr_id, for polled()
    return position;
  }
  // A completion for the request at `position` was polled: its slot and all before it are free.
  // Gives the request's wr_id; false if no such request is outstanding.
  bool polled(std::uint32_t position, std::uint64_t& wr_id) {
    const std::uint64_t freed = freed_.load(std::memory_order_relaxed);
    const std::uint64_t full = freed + (position - static_cast<std::uint32_t>(freed));
    if (full >= posted_.load(std::memory_order_acquire)) return false;
    wr_id = wr_ids_[full & mask_];
    freed_.store(full + 1, std::memory_order_release);  // the wr_id was read, for queued()
    return true;
  }
  void reset() { freed_.store(posted_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

 private:
  std::uint32_t mask_;
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> freed_{0};
  std::vector<std::uint64_t> wr_ids_;
};

}  // namespace ib::hca
