// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Identity: what an interface is called on both sides.
#pragma once

#include "ulp/ipoib/packets/addresses.h"

#include <cstdint>

namespace ib::ipoib {

struct Identity {
  MacAddress mac;           // on the kernel's side
  HardwareAddress address;  // on the fabric's
  GroupMapping groups{2, Pkey{0xffff}};
  std::uint64_t port_guid = 0;
  Pkey pkey{};
};

}  // namespace ib::ipoib
