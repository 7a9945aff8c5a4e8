// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Internet checksum [RFC 1071], of headers, and of UDP, TCP and ICMPv6 with their pseudo
// header.
#pragma once

#include "base/result.h"
#include "ulp/ipoib/packets/headers.h"
#include "ulp/ipoib/packets/virtio_header.h"

#include <cstdint>

namespace ib::ipoib {

// A sum that is not yet folded. Each piece but the last has an even length.
class ChecksumSum {
 public:
  ChecksumSum& add(ConstBytes bytes);
  ChecksumSum& add(std::uint16_t word);  // in the byte order of the machine
  // The bytes of the pseudo header, from the header of the packet.
  ChecksumSum& add_pseudo(const Ipv4Header& header, std::uint8_t protocol, std::size_t length);
  ChecksumSum& add_pseudo(const Ipv6Header& header, std::uint8_t protocol, std::size_t length);
  // The value for the checksum field; 0 if the field was in the sum and was right.
  std::uint16_t complement() const;

 private:
  std::uint64_t sum_ = 0;  // of words as they lie in memory
};

std::uint16_t checksum(ConstBytes bytes);
// With its checksum field.
Ipv4Header with_checksum(Ipv4Header header, ConstBytes options = {});

// Sum of the transport part of a packet, its checksum field included: 0 if that is right.
std::uint16_t transport_checksum(ConstBytes packet, const IpPacket& ip);

// Completes a checksum that covers the pseudo header only. `packet` begins at the IP header and
// ends with the packet; check(offload, size) has passed.
void complete_checksum(Bytes packet, const Offload& offload);

}  // namespace ib::ipoib
