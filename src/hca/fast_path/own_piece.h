// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OwnPiece: where the piece of a request of the fast path lies in this process: inline data, or
// memory of the key that the last request named.
//
// Thread rule: that of Requester.
#pragma once

#include "base/address.h"
#include "hca/fast_path/fast_requests.h"
#include "hca/memory/local_memory.h"
#include "hca/requester/send_wqe.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

class OwnPiece {
 public:
  OwnPiece(const LocalMemory& memory, const RequesterConfig& config)
      : memory_(memory), pd_(config.pd), max_inline_(config.max_inline) {}

  // Returns nullptr if the slow path has to find it.
  template <class Send>
  [[gnu::always_inline]] std::byte* find(Send send, std::uint32_t access) {
    const Sge& sge = send.sge();
    if (is_inline(send)) {
      return sge.length <= max_inline_ ? pointer_to(sge.address) : nullptr;
    }
    std::byte* known = memory_.map(key_, sge, access);
    return known != nullptr ? known : refresh(sge, access);
  }

 private:
  std::byte* refresh(const Sge& sge, std::uint32_t access);

  const LocalMemory& memory_;
  std::uint32_t pd_;
  std::uint32_t max_inline_;
  CachedLocal key_;
};

}  // namespace ib::hca
