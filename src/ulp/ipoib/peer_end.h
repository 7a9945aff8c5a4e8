// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PeerEnd: the datagram queue pair of a neighbour, as tables name it: a hardware address without
// its flags, which may change.
#pragma once

#include "ulp/ipoib/packets/addresses.h"

#include <cstddef>
#include <functional>

namespace ib::ipoib {

struct PeerEnd {
  Qpn qpn{};
  Gid gid;
  bool operator==(const PeerEnd&) const = default;
};
constexpr PeerEnd end_of(const HardwareAddress& address) {
  return {address.qpn, address.gid};
}
struct PeerEndHash {
  std::size_t operator()(const PeerEnd& end) const noexcept {
    return std::hash<Gid>()(end.gid) ^ static_cast<std::size_t>(end.qpn) * 0x9e3779b1u;
  }
};

}  // namespace ib::ipoib
