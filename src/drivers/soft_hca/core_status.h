// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CoreStatus: HCAs and ports as they are, with their counters.
#pragma once

#include "drivers/soft_hca/core.h"
#include "drivers/sysfs/sysfs.h"

namespace ib::drivers {

// For the files in /sys.
class CoreStatus final : public DeviceStatus {
 public:
  explicit CoreStatus(Core& core) : core_(core) {}
  control::CaAttr ca(const fabric::Hca& hca) const override;
  control::PortAttr port(const fabric::Hca& hca, const fabric::Port& port) const override;
  DeviceCounters counters(const fabric::Hca& hca, const fabric::Port& port) const override;

 private:
  Core& core_;
};

}  // namespace ib::drivers
