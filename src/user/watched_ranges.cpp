// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/watched_ranges.h"

#include <algorithm>

namespace ib::user {

std::uint32_t WatchedRanges::add(std::uint32_t key, std::uint64_t start, std::uint64_t end) {
  if (!ranges_.valid() || start >= end) return kNotWatched;
  std::uint32_t place = used_.load(std::memory_order_relaxed);
  if (!free_.empty()) {
    place = free_.back();
    free_.pop_back();
  } else if (place == hca::kMaxKeys) {
    return kNotWatched;
  }
  lowest_.store(std::min(lowest_.load(), start));
  highest_.store(std::max(highest_.load(), end));
  Range& range = ranges_[place];
  range.key.store(key, std::memory_order_relaxed);
  range.start.store(start, std::memory_order_relaxed);
  range.end.store(end, std::memory_order_release);
  if (place == used_.load(std::memory_order_relaxed)) used_.store(place + 1);
  return place;
}

void WatchedRanges::remove(std::uint32_t place) {
  if (place == kNotWatched) return;
  ranges_[place].end.store(0, std::memory_order_release);
  free_.push_back(place);
}

void WatchedRanges::doubt(hca::LocalKeys& keys, std::uint64_t start, std::uint64_t end) const {
  if (end <= lowest_.load() || start >= highest_.load()) return;
  const std::uint32_t used = used_.load();
  for (std::uint32_t place = 0; place < used; ++place) {
    const Range& range = ranges_[place];
    if (range.end.load(std::memory_order_acquire) <= start) continue;
    if (range.start.load(std::memory_order_relaxed) >= end) continue;
    keys.doubt(range.key.load(std::memory_order_relaxed));
  }
}

}  // namespace ib::user
