// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The LID that a MAD leaves from.
#pragma once

#include "fabric/port.h"

#include <cstdint>

namespace ib::fabric {

// Path bits beyond the LMC of the port do not count [IBA1 4.1.3].
inline std::uint16_t source_lid(const Port& port, std::uint8_t path_bits) {
  const auto wanted = static_cast<std::uint16_t>(port.lid + path_bits);
  return port.has_lid(wanted) ? wanted : port.lid;
}

}  // namespace ib::fabric
