// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reasons for which an interface of IP over InfiniBand cannot reach a neighbour or a group. A
// reason travels in the field `cause` of TraceErrorIn, above the refusals of posting
// (post_refusal.h): no completion ever has one. `qp_index` is that of the interface's datagrams,
// `address` and `wr_id` the two halves of the GID, 0: the interface itself; `detail` is a Status,
// `key` the P_Key of the interface.
#pragma once

#include <cstdint>

namespace ib::verbs::control {

enum class IpTrouble : std::uint32_t {
  PortDown = 0x200,
  PkeyMissing,
  BroadcastGroupMissing,
  BroadcastGroupUnfit,
  PathRefused,
  PathTimeout,
  GroupRefused,
  GroupTimeout,
  ConnectionRefused,
  ConnectionLost,
};
inline constexpr std::uint32_t kFirstIpTrouble = 0x200;
inline constexpr std::uint32_t kIpTroubleCount = 10;
constexpr bool is_ip_trouble(std::uint32_t cause) {
  return cause >= kFirstIpTrouble && cause - kFirstIpTrouble < kIpTroubleCount;
}

}  // namespace ib::verbs::control
