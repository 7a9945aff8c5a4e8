// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp_receiver.h"

#include <algorithm>
#include <utility>

namespace ib::mad {

RmppReceiver::RmppReceiver(const Mad& first, const Options& options, Instant now)
    : segments_(header_size(std::to_integer<std::uint8_t>(first[offsetof(MadHeader, mgmt_class)]))),
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
  if (!segments_.take_end(header)) return end(RmppType::Abort, RmppStatus::InconsistentLast);
  if (segments_.has(segment)) {
    due_ = RmppType::Ack;
    return;
  }
  const std::uint32_t before = segments_.in_order();
  if (!segments_.store(mad, segment, room, options_.max_bytes)) {
    return end(RmppType::Stop, RmppStatus::Resources);
  }
  heard_ = now;
  advance(before);
}

void RmppReceiver::advance(std::uint32_t before) {
  const std::uint32_t in_order = segments_.in_order();
  // The first one alone, as the sender's first window ends with it [13.6.6.1].
  const bool ends_window = in_order > before && (in_order >= window_last_ || before == 0);
  if (segments_.is_complete() || ends_window) {
    due_ = RmppType::Ack;
    window_last_ = in_order + options_.window;
  }
  if (segments_.is_complete()) state_ = State::Complete;
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
  segments_.clear();
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
  const std::vector<std::byte> data = segments_.take_data();
  const std::size_t header_size = segments_.header_size();
  std::vector<std::byte> message;
  message.reserve(header_size + data.size());
  message.assign(headers_.begin(), headers_.begin() + static_cast<std::ptrdiff_t>(header_size));
  message.insert(message.end(), data.begin(), data.end());
  return message;
}

// With the headers of what it answers, in the other direction.
Mad RmppReceiver::control(RmppType type) const {
  Mad mad{};
  std::copy_n(headers_.begin(), segments_.header_size(), mad.begin());
  constexpr std::size_t kMethod = offsetof(MadHeader, method);
  mad[kMethod] ^= std::byte{method::kResponseBit};
  RmppHeader header;
  header.version = kRmppVersion;
  header.type = static_cast<std::uint8_t>(type);
  header.time_flags = kNoResponseTime << 3 | rmpp_flag::kActive;
  if (type == RmppType::Ack) {
    header.segment = segments_.in_order();
    header.length_window = window_last_;
  } else {
    header.status = static_cast<std::uint8_t>(status_);
  }
  set_rmpp_header(mad, header);
  return mad;
}

}  // namespace ib::mad
