// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RingOrder: which slot of a ring in device memory the entry at a position takes.
//
// It is not the slot after the last one. A processor that sees a core go from line to line, or
// through a few pages, fetches what it expects next: it takes lines from a writer that is about to
// use them, and each has to come back. That cost a small message a third of its time, and rings
// that are full half of their rate (docs/design/0005-notes.md). So the step is the golden section
// of a window of the ring: no two steps of one length are followed by a third, and an entry lies
// far from those just before it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ib::hca {

class RingOrder {
 public:
  // Longer rings go from window to window, so that a queue of which little is used has few pages.
  static constexpr std::uint32_t kWindow = 1024;
  // Shorter ones stay in the caches, where nothing is fetched ahead. Their entries are neighbours,
  // so that the last lies far from the first.
  static constexpr std::uint32_t kShort = 16;

  RingOrder() = default;  // of one slot
  // slots: a power of two.
  explicit constexpr RingOrder(std::uint32_t slots)
      : step_(slots <= kShort ? 1 : std::min(slots, kWindow) * kGolden / kWindow | 1),
        inside_(std::min(slots, kWindow) - 1),
        window_(slots - 1 - inside_) {}

  constexpr std::uint32_t slot(std::uint64_t position) const {
    const auto at = static_cast<std::uint32_t>(position);
    return (at * step_ & inside_) | (at & window_);
  }
  constexpr std::uint32_t slots() const { return inside_ + window_ + 1; }

 private:
  static constexpr std::uint32_t kGolden = 391;  // of kWindow; odd, so that each slot has its turn

  std::uint32_t step_ = 1;
  std::uint32_t inside_ = 0;  // bits of the slot within its window
  std::uint32_t window_ = 0;  // bits of the window
};

}  // namespace ib::hca
