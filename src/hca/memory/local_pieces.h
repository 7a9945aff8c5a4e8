// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LocalPieces: pieces of this process's memory, in order; the local side of a transfer. An SGE is
// one piece, or one for each range of a physical region that it touches.
//
// LocalPiecesOf has the room for them: a few lie on the stack of the thread that posts, which may
// be of 16 KiB.
#pragma once

#include "hca/layout/layout.h"
#include "verbs/limits.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

struct LocalPieces {
  // One for each SGE and one in front, for the header of a datagram.
  static constexpr std::uint32_t kFew = kMaxSge + 1;
  static constexpr std::uint32_t kMost = kFew + verbs::limits::kMaxRanges;
  struct Piece {
    std::byte* pointer;
    std::uint32_t length;
    bool doubtful;  // LocalKey::is_doubtful()
  };
  LocalPieces(Piece* first, std::uint32_t most) : piece(first), room(most) {}
  LocalPieces(const LocalPieces&) = delete;
  LocalPieces& operator=(const LocalPieces&) = delete;

  Piece* const piece;
  const std::uint32_t room;
  std::uint32_t count = 0;
  std::uint64_t total = 0;
  bool is_full() const { return count == room; }
  void add(std::byte* pointer, std::uint32_t length, bool doubtful = false) {
    piece[count++] = {pointer, length, doubtful};
    total += length;
  }
};

template <std::uint32_t kRoom>
struct LocalPiecesOf : LocalPieces {
  LocalPiecesOf() : LocalPieces(places, kRoom) {}
  Piece places[kRoom];
};

}  // namespace ib::hca
