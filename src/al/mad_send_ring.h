// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MadSendRing: the buffers of MADs that are sent, used in turn; they complete in order. Of several
// in a row only the last may be reported.
#pragma once

#include <cstdint>
#include <vector>

namespace ib::al {

class MadSendRing {
 public:
  // Empty, of `depth` buffers; one in `report_every` is reported.
  void reset(std::uint32_t depth, std::uint32_t report_every) {
    contexts_.assign(depth, 0);
    next_ = under_way_ = unreported_ = 0;
    report_every_ = report_every;
  }

  bool is_full() const { return under_way_ == contexts_.size(); }
  bool is_empty() const { return under_way_ == 0; }
  // Of the next MAD: its buffer, and whether it has a completion of its own.
  std::uint32_t next() const { return next_; }
  bool is_next_reported() const { return unreported_ + 1 >= report_every_; }
  // It is on its way.
  void push(std::uint64_t context) {
    unreported_ = is_next_reported() ? 0 : unreported_ + 1;
    contexts_[next_] = context;
    next_ = (next_ + 1) % depth();
    ++under_way_;
  }

  // The oldest has been sent. Returns its buffer.
  std::uint32_t pop() {
    const std::uint32_t oldest = (next_ + depth() - under_way_) % depth();
    --under_way_;
    return oldest;
  }
  std::uint64_t context_of(std::uint32_t buffer) const { return contexts_[buffer]; }

 private:
  std::uint32_t depth() const { return static_cast<std::uint32_t>(contexts_.size()); }

  std::vector<std::uint64_t> contexts_;  // by buffer
  std::uint32_t next_ = 0;
  std::uint32_t under_way_ = 0;
  std::uint32_t unreported_ = 0;  // since the last one with a completion of its own
  std::uint32_t report_every_ = 1;
};

}  // namespace ib::al
