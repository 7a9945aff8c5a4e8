// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RmppPackets: one message as the packets that it is sent in; each has the headers of the message.
#pragma once

#include "mad/rmpp_header.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ib::mad {

class RmppPackets {
 public:
  // Headers (header_size() bytes of the class) and data. At least the headers.
  explicit RmppPackets(std::vector<std::byte> message);

  std::uint32_t segments() const { return segments_; }
  Mad data(std::uint32_t segment) const;
  // ACK, STOP or ABORT of the sender.
  Mad control(RmppType type, RmppStatus status) const;

 private:
  std::vector<std::byte> message_;
  std::size_t header_size_;
  std::uint32_t segments_ = 1;
  std::uint32_t last_length_ = 0;  // payload of the last one
};

}  // namespace ib::mad
