// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RmppSegments: the segments of one message that have come, in whatever order, and where it ends as
// its first and last packet say [IBA1 13.6.2.1, 13.6.6.2].
#pragma once

#include "mad/rmpp_header.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ib::mad {

class RmppSegments {
 public:
  // The size of the headers of its class.
  explicit RmppSegments(std::size_t header_size)
      : header_size_(header_size), data_size_(kMadSize - header_size) {}

  std::size_t header_size() const { return header_size_; }
  std::size_t bytes() const { return data_.size(); }  // that the data occupies
  std::uint32_t in_order() const { return in_order_; }
  bool has(std::uint32_t segment) const { return segment <= in_order_ || ahead_.contains(segment); }
  bool is_complete() const { return last_ && in_order_ == last_->segment; }

  // Returns false if what the packet says about the end contradicts what has come.
  bool take_end(const RmppHeader& header);
  // A segment that it does not have. Returns false if there is no room: the message would grow by
  // more than `room`, or beyond `max_bytes`.
  bool store(const Mad& mad, std::uint32_t segment, std::size_t room, std::size_t max_bytes);
  // Complete: the data; once.
  std::vector<std::byte> take_data();
  void clear();

 private:
  // The last segment of a message, and its payload length.
  struct End {
    std::uint32_t segment = 0;
    std::uint32_t length = 0;
    bool operator==(const End&) const = default;
  };

  bool take_last(std::uint32_t segment, std::uint32_t length);
  bool take_total(std::uint32_t length);
  // Of a packet without data: the header of the class.
  std::uint32_t least_length() const {
    return static_cast<std::uint32_t>(header_size_ - kRmppDataOffset);
  }
  std::uint32_t highest() const { return ahead_.empty() ? in_order_ : *ahead_.rbegin(); }

  std::size_t header_size_;
  std::size_t data_size_;
  std::vector<std::byte> data_;
  std::uint32_t in_order_ = 0;     // the last segment of those without a gap
  std::set<std::uint32_t> ahead_;  // segments behind a gap; within the window
  std::optional<End> total_;       // as the first packet says
  std::optional<End> last_;        // as the last one says
};

}  // namespace ib::mad
