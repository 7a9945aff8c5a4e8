// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counters of an interface: traffic, and one for each reason why a packet goes nowhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::ipoib {

enum class Drop : std::uint8_t {
  // Frames of the kernel.
  FrameMalformed,
  FrameNotIp,       // an EtherType that has no encapsulation here; VLAN tags, RARP
  FrameLinkDown,    // no carrier: port down, P_Key missing, broadcast group not joined
  FrameForeignMac,  // ARP or ND in which the sender is not this interface
  UnknownNeighbour,
  NoPath,         // the subnet administrator has no path, or does not answer
  NoGroup,        // the group cannot be joined
  QueueFull,      // of packets that wait for a path, group or connection
  WaitExpired,    // such a packet was too old, or what it waited for went away
  TooBig,         // no fragmentation was allowed; the kernel gets an ICMP error
  SendQueueFull,  // the host did not take it
  // Messages of the fabric.
  MessageMalformed,
  MessageNotIp,
  MessageOwn,  // a multicast of this interface, replicated back to it
  MessageForeignGroup,
  MessageUnknownConnection,
  MessageBadChecksum,  // ND and DHCP only, whose checksums are made again
  KernelQueueFull,
};
inline constexpr std::size_t kDropCount = 18;
// A short English text for each; the result is never null.
const char* drop_text(Drop drop);

struct Counters {
  std::uint64_t frames_from_kernel = 0;
  std::uint64_t bytes_from_kernel = 0;
  std::uint64_t frames_to_kernel = 0;
  std::uint64_t bytes_to_kernel = 0;
  std::uint64_t datagrams_sent = 0;
  std::uint64_t datagrams_received = 0;
  std::uint64_t connection_messages_sent = 0;
  std::uint64_t connection_messages_received = 0;
  std::uint64_t large_sent = 0;  // whole frames with segmentation left to the peer
  std::uint64_t segmented = 0;   // frames that were cut here
  std::uint64_t segments = 0;
  std::uint64_t fragmented = 0;
  std::uint64_t too_big_reports = 0;  // ICMP errors to the kernel
  std::uint64_t path_queries = 0;
  std::uint64_t join_requests = 0;
  std::uint64_t connect_requests = 0;
  std::uint64_t neighbours_evicted = 0;
  std::uint64_t send_errors = 0;  // completions with an error
  std::array<std::uint64_t, kDropCount> drops{};

  void drop(Drop reason) { ++drops[static_cast<std::size_t>(reason)]; }
  std::uint64_t dropped(Drop reason) const { return drops[static_cast<std::size_t>(reason)]; }
};

}  // namespace ib::ipoib
