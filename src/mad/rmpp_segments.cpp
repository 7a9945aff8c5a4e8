// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp_segments.h"

#include <algorithm>

namespace ib::mad {

// The last packet says where the message ends: the same each time, behind no packet that came, and
// as the first packet has told.
bool RmppSegments::take_last(std::uint32_t segment, std::uint32_t length) {
  if (length < least_length() || length > kRmppPayload) return false;
  const End end{segment, length};
  if (last_) return *last_ == end;
  if (segment < highest() || (total_ && *total_ != end)) return false;
  last_ = end;
  return true;
}

// The first packet may say how long all of them are together; 0: it does not.
bool RmppSegments::take_total(std::uint32_t length) {
  if (length == 0) return true;
  const std::uint32_t segments = (length - 1) / std::uint32_t{kRmppPayload} + 1;
  const End end{segments, length - (segments - 1) * std::uint32_t{kRmppPayload}};
  if (total_) return *total_ == end;
  if (segments < 2 || end.length < least_length() || segments < highest()) return false;
  if (last_ && *last_ != end) return false;
  total_ = end;
  return true;
}

bool RmppSegments::take_end(const RmppHeader& header) {
  const std::uint32_t segment = header.segment;
  if (header.has(rmpp_flag::kLast)) return take_last(segment, header.length_window);
  if (last_ && segment >= last_->segment) return false;
  if (segment == 1 && !take_total(header.length_window)) return false;
  return !total_ || segment < total_->segment;
}

bool RmppSegments::store(const Mad& mad, std::uint32_t segment, std::size_t room,
                         std::size_t max_bytes) {
  if (total_ && (total_->segment - 1) * data_size_ > max_bytes) return false;
  const std::size_t from = std::size_t{segment - 1} * data_size_;
  const std::size_t end = from + data_size_;
  const std::size_t growth = end > data_.size() ? end - data_.size() : 0;
  if (growth > room || end > max_bytes + data_size_) return false;
  if (growth > 0) data_.resize(end);
  std::copy(mad.begin() + static_cast<std::ptrdiff_t>(header_size_), mad.end(),
            data_.begin() + static_cast<std::ptrdiff_t>(from));
  ahead_.insert(segment);
  while (!ahead_.empty() && *ahead_.begin() == in_order_ + 1) {
    ahead_.erase(ahead_.begin());
    ++in_order_;
  }
  if (is_complete()) {
    data_.resize((last_->segment - 1) * data_size_ + (last_->length - least_length()));
  }
  return true;
}

std::vector<std::byte> RmppSegments::take_data() {
  return std::exchange(data_, {});
}

void RmppSegments::clear() {
  data_ = {};
  ahead_.clear();
}

}  // namespace ib::mad
