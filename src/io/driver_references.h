// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The references to a driver, counted by reason. The code of a driver may be unmapped only when all
// counts are zero: each stands for a caller that will enter it, or is inside it.
//
// Thread rule: any thread, any level. It lives as long as anything that uses drivers (the registry
// keeps a DriverObject after its module has gone), so the last release() may still read it.
#pragma once

#include "base/assert.h"
#include "base/export.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace ib::io {

enum class DriverUse : std::uint8_t {
  Device,     // a device object of the driver exists
  Call,       // a dispatch routine of it is running
  Callback,   // a completion routine of it is to run, or running
  Client,     // it has the access layer open
  Dependent,  // another driver that needs it is loaded
};
inline constexpr std::size_t kDriverUses = 5;

class IB_DRIVER_API DriverReferences {
 public:
  DriverReferences() = default;
  DriverReferences(const DriverReferences&) = delete;
  DriverReferences& operator=(const DriverReferences&) = delete;
  ~DriverReferences() { IB_ASSERT(total() == 0); }

  void take(DriverUse use) {
    IB_ASSERT(!ended_.load());  // a caller kept a pointer without a reference
    total_.fetch_add(1);
    count(use).fetch_add(1, std::memory_order_relaxed);
  }
  void release(DriverUse use) {
    count(use).fetch_sub(1, std::memory_order_relaxed);
    const std::uint32_t before = total_.fetch_sub(1);
    IB_ASSERT(before > 0);
    // Pairs with end_when_unused(), which sets the flag first and looks at the total second.
    if (before == 1 && waiting_.load()) when_unused_();
  }
  std::uint32_t total() const { return total_.load(); }
  std::uint32_t of(DriverUse use) const {
    return counts_[static_cast<std::size_t>(use)].load(std::memory_order_relaxed);
  }

  // Calls `when_unused` once the total is zero: at once, or from whichever thread releases the last
  // reference; perhaps twice, perhaps with a new reference already taken (an enumeration that was
  // under way). The callee checks again, on a thread of its own choice. To be called once.
  void end_when_unused(std::function<void()> when_unused);
  // No reference may be taken from now on. To be called when the total is zero.
  void end() { ended_.store(true); }

  // "2 devices, 1 callback"; "nothing".
  std::string text() const;

 private:
  std::atomic<std::uint32_t>& count(DriverUse use) {
    return counts_[static_cast<std::size_t>(use)];
  }

  std::array<std::atomic<std::uint32_t>, kDriverUses> counts_{};
  std::atomic<std::uint32_t> total_{0};
  std::atomic<bool> waiting_{false};
  std::atomic<bool> ended_{false};
  std::function<void()> when_unused_;
};

}  // namespace ib::io
