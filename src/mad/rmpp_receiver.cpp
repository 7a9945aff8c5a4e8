// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp_receiver.h"

#include <algorithm>
#include <utility>

namespace ib::mad {

RmppReceiver::RmppReceiver(const Mad& first, const Options& options, Instant now)
    : header_size_(
          header_size(std::to_integer<std::uint8_t>(first[offsetof(MadHeader, mgmt_class)]))),
      data_size_(kMadSize - header_size_),
      options_(options),
      headers_(first),
      window_last_(options.window),
      started_(now),
      heard_(now) {}

// [13.6.2.1, 13.6.6.2]
RmppStatus RmppReceiver::check(const RmppHeader& header) const {
  if (header.version != kRmppVersion) return RmppStatus::UnsupportedVersion;
  if (header.status != 0) return RmppStatus::IllegalStatus;
  const std::uint32_t segment = header.segment;
  if (segment == 0 || (segment == 1) != header.has(rmpp_flag::kFirst)) {
    return RmppStatus::InconsistentFirst;
  }
  return RmppStatus::Normal;
}

// The last packet says where the message ends: the same each time, behind no packet that came, and
// as the first packet has told.
bool RmppReceiver::take_last(std::uint32_t segment, std::uint32_t length) {
  if (length < least_length() || length > kRmppPayload) return false;
  const End end{segment, length};
  if (last_) return *last_ == end;
  if (segment < highest() || (total_ && *total_ != end)) return false;
  last_ = end;
  return true;
}

// The first packet may say how long all of them are together; 0: it does not.
bool RmppReceiver::take_total(std::uint32_t length) {
  if (length == 0) return true;
  const std::uint32_t segments = (length - 1) / std::uint32_t{kRmppPayload} + 1;
  const End end{segments, length - (segments - 1) * std::uint32_t{kRmppPayload}};
  if (total_) return *total_ == end;
  if (segments < 2 || end.length < least_length() || segments < highest()) return false;
  if (last_ && *last_ != end) return false;
  total_ = end;
  return true;
}

bool RmppReceiver::take_end(const RmppHeader& header) {
  const std::uint32_t segment = header.segment;
  if (header.has(rmpp_flag::kLast)) return take_last(segment, header.length_window);
  if (last_ && segment >= last_->segment) return false;
  if (segment == 1 && !take_total(header.length_window)) return false;
  return !total_ || segment < total_->segment;
}

void RmppReceiver::on_data(const Mad& mad, std::size_t room, Instant now) {
  if (state_ == State::Failed) return;
  const RmppHeader header = rmpp_header_of(mad);
  const std::uint32_t segment = header.segment;
  if (state_ == State::Complete) {  // its acknowledgement was lost
    due_ = RmppType::Ack;
    return;
  }
  const RmppStatus verdict = check(header);
  if (verdict != RmppStatus::Normal) return end(RmppType::Abort, verdict);
  if (segment > window_last_) return;  // it will come again
  if (!take_end(header)) return end(RmppType::Abort, RmppStatus::InconsistentLast);
  if (segment <= in_order_ || ahead_.contains(segment)) {
    due_ = RmppType::Ack;
    return;
  }
  const bool fits = !total_ || (total_->segment - 1) * data_size_ <= options_.max_bytes;
  if (!fits || !store(mad, segment, room)) return end(RmppType::Stop, RmppStatus::Resources);
  heard_ = now;
  ahead_.insert(segment);
  advance(now);
}

// Returns false if there is no room.
bool RmppReceiver::store(const Mad& mad, std::uint32_t segment, std::size_t room) {
  const std::size_t from = std::size_t{segment - 1} * data_size_;
  const std::size_t end = from + data_size_;
  const std::size_t growth = end > data_.size() ? end - data_.size() : 0;
  if (growth > room || end > options_.max_bytes + data_size_) return false;
  if (growth > 0) data_.resize(end);
  std::copy(mad.begin() + static_cast<std::ptrdiff_t>(header_size_), mad.end(),
            data_.begin() + static_cast<std::ptrdiff_t>(from));
  return true;
}

void RmppReceiver::advance(Instant now) {
  const std::uint32_t before = in_order_;
  while (!ahead_.empty() && *ahead_.begin() == in_order_ + 1) {
    ahead_.erase(ahead_.begin());
    ++in_order_;
  }
  const bool is_complete = last_ && in_order_ == last_->segment;
  // The first one alone, as the sender's first window ends with it [13.6.6.1].
  const bool ends_window = in_order_ > before && (in_order_ >= window_last_ || before == 0);
  if (is_complete || ends_window) {
    due_ = RmppType::Ack;
    window_last_ = in_order_ + options_.window;
  }
  if (!is_complete) return;
  data_.resize((last_->segment - 1) * data_size_ + (last_->length - least_length()));
  state_ = State::Complete;
  heard_ = now;
}

void RmppReceiver::on_abort(const Mad& mad) {
  if (state_ != State::Receiving) return;
  by_peer_ = true;
  end(RmppType::None, static_cast<RmppStatus>(rmpp_header_of(mad).status));
}

void RmppReceiver::abort(RmppStatus status) {
  if (state_ == State::Receiving) end(RmppType::Abort, status);
}

void RmppReceiver::end(RmppType type, RmppStatus status) {
  state_ = State::Failed;
  status_ = status;
  due_ = type;
  data_ = {};
  ahead_.clear();
}

std::optional<Mad> RmppReceiver::poll(Instant now) {
  if (state_ == State::Receiving && now >= next_deadline()) {
    end(RmppType::Abort, RmppStatus::TimeTooLong);
  }
  const RmppType type = std::exchange(due_, RmppType::None);
  if (type == RmppType::None) return std::nullopt;
  return control(type);
}

Instant RmppReceiver::next_deadline() const {
  if (state_ == State::Complete) return heard_ + options_.linger;
  return std::min(heard_ + options_.gap, started_ + options_.total);
}

std::vector<std::byte> RmppReceiver::take_message() {
  std::vector<std::byte> message;
  message.reserve(header_size_ + data_.size());
  message.assign(headers_.begin(), headers_.begin() + static_cast<std::ptrdiff_t>(header_size_));
  message.insert(message.end(), data_.begin(), data_.end());
  data_ = {};
  return message;
}

// With the headers of what it answers, in the other direction.
Mad RmppReceiver::control(RmppType type) const {
  Mad mad{};
  std::copy_n(headers_.begin(), header_size_, mad.begin());
  constexpr std::size_t kMethod = offsetof(MadHeader, method);
  mad[kMethod] ^= std::byte{method::kResponseBit};
  RmppHeader header;
  header.version = kRmppVersion;
  header.type = static_cast<std::uint8_t>(type);
  header.time_flags = kNoResponseTime << 3 | rmpp_flag::kActive;
  if (type == RmppType::Ack) {
    header.segment = in_order_;
    header.length_window = window_last_;
  } else {
    header.status = static_cast<std::uint8_t>(status_);
  }
  set_rmpp_header(mad, header);
  return mad;
}

}  // namespace ib::mad
