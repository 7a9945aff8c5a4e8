// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets for tests: as hex text, and built from fields, with a checksum that is computed in the
// plainest way.
#pragma once

#include "ulp/ipoib/packets/headers.h"
#include "ulp/ipoib/packets/outgoing.h"
#include "ulp/ipoib/packets/virtio_header.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ib::ipoib {

using TestBytes = std::vector<std::byte>;

inline TestBytes from_hex(std::string_view text) {
  TestBytes bytes;
  unsigned digits = 0;
  unsigned value = 0;
  for (const char letter : text) {
    if (letter == ' ') continue;
    const unsigned digit = letter <= '9' ? unsigned(letter - '0') : unsigned(letter - 'a') + 10u;
    value = value << 4 | digit;
    if (++digits % 2 == 0) bytes.push_back(static_cast<std::byte>(value & 0xff));
  }
  return bytes;
}

inline std::string to_hex(ConstBytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4];
    text += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 0xf];
  }
  return text;
}

inline TestBytes joined(const Outgoing& message) {
  TestBytes bytes(message.head.begin(), message.head.end());
  bytes.insert(bytes.end(), message.body.begin(), message.body.end());
  return bytes;
}

template <class Header>
void append(TestBytes& bytes, const Header& header) {
  const auto more = std::as_bytes(std::span(&header, 1));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// The sum of big-endian words, folded; 0xffff if a checksum that it covers is right.
inline std::uint32_t plain_sum(ConstBytes bytes, std::uint32_t start = 0) {
  std::uint32_t sum = start;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

// Both of a packet whose transport header follows the IP header of the length ip.payload.
inline std::uint32_t plain_pseudo_sum(ConstBytes packet, const IpPacket& ip) {
  const std::size_t addresses = ip.is_v6 ? 8 : 12;
  const std::size_t length = ip.is_v6 ? 32 : 8;
  return plain_sum(packet.subspan(addresses, length),
                   ip.protocol + static_cast<std::uint32_t>(ip.length - ip.payload));
}
inline bool has_right_checksums(std::uint16_t type, ConstBytes packet) {
  const auto ip = parse_ip(type, packet);
  if (!ip || ip->length != packet.size()) return false;
  if (!ip->is_v6 && plain_sum(packet.first(ip->payload)) != 0xffff) return false;
  if (ip->is_fragment) return true;
  return plain_sum(packet.subspan(ip->payload), plain_pseudo_sum(packet, *ip)) == 0xffff;
}

struct Flow {
  bool v6 = false;
  std::uint8_t protocol = kTcp;
  std::uint8_t source = 1;  // last byte of the address
  std::uint8_t destination = 2;
  std::uint16_t fragment = kDontFragment;
  std::uint8_t tcp_flags = 0x18;
};

inline std::array<std::uint8_t, 4> ipv4(std::uint8_t last) {
  return {10, 0, 0, last};
}
inline std::array<std::uint8_t, 16> ipv6(std::uint8_t last) {
  return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

// An IP packet of TCP or UDP with `payload` bytes, which differ from each other. `partial`: the
// checksum covers the pseudo header only.
inline TestBytes make_packet(const Flow& flow, std::size_t payload, bool partial) {
  TestBytes transport;
  if (flow.protocol == kTcp) {
    TcpHeader tcp{};
    tcp.source = 1000;
    tcp.destination = 2000;
    tcp.sequence = 0xffff'fff0u;
    tcp.data_offset = 0x50;
    tcp.flags = flow.tcp_flags;
    append(transport, tcp);
  } else {
    append(transport,
           UdpHeader{1000, 2000, static_cast<std::uint16_t>(sizeof(UdpHeader) + payload), {}});
  }
  for (std::size_t i = 0; i < payload; ++i) {
    transport.push_back(static_cast<std::byte>(i * 7 + (i >> 8)));
  }
  TestBytes packet;
  IpPacket ip;
  ip.is_v6 = flow.v6;
  ip.protocol = flow.protocol;
  if (flow.v6) {
    append(packet, Ipv6Header{6u << 28, static_cast<std::uint16_t>(transport.size()), flow.protocol,
                              64, ipv6(flow.source), ipv6(flow.destination)});
  } else {
    Ipv4Header header{0x45,
                      0,
                      static_cast<std::uint16_t>(20 + transport.size()),
                      7,
                      flow.fragment,
                      64,
                      flow.protocol,
                      {},
                      ipv4(flow.source),
                      ipv4(flow.destination)};
    header.checksum = static_cast<std::uint16_t>(~plain_sum(std::as_bytes(std::span(&header, 1))));
    append(packet, header);
  }
  ip.payload = packet.size();
  packet.insert(packet.end(), transport.begin(), transport.end());
  ip.length = packet.size();
  const std::size_t field = ip.payload + (flow.protocol == kTcp ? 16 : 6);
  const std::uint32_t pseudo = plain_pseudo_sum(packet, ip);
  const std::uint32_t sum =
      partial ? pseudo : ~plain_sum(ConstBytes(packet).subspan(ip.payload), pseudo) & 0xffff;
  put(Bytes(packet), field, Be16(static_cast<std::uint16_t>(sum)));
  return packet;
}

inline Offload offload_of(const Flow& flow, std::uint16_t segment_size) {
  Offload offload;
  offload.needs_checksum = true;
  offload.checksum_start = flow.v6 ? 40 : 20;
  offload.checksum_offset = flow.protocol == kTcp ? 16 : 6;
  offload.segment_size = segment_size;
  if (segment_size != 0) {
    offload.segmentation = flow.protocol == kUdp ? Segmentation::Udp
                           : flow.v6             ? Segmentation::Tcp6
                                                 : Segmentation::Tcp4;
  }
  return offload;
}

inline TestBytes encapsulated(const Flow& flow, const TestBytes& packet) {
  TestBytes message;
  append(message, Encapsulation{flow.v6 ? kTypeIpv6 : kTypeIpv4, std::uint16_t{0}});
  message.insert(message.end(), packet.begin(), packet.end());
  return message;
}

}  // namespace ib::ipoib
