// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// platform::Barriers with membarrier(2), "expedited": an interrupt to the cores that run threads
// concerned, some microseconds.
#pragma once

#include "platform/barriers.h"

#include <atomic>

namespace ib::os {

class LinuxBarriers final : public platform::Barriers {
 public:
  bool join() override;
  bool joined() const override { return joined_.load(std::memory_order_acquire); }
  void threads() override;
  void processes() override;

 private:
  std::atomic<bool> joined_{false};
};

// The one of this process, never destroyed.
LinuxBarriers& barriers();

}  // namespace ib::os
