// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RmppWindow: which segments a sender has sent, has to send, and may send by the receiver's window.
//
// Invariant: acked < next; acked <= sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace ib::mad {

class RmppWindow {
 public:
  explicit RmppWindow(std::uint32_t last) : last_(std::max(last, 1u)) {}

  std::uint32_t sent() const { return sent_; }    // the highest one
  std::uint32_t acked() const { return acked_; }  // and all before it

  // A segment to be sent that the receiver has: it makes it say what its window is now.
  std::optional<std::uint32_t> take_probe() {
    if (!std::exchange(probe_due_, false)) return std::nullopt;
    return acked_;
  }
  // The next segment to be sent, of so many; nothing if the window is closed.
  std::optional<std::uint32_t> take_next(std::uint32_t segments) {
    if (next_ > std::min(last_, segments)) return std::nullopt;
    sent_ = std::max(sent_, next_);
    return next_++;
  }
  // Sends again from the first that was not acknowledged; a probe if the window is closed.
  void go_back() {
    next_ = acked_ + 1;
    probe_due_ = next_ > last_;
  }
  // `segment` is none before acked() or behind sent(). Returns whether it is news.
  bool acknowledge(std::uint32_t segment, std::uint32_t last) {
    const bool is_news = segment > acked_ || last > last_;
    acked_ = segment;
    last_ = std::max(last_, last);
    next_ = std::max(next_, acked_ + 1);
    return is_news;
  }

 private:
  std::uint32_t next_ = 1;
  std::uint32_t sent_ = 0;
  std::uint32_t acked_ = 0;
  std::uint32_t last_;
  bool probe_due_ = false;
};

}  // namespace ib::mad
