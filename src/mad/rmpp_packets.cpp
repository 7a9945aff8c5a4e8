// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp_packets.h"

#include "base/assert.h"

#include <algorithm>
#include <utility>

namespace ib::mad {
namespace {

std::uint8_t class_of(const std::vector<std::byte>& message) {
  return std::to_integer<std::uint8_t>(message[offsetof(MadHeader, mgmt_class)]);
}

}  // namespace

RmppPackets::RmppPackets(std::vector<std::byte> message)
    : message_(std::move(message)), header_size_(header_size(class_of(message_))) {
  IB_ASSERT(message_.size() >= header_size_);
  const std::size_t data_size = kMadSize - header_size_;
  const std::size_t bytes = message_.size() - header_size_;
  segments_ =
      static_cast<std::uint32_t>(std::max<std::size_t>(1, (bytes + data_size - 1) / data_size));
  const std::size_t in_last = bytes - (segments_ - 1) * data_size;
  last_length_ = static_cast<std::uint32_t>(header_size_ - kRmppDataOffset + in_last);
}

// Each packet has the headers of the message.
Mad RmppPackets::data(std::uint32_t segment) const {
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

Mad RmppPackets::control(RmppType type, RmppStatus status) const {
  Mad mad{};
  std::copy_n(message_.begin(), header_size_, mad.begin());
  RmppHeader header;
  header.version = kRmppVersion;
  header.type = static_cast<std::uint8_t>(type);
  header.time_flags = kNoResponseTime << 3 | rmpp_flag::kActive;
  header.status = static_cast<std::uint8_t>(status);
  set_rmpp_header(mad, header);
  return mad;
}

}  // namespace ib::mad
