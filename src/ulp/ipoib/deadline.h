// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NextDeadline: a lower bound of the deadlines in a table, so that asking for the next one costs
// nothing per packet. It may be early, never late.
#pragma once

#include "base/time.h"

#include <optional>

namespace ib::ipoib {

class NextDeadline {
 public:
  void at(Instant when) {
    if (!when_ || when < *when_) when_ = when;
  }
  void at(const std::optional<Instant>& when) {
    if (when) at(*when);
  }
  // Before a walk over the table, which calls at() for what is still to come.
  void clear() { when_.reset(); }
  bool has_passed(Instant now) const { return when_ && *when_ <= now; }
  const std::optional<Instant>& get() const { return when_; }

 private:
  std::optional<Instant> when_;
};

}  // namespace ib::ipoib
