// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// virtio_net_hdr, which precedes each frame of a TAP with IFF_VNET_HDR, and its meaning for a
// message of IP over InfiniBand.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ib::ipoib {

// In the byte order of the machine, as Linux has it unless TUNSETVNETBE says otherwise.
struct VirtioHeader {
  static constexpr std::uint8_t kNeedsChecksum = 1;
  static constexpr std::uint8_t kDataValid = 2;
  static constexpr std::uint8_t kGsoNone = 0;
  static constexpr std::uint8_t kGsoTcp4 = 1;
  static constexpr std::uint8_t kGsoTcp6 = 4;
  static constexpr std::uint8_t kGsoUdp = 5;  // segments of UDP (USO), not fragments
  static constexpr std::uint8_t kGsoEcn = 0x80;

  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_length = 0;  // a hint; nothing here trusts it
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;   // from the start of the Ethernet frame
  std::uint16_t checksum_offset = 0;  // from checksum_start
};
static_assert(sizeof(VirtioHeader) == 10 && std::is_trivially_copyable_v<VirtioHeader>);
static_assert(offsetof(VirtioHeader, gso_size) == 4 &&
              offsetof(VirtioHeader, checksum_offset) == 8);

enum class Segmentation : std::uint8_t { None, Tcp4, Tcp6, Udp };

// The work that a packet needs before it can be on a wire: a checksum that covers only the
// pseudo header, and cutting it into segments. Positions count from the first byte of the IP
// header. Between two interfaces of softib this travels with the message (Host::takes_large).
struct Offload {
  bool needs_checksum = false;
  bool ecn = false;  // TCP: the segments after the first have no CWR
  Segmentation segmentation = Segmentation::None;
  std::uint16_t segment_size = 0;  // bytes of payload in each segment but the last
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;

  bool is_nothing() const { return !needs_checksum && segmentation == Segmentation::None; }
  bool operator==(const Offload&) const = default;
};

// `packet_bytes` is the length of the IP packet. Malformed if the header contradicts itself or
// points out of the packet; types of segmentation that the interface does not offer are Malformed
// too.
Result<Offload> from_virtio(const VirtioHeader& header, std::size_t packet_bytes);
VirtioHeader to_virtio(const Offload& offload);
// The same checks for an Offload that came with a message of a peer.
Status check(const Offload& offload, std::size_t packet_bytes);

}  // namespace ib::ipoib
