// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FarMemory: copies between this process and memory of a peer that is not mapped here, by paths 2
// and 3 of docs/design/0001 (process_vm, bounce).
#pragma once

#include "hca/memory/bounce.h"
#include "hca/memory/cached_key.h"
#include "hca/memory/stretch.h"
#include "hca/memory/vm_pids.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

class FarMemory {
 public:
  // `slot`: of this process.
  FarMemory(const Arena& arena, PosterHost& host, std::uint32_t slot, bool may_use_vm)
      : arena_(arena), host_(host), pids_(arena, host, may_use_vm), bounces_(arena, host, slot) {}

  // Whether process_vm reaches the process of that slot.
  bool is_in_reach(std::uint32_t slot) const { return pids_.of(slot) != kNone; }
  // Copies `n` bytes between `local` and a Remote stretch, from its byte `offset` on.
  Access copy(const Stretch& at, std::uint64_t offset, std::byte* local, std::uint64_t n,
              BounceOp op);
  // The same for bytes at `address` that `known` grants. Returns false if it fails; resolving the
  // key again and copying then give the cause.
  bool copy(const CachedFar& known, std::uint64_t address, std::byte* local, std::uint64_t n,
            BounceOp op);

 private:
  Arena arena_;
  PosterHost& host_;
  VmPids pids_;
  BounceClient bounces_;
};

}  // namespace ib::hca
