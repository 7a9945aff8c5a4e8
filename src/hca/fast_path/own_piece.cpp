// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/fast_path/own_piece.h"

namespace ib::hca {

std::byte* OwnPiece::refresh(const Sge& sge, std::uint32_t access) {
  key_ = memory_.cache(sge.lkey, pd_);
  return memory_.map(key_, sge, access);
}

}  // namespace ib::hca
