// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TAP device: an Ethernet interface of the kernel whose other end is a descriptor. One read() or
// write() is one frame behind a header of kVnetHeaderBytes (virtio_net_hdr_v1: checksums and
// segmentation that are left to the other side), so a frame may be far longer than the MTU.
//
// The device lives as long as the Tap, unless it is kept (Options::persist): then its carrier goes
// with the descriptor, and a later Tap of the same name finds it again.
// Thread rule: descriptor() may be read and written by any thread; the rest by one at a time.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ib::os::net {

using MacAddress = std::array<std::uint8_t, 6>;

// struct virtio_net_hdr_v1 <linux/virtio_net.h>, little-endian fields as the host has them.
inline constexpr std::size_t kVnetHeaderBytes = 12;
inline constexpr std::size_t kEthernetHeaderBytes = 14;
// The longest that read() returns and write() takes: a segment that is still to be cut.
inline constexpr std::size_t kMaxFrameBytes = kVnetHeaderBytes + kEthernetHeaderBytes + 65'536;

// The largest packet that an interface takes whole, without the Ethernet header.
struct LinkMtu {
  std::uint32_t bytes = 0;
  friend bool operator==(LinkMtu, LinkMtu) = default;
};
inline constexpr LinkMtu kLeastMtu{68};  // IPv4 needs it [RFC 791 3.2]
// With less the kernel takes IPv6 off an interface [RFC 8200 5].
inline constexpr LinkMtu kLeastIpv6Mtu{1280};
inline constexpr LinkMtu kMaxMtu{65'520};  // of IPoIB's connected mode [RFC 4755 5]

class Tap {
 public:
  struct Options {
    std::string name;  // at most 15 characters
    bool persist = false;
  };
  // In the network namespace of the calling thread: without carrier, down, non-blocking, with all
  // offloads that the kernel has.
  // ! NotSupported: no /dev/net/tun; AccessDenied: not permitted; AlreadyExists: the name is taken.
  // `reason` says what was missing, in words.
  static Result<Tap> create(const Options& options, std::string& reason);

  // Close-on-exec, non-blocking. read() fails with EIO while the interface is down.
  int descriptor() const { return file_.get(); }
  const std::string& name() const { return name_; }
  // UDP segmentation (VIRTIO_NET_HDR_GSO_UDP_L4), beside that of TCP: Linux 6.2 and later.
  bool segments_udp() const { return segments_udp_; }

  Status set_carrier(bool on) const;
  // The device goes with this Tap, also if it was to be kept.
  Status discard() const;

 private:
  Tap(platform::NativeHandle file, std::string name, bool segments_udp)
      : file_(std::move(file)), name_(std::move(name)), segments_udp_(segments_udp) {}

  platform::NativeHandle file_;
  std::string name_;
  bool segments_udp_ = false;
};

}  // namespace ib::os::net
