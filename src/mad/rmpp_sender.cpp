// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp_sender.h"

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
    : packets_(std::move(message)),
      window_(options.window),
      options_(options),
      timeout_(options.timeout),
      retries_left_(options.retries),
      deadline_(now + options.timeout) {}

std::optional<Mad> RmppSender::poll(Instant now) {
  if (std::exchange(abort_due_, false)) return packets_.control(RmppType::Abort, status_);
  if (state_ != State::Sending) return std::nullopt;
  if (now >= deadline_) time_out(now);
  if (std::exchange(abort_due_, false)) return packets_.control(RmppType::Abort, status_);
  if (const auto probe = window_.take_probe()) return packets_.data(*probe);
  const auto next = window_.take_next(packets_.segments());
  if (!next) return std::nullopt;
  deadline_ = now + timeout_;
  return packets_.data(*next);
}

std::optional<Instant> RmppSender::next_deadline() const {
  if (state_ != State::Sending) return std::nullopt;
  return deadline_;
}

void RmppSender::time_out(Instant now) {
  if (retries_left_ == 0) return fail(RmppStatus::TooManyRetries, true);
  --retries_left_;
  deadline_ = now + timeout_;
  window_.go_back();
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
  if (segment > window_.sent()) return fail(RmppStatus::SegmentTooBig, true);
  if (segment < window_.acked()) return;  // an older one came later
  if (header.response_time() != kNoResponseTime) {
    timeout_ = std::max(options_.timeout,
                        std::min(response_time(header.response_time()), kLongestResponse));
  }
  const bool is_news = window_.acknowledge(segment, window_last);
  if (segment == packets_.segments()) {
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

Mad RmppSender::reply_permission(std::uint32_t window) const {
  Mad mad = packets_.control(RmppType::Ack, status_);
  RmppHeader header = rmpp_header_of(mad);
  header.length_window = window;
  set_rmpp_header(mad, header);
  return mad;
}

}  // namespace ib::mad
