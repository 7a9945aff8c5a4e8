// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Responder: on whose behalf remote memory is looked up: the queue pair that answers, or, with XRC,
// the shared receive queue that the request names [IBA1 annex A14].
#pragma once

#include "hca/layout/layout.h"

#include <cstdint>

namespace ib::hca {

struct Responder {
  static constexpr std::uint32_t kAnyPd = kNone;
  std::uint32_t owner_slot = 0;
  std::uint32_t pd = kAnyPd;
  std::uint32_t qpn = 0;
};

}  // namespace ib::hca
