// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sizes of packets as the counters of ports have them: from the first byte of the local route
// header, or of the Ethernet header, to the ICRC [IBA1 5.2, 9.2, 16.1.3.5]. The CRC of the link
// (VCRC, frame check sequence) does not count.
#pragma once

#include "verbs/gid.h"
#include "verbs/types.h"

#include <cstdint>

namespace ib::verbs::wire {

inline constexpr std::uint64_t kLrh = 8;
inline constexpr std::uint64_t kGrh = 40;
inline constexpr std::uint64_t kEthernet = 14;
inline constexpr std::uint64_t kIpv4 = 20;
inline constexpr std::uint64_t kIpv6 = 40;
inline constexpr std::uint64_t kUdp = 8;
inline constexpr std::uint64_t kBth = 12;
inline constexpr std::uint64_t kIcrc = 4;
// Extended headers.
inline constexpr std::uint64_t kDeth = 8;
inline constexpr std::uint64_t kXrcEth = 4;
inline constexpr std::uint64_t kReth = 16;
inline constexpr std::uint64_t kAtomicEth = 28;
inline constexpr std::uint64_t kFeth = 4;
inline constexpr std::uint64_t kImmediate = 4;  // or the key that a SEND invalidates
inline constexpr std::uint64_t kAeth = 4;
inline constexpr std::uint64_t kAtomicAck = 8;

// Payloads are padded to words of 4 bytes.
constexpr std::uint64_t padding(std::uint64_t bytes) {
  return -bytes & 3;
}

// The packets of a message after its first.
constexpr std::uint64_t more_packets(std::uint64_t bytes, Mtu mtu) {
  return bytes != 0 ? (bytes - 1) / mtu_bytes(mtu) : 0;
}

// Bytes that each packet to this address has besides extended headers and payload.
constexpr std::uint64_t packet_base(LinkLayer layer, bool is_global, const Gid& to) {
  if (layer != LinkLayer::Ethernet) return kLrh + (is_global ? kGrh : 0) + kBth + kIcrc;
  return kEthernet + (is_ipv4(to) ? kIpv4 : kIpv6) + kUdp + kBth + kIcrc;
}

// Bytes that each packet of a datagram to this address has besides payload and immediate data.
constexpr std::uint64_t datagram_base(LinkLayer layer, const AddressVector& av) {
  return packet_base(layer, av.is_global != 0, av.dgid) + kDeth;
}

// A datagram with so much payload. Every path MTU is whole words, so of several packets only the
// last has padding; it alone has the immediate data, as of a connected queue pair [IBA1 9.4.1].
constexpr std::uint64_t datagram(LinkLayer layer, const AddressVector& av, std::uint64_t bytes,
                                 bool immediate, std::uint64_t packets = 1) {
  return packets * datagram_base(layer, av) + (immediate ? kImmediate : 0) + bytes + padding(bytes);
}

}  // namespace ib::verbs::wire
