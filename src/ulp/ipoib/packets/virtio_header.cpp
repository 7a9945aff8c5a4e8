// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks of virtio_net_hdr: everything that later code relies on.
#include "ulp/ipoib/packets/virtio_header.h"

#include "ulp/ipoib/packets/headers.h"

namespace ib::ipoib {
namespace {

constexpr std::size_t kEthernetBytes = sizeof(EthernetHeader);

Result<Segmentation> segmentation_of(std::uint8_t gso_type) {
  switch (gso_type & ~VirtioHeader::kGsoEcn) {
    case VirtioHeader::kGsoNone: return Segmentation::None;
    case VirtioHeader::kGsoTcp4: return Segmentation::Tcp4;
    case VirtioHeader::kGsoTcp6: return Segmentation::Tcp6;
    case VirtioHeader::kGsoUdp: return Segmentation::Udp;
    default: return Status::Malformed;
  }
}

std::uint8_t gso_type_of(Segmentation segmentation) {
  switch (segmentation) {
    case Segmentation::None: return VirtioHeader::kGsoNone;
    case Segmentation::Tcp4: return VirtioHeader::kGsoTcp4;
    case Segmentation::Tcp6: return VirtioHeader::kGsoTcp6;
    case Segmentation::Udp: return VirtioHeader::kGsoUdp;
  }
  return VirtioHeader::kGsoNone;
}

}  // namespace

Result<Offload> from_virtio(const VirtioHeader& header, std::size_t packet_bytes) {
  Offload offload;
  IB_TRY(segmentation, segmentation_of(header.gso_type));
  offload.segmentation = segmentation;
  offload.ecn = (header.gso_type & VirtioHeader::kGsoEcn) != 0;
  offload.segment_size = segmentation == Segmentation::None ? std::uint16_t{0} : header.gso_size;
  offload.needs_checksum = (header.flags & VirtioHeader::kNeedsChecksum) != 0;
  if (offload.needs_checksum) {
    if (header.checksum_start < kEthernetBytes) return Status::Malformed;
    offload.checksum_start = static_cast<std::uint16_t>(header.checksum_start - kEthernetBytes);
    offload.checksum_offset = header.checksum_offset;
  }
  IB_CHECK(check(offload, packet_bytes));
  return offload;
}

VirtioHeader to_virtio(const Offload& offload) {
  VirtioHeader header;
  if (offload.segmentation != Segmentation::None) {
    header.gso_type = gso_type_of(offload.segmentation);
    if (offload.ecn) header.gso_type |= VirtioHeader::kGsoEcn;
    header.gso_size = offload.segment_size;
  }
  if (offload.needs_checksum) {
    header.flags = VirtioHeader::kNeedsChecksum;
    header.checksum_start = static_cast<std::uint16_t>(offload.checksum_start + kEthernetBytes);
    header.checksum_offset = offload.checksum_offset;
    // A hint for how much the kernel copies into its first piece: past the transport header. It
    // refuses a frame that is shorter, as one of UDP may be, so whole packets have none.
    if (offload.segmentation != Segmentation::None) {
      header.header_length = static_cast<std::uint16_t>(
          header.checksum_start +
          (offload.segmentation == Segmentation::Udp ? sizeof(UdpHeader) : sizeof(TcpHeader)));
    }
  }
  return header;
}

Status check(const Offload& offload, std::size_t packet_bytes) {
  if (offload.needs_checksum) {
    const std::size_t field = std::size_t{offload.checksum_start} + offload.checksum_offset;
    if (field + sizeof(Be16) > packet_bytes || packet_bytes > 0xffff + sizeof(Ipv6Header)) {
      return Status::Malformed;
    }
    if (offload.checksum_start < sizeof(Ipv4Header)) return Status::Malformed;
  }
  // Each segment gets a checksum of its own: its place has to be given.
  if (offload.segmentation != Segmentation::None) {
    if (!offload.needs_checksum || offload.segment_size == 0) return Status::Malformed;
  }
  return Status::Ok;
}

}  // namespace ib::ipoib
