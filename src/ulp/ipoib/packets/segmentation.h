// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Segments and fragments of a packet that is too large for its way: TCP and UDP segmentation of
// what the kernel hands over whole (TSO, USO), and fragmentation of IPv4 [RFC 791 3.2].
//
// Both give one message after the other: new headers, which they hold, and a piece of the payload
// where it lies. Everything was checked when they were made; next() cannot fail.
#pragma once

#include "base/result.h"
#include "ulp/ipoib/packets/headers.h"
#include "ulp/ipoib/packets/outgoing.h"
#include "ulp/ipoib/packets/virtio_header.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ib::ipoib {

// Encapsulation, IP with options or extension headers, TCP with options.
inline constexpr std::size_t kMostHeaderBytes = 256;

class Segmenter {
 public:
  // `message` is the encapsulation header and the packet; each segment is an IP packet of at most
  // `mtu` bytes. Malformed: the headers and the Offload do not agree. LimitExceeded: no byte of
  // payload fits.
  static Result<Segmenter> create(ConstBytes message, const Offload& offload, std::size_t mtu);

  std::optional<Outgoing> next();
  // Bytes of payload in each segment but the last: what the Offload says, or fewer.
  std::uint16_t segment_size() const { return static_cast<std::uint16_t>(segment_size_); }

 private:
  Segmenter() = default;
  void write_headers(std::size_t payload, ConstBytes body, bool is_first, bool is_last);
  void write_tcp(Bytes transport, bool is_first, bool is_last);

  ConstBytes message_;
  Segmentation kind_ = Segmentation::None;
  std::size_t ip_payload_ = 0;  // offset of the transport header in the message
  std::size_t headers_ = 0;     // length of all headers
  std::size_t segment_size_ = 0;
  std::size_t done_ = 0;  // bytes of payload
  std::uint16_t index_ = 0;
  std::array<std::byte, kMostHeaderBytes> head_{};
};

class Fragmenter {
 public:
  // The packet's checksums are complete. NotSupported: it must not be fragmented (unless
  // `ignore_flag`), or is not IPv4.
  static Result<Fragmenter> create(ConstBytes message, std::size_t mtu, bool ignore_flag);

  std::optional<Outgoing> next();

 private:
  Fragmenter() = default;
  void strip_options();

  ConstBytes payload_;
  std::uint16_t first_offset_ = 0;  // of the packet, which may be a fragment, in units of 8
  bool more_follow_ = false;
  std::size_t mtu_ = 0;
  std::size_t done_ = 0;
  std::size_t head_size_ = 0;
  std::array<std::byte, sizeof(Encapsulation) + 60> head_{};
};

}  // namespace ib::ipoib
