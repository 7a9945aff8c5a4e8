// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LocalPieces: pieces of this process's memory, in order; the local side of a transfer. An SGE is
// one piece, or one for each range of a physical region that it touches.
#pragma once

#include "hca/layout/layout.h"
#include "verbs/limits.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::hca {

struct LocalPieces {
  static constexpr std::uint32_t kMost = kMaxSge + 1 + verbs::limits::kMaxRanges;
  struct Piece {
    std::byte* pointer;
    std::uint64_t length;
    bool doubtful;  // LocalKey::is_doubtful()
  };
  std::array<Piece, kMost> piece;
  std::uint32_t count = 0;
  std::uint64_t total = 0;
  void add(std::byte* pointer, std::uint64_t length, bool doubtful = false) {
    piece[count++] = {pointer, length, doubtful};
    total += length;
  }
};

}  // namespace ib::hca
