// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Physical regions: the ranges of memory that one is made of [IBA1 10.6.2.2].
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/stretch.h"

#include <algorithm>
#include <cstdint>

namespace ib::hca {

// Sets `part` to the piece of a stretch of ranges that lies in the range of its byte `offset`.
// `self`: the slot of this process.
Access part_of(const Arena& arena, std::uint32_t self, const Stretch& all, std::uint64_t offset,
               Stretch& part);

// move(part, done, bytes) for each part of `n` bytes from `offset` on, until it is not ok.
template <class Move>
Access in_parts(const Arena& arena, std::uint32_t self, const Stretch& all, std::uint64_t offset,
                std::uint64_t n, Move&& move) {
  for (std::uint64_t done = 0; done < n;) {
    Stretch part;
    const Access found = part_of(arena, self, all, offset + done, part);
    if (!found.ok()) return found;
    const std::uint64_t bytes = std::min(n - done, part.length);
    const Access moved = move(part, done, bytes);
    if (!moved.ok()) return moved;
    done += bytes;
  }
  return {};
}

}  // namespace ib::hca
