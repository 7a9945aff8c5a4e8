// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp_sender.h"

#include "base/assert.h"

#include <algorithm>
#include <utility>

namespace ib::mad {
namespace {

// The longest time that a receiver can make a sender wait for an acknowledgement.
constexpr Duration kLongestResponse = std::chrono::seconds(8);

// [13.4.6.2]: 4.096 us * 2^n
Duration response_time(std::uint8_t exponent) {
  return std::chrono::nanoseconds(std::int64_t{4096} << exponent);
}

std::uint8_t class_of(const std::vector<std::byte>& message) {
  return std::to_integer<std::uint8_t>(message[offsetof(MadHeader, mgmt_class)]);
}

}  // namespace

const char* rmpp_status_text(RmppStatus status) {
  switch (status) {
    case RmppStatus::Normal: return "no error";
    case RmppStatus::Resources: return "the receiver has no room";
    case RmppStatus::TimeTooLong: return "the transfer took too long";
    case RmppStatus::InconsistentLast: return "inconsistent last segment or payload length";
    case RmppStatus::InconsistentFirst: return "inconsistent first segment or segment number";
    case RmppStatus::BadType: return "unknown type of packet";
    case RmppStatus::WindowTooSmall: return "a window that ends before its segment";
    case RmppStatus::SegmentTooBig: return "a segment number that was never sent";
    case RmppStatus::IllegalStatus: return "an illegal status";
    case RmppStatus::UnsupportedVersion: return "an unsupported version";
    case RmppStatus::TooManyRetries: return "no acknowledgement after all retries";
    case RmppStatus::Unspecified: return "an unspecified error";
  }
  return "an error of the class or the vendor";
}

RmppSender::RmppSender(std::vector<std::byte> message, const Options& options, Instant now)
    : message_(std::move(message)),
      header_size_(header_size(class_of(message_))),
      options_(options),
      timeout_(options.timeout),
      window_last_(std::max(options.window, 1u)),
      retries_left_(options.retries),
      deadline_(now + options.timeout) {
  IB_ASSERT(message_.size() >= header_size_);
  const std::size_t data_size = kMadSize - header_size_;
  const std::size_t bytes = message_.size() - header_size_;
  segments_ =
      static_cast<std::uint32_t>(std::max<std::size_t>(1, (bytes + data_size - 1) / data_size));
  const std::size_t in_last = bytes - (segments_ - 1) * data_size;
  last_length_ = static_cast<std::uint32_t>(header_size_ - kRmppDataOffset + in_last);
}

std::optional<Mad> RmppSender::poll(Instant now) {
  if (std::exchange(abort_due_, false)) return control(RmppType::Abort);
  if (state_ != State::Sending) return std::nullopt;
  if (now >= deadline_) time_out(now);
  if (std::exchange(abort_due_, false)) return control(RmppType::Abort);
  if (std::exchange(probe_due_, false)) return data(acked_);
  if (next_ > std::min(window_last_, segments_)) return std::nullopt;
  sent_ = std::max(sent_, next_);
  deadline_ = now + timeout_;
  return data(next_++);
}

std::optional<Instant> RmppSender::next_deadline() const {
  if (state_ != State::Sending) return std::nullopt;
  return deadline_;
}

void RmppSender::time_out(Instant now) {
  if (retries_left_ == 0) return fail(RmppStatus::TooManyRetries, true);
  --retries_left_;
  deadline_ = now + timeout_;
  next_ = acked_ + 1;
  // The window is closed: a segment that the receiver has makes it say what its window is now.
  probe_due_ = next_ > window_last_;
}

void RmppSender::on_control(const Mad& mad, Instant now) {
  if (state_ != State::Sending) return;
  const RmppHeader header = rmpp_header_of(mad);
  switch (static_cast<RmppType>(header.type)) {
    case RmppType::Ack: return on_ack(header, now);
    case RmppType::Stop:
    case RmppType::Abort: {
      const bool is_stop = static_cast<RmppType>(header.type) == RmppType::Stop;
      const bool is_legal = is_stop
                                ? header.status == static_cast<std::uint8_t>(RmppStatus::Resources)
                                : header.status >= kFirstAbortStatus;
      if (!is_legal) return fail(RmppStatus::IllegalStatus, true);
      by_peer_ = true;
      return fail(static_cast<RmppStatus>(header.status), false);
    }
    case RmppType::None:
    case RmppType::Data: break;
  }
}

void RmppSender::on_ack(const RmppHeader& header, Instant now) {
  const std::uint32_t segment = header.segment;
  const std::uint32_t window_last = header.length_window;
  if (header.status != 0) return fail(RmppStatus::IllegalStatus, true);
  if (window_last < segment) return fail(RmppStatus::WindowTooSmall, true);
  if (segment > sent_) return fail(RmppStatus::SegmentTooBig, true);
  if (segment < acked_) return;  // an older one came later
  if (header.response_time() != kNoResponseTime) {
    timeout_ = std::max(options_.timeout,
                        std::min(response_time(header.response_time()), kLongestResponse));
  }
  const bool is_news = segment > acked_ || window_last > window_last_;
  acked_ = segment;
  window_last_ = std::max(window_last_, window_last);
  next_ = std::max(next_, acked_ + 1);
  if (acked_ == segments_) {
    state_ = State::Done;
    return;
  }
  if (!is_news) return;
  retries_left_ = options_.retries;
  deadline_ = now + timeout_;
}

void RmppSender::abort(RmppStatus status) {
  if (state_ == State::Sending) fail(status, true);
}

void RmppSender::fail(RmppStatus status, bool tell_peer) {
  state_ = State::Failed;
  status_ = status;
  abort_due_ = tell_peer;
}

// Each packet has the headers of the message.
Mad RmppSender::data(std::uint32_t segment) const {
  const std::size_t data_size = kMadSize - header_size_;
  const bool is_first = segment == 1;
  const bool is_last = segment == segments_;
  Mad mad{};
  std::copy_n(message_.begin(), header_size_, mad.begin());
  const std::size_t from = header_size_ + (segment - 1) * data_size;
  const std::size_t bytes = std::min(data_size, message_.size() - from);
  std::copy_n(message_.begin() + static_cast<std::ptrdiff_t>(from), bytes,
              mad.begin() + static_cast<std::ptrdiff_t>(header_size_));
  RmppHeader header;
  header.version = kRmppVersion;
  header.type = static_cast<std::uint8_t>(RmppType::Data);
  header.time_flags = static_cast<std::uint8_t>(kNoResponseTime << 3 | rmpp_flag::kActive |
                                                (is_first ? rmpp_flag::kFirst : 0) |
                                                (is_last ? rmpp_flag::kLast : 0));
  header.segment = segment;
  if (is_last) {
    header.length_window = last_length_;
  } else if (is_first) {  // all of it
    header.length_window =
        static_cast<std::uint32_t>((segments_ - 1) * kRmppPayload + last_length_);
  }
  set_rmpp_header(mad, header);
  return mad;
}

Mad RmppSender::reply_permission(std::uint32_t window) const {
  Mad mad = control(RmppType::Ack);
  RmppHeader header = rmpp_header_of(mad);
  header.length_window = window;
  set_rmpp_header(mad, header);
  return mad;
}

Mad RmppSender::control(RmppType type) const {
  Mad mad{};
  std::copy_n(message_.begin(), header_size_, mad.begin());
  RmppHeader header;
  header.version = kRmppVersion;
  header.type = static_cast<std::uint8_t>(type);
  header.time_flags = kNoResponseTime << 3 | rmpp_flag::kActive;
  header.status = static_cast<std::uint8_t>(status_);
  set_rmpp_header(mad, header);
  return mad;
}

}  // namespace ib::mad
