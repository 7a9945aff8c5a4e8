// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LocalManager: a subnet manager of softibd's own, to which SMPs go before those of programs.
#pragma once

#include "fabric/management/walk.h"
#include "mad/header.h"

#include <cstdint>

namespace ib::services {

class LocalManager {
 public:
  virtual ~LocalManager() = default;
  // An SMP has come to a port (its index in the graph). Returns whether it is for this manager.
  virtual bool on_smp(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) = 0;
};

}  // namespace ib::services
