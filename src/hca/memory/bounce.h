// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Path 3 of docs/design/0001: the owner's service thread moves the bytes, through buffers in device
// memory. Works under any seccomp profile; needs the owner to be running. BounceClient is the end
// of the process that wants the bytes, BounceServer that of their owner.
//
// An entry belongs to: nobody (Free), its requester (Claimed, Done), both (Submitted: whoever
// changes it first), its owner (Running). The requester withdraws a Submitted entry after a while,
// so a stopped owner does not block it.
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/local_keys.h"
#include "hca/memory/poster_host.h"
#include "hca/memory/stretch.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

class BounceClient {
 public:
  // `slot`: of this process.
  BounceClient(const Arena& arena, PosterHost& host, std::uint32_t slot)
      : arena_(arena), host_(host), slot_(slot) {}

  // As FarMemory::copy().
  Access copy(const Stretch& at, std::uint64_t offset, std::byte* local, std::uint64_t n,
              BounceOp op);

 private:
  Access request(const Stretch& at, BounceEntry*& entry, BounceOp op, std::uint64_t address,
                 std::uint32_t length, const std::byte* data);

  Arena arena_;
  PosterHost& host_;
  std::uint32_t slot_;
};

class BounceServer {
 public:
  BounceServer(const Arena& arena, PosterHost& host, std::uint32_t slot, const LocalKeys& keys)
      : arena_(arena), host_(host), slot_(slot), keys_(keys) {}

  // All that peers want now.
  void serve_all();
  // A peer's request against this process's memory; key and range are checked.
  void serve(BounceEntry& entry);

 private:
  Arena arena_;
  PosterHost& host_;
  std::uint32_t slot_;
  const LocalKeys& keys_;
};

}  // namespace ib::hca
