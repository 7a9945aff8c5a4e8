// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sums words of four bytes as they lie in memory and swaps the result once [RFC 1071 2(B)].
#include "ulp/ipoib/packets/checksum.h"

#include <cstring>

namespace ib::ipoib {

ChecksumSum& ChecksumSum::add(ConstBytes bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t sum = 0;
  for (; left >= 4; left -= 4, at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    sum += word;
  }
  if (left != 0) {
    std::uint32_t word = 0;  // as if zeros followed
    std::memcpy(&word, at, left);
    sum += word;
  }
  // A packet has at most 2^16 bytes: neither sum overflows.
  sum_ += (sum & 0xffff'ffff) + (sum >> 32);
  return *this;
}

ChecksumSum& ChecksumSum::add(std::uint16_t word) {
  sum_ += to_big_endian(word);
  return *this;
}

ChecksumSum& ChecksumSum::add_pseudo(const Ipv4Header& header, std::uint8_t protocol,
                                     std::size_t length) {
  add(std::as_bytes(std::span(header.source)));
  add(std::as_bytes(std::span(header.destination)));
  return add(std::uint16_t{protocol}).add(static_cast<std::uint16_t>(length));
}

ChecksumSum& ChecksumSum::add_pseudo(const Ipv6Header& header, std::uint8_t protocol,
                                     std::size_t length) {
  add(std::as_bytes(std::span(header.source)));
  add(std::as_bytes(std::span(header.destination)));
  return add(std::uint16_t{protocol}).add(static_cast<std::uint16_t>(length));
}

std::uint16_t ChecksumSum::complement() const {
  std::uint64_t sum = sum_;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~to_big_endian(static_cast<std::uint16_t>(sum)));
}

std::uint16_t checksum(ConstBytes bytes) {
  return ChecksumSum().add(bytes).complement();
}

Ipv4Header with_checksum(Ipv4Header header, ConstBytes options) {
  header.checksum = 0;
  header.checksum =
      ChecksumSum().add(std::as_bytes(std::span(&header, 1))).add(options).complement();
  return header;
}

std::uint16_t transport_checksum(ConstBytes packet, const IpPacket& ip) {
  const ConstBytes transport = packet.subspan(ip.payload, ip.length - ip.payload);
  ChecksumSum sum;
  if (ip.is_v6) {
    sum.add_pseudo(get<Ipv6Header>(packet), ip.protocol, transport.size());
  } else {
    sum.add_pseudo(get<Ipv4Header>(packet), ip.protocol, transport.size());
  }
  return sum.add(transport).complement();
}

void complete_checksum(Bytes packet, const Offload& offload) {
  const std::size_t field = std::size_t{offload.checksum_start} + offload.checksum_offset;
  const std::uint16_t sum = checksum(packet.subspan(offload.checksum_start));
  // Zero would mean "none" in UDP; its other representation is as good in all protocols.
  put(packet, field, Be16(sum != 0 ? sum : std::uint16_t{0xffff}));
}

}  // namespace ib::ipoib
