// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MemoryMover: moves the bytes of messages between pieces of this process's memory and a stretch of
// registered memory, whichever way leads to that; atomics too.
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/far_memory.h"
#include "hca/memory/local_pieces.h"
#include "hca/memory/stretch.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

class MemoryMover {
 public:
  // `slot`: of this process.
  MemoryMover(const Arena& arena, PosterHost& host, std::uint32_t slot, FarMemory& far)
      : arena_(arena), host_(host), slot_(slot), far_(far) {}

  // Copies between local pieces (skipping `skip` bytes) and a stretch of `n` bytes. The last
  // bytes of a write become visible last: programs poll them.
  Access write(const LocalPieces& from, std::uint64_t skip, const Stretch& to, std::uint64_t offset,
               std::uint64_t n);
  Access read(const LocalPieces& to, std::uint64_t skip, const Stretch& from, std::uint64_t offset,
              std::uint64_t n);
  // One 8-byte atomic; the old value goes to `old`. compare: nullptr for fetch-and-add.
  Access atomic(const Stretch& at, const std::uint64_t* compare, std::uint64_t operand,
                std::uint64_t& old);

 private:
  Access write_one(const LocalPieces& from, std::uint64_t skip, const Stretch& to,
                   std::uint64_t offset, std::uint64_t n);
  Access read_one(const LocalPieces& to, std::uint64_t skip, const Stretch& from,
                  std::uint64_t offset, std::uint64_t n);
  // Of memory that may not be there: pieces of this process's own at one end or both.
  Access write_doubtful(std::byte* from, const Stretch& to, std::uint64_t offset, std::uint64_t n);
  Access read_doubtful(std::byte* to, const Stretch& from, std::uint64_t offset, std::uint64_t n);
  Access locked_atomic(const Stretch& at, const std::uint64_t* compare, std::uint64_t operand,
                       std::uint64_t& old);

  Arena arena_;
  PosterHost& host_;
  std::uint32_t slot_;
  FarMemory& far_;
};

}  // namespace ib::hca
