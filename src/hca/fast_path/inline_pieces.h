// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// InlinePieces: the pieces of an inline request as one, for the fast path.
//
// UCX sends each short message as two: its header and the program's bytes.
#pragma once

#include "base/address.h"
#include "hca/memory/copy.h"
#include "hca/requester/send_wqe.h"
#include "verbs/limits.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ib::hca {

class InlinePieces {
 public:
  // Not initialized, since that would take longer than the rest.
  InlinePieces() {}  // NOLINT(modernize-use-equals-default)
  InlinePieces(const InlinePieces&) = delete;
  InlinePieces& operator=(const InlinePieces&) = delete;

  // Returns false if they are too many or too long for any queue pair.
  bool gather(std::span<const Sge> pieces) {
    if (pieces.size() > kMaxSge) return false;
    std::uint32_t bytes = 0;
    for (const Sge& piece : pieces) {
      if (piece.length > verbs::limits::kMaxInline - bytes) return false;
      copy_as_dma(bytes_ + bytes, pointer_to<const void>(piece.address), piece.length);
      bytes += piece.length;
    }
    whole_ = {address_of(bytes_), bytes, 0};
    return true;
  }
  // Of no region.
  const Sge& whole() const { return whole_; }

 private:
  Sge whole_;
  alignas(16) std::byte bytes_[verbs::limits::kMaxInline];
};

}  // namespace ib::hca
