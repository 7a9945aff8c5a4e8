// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LinkWatch: what becomes of the interfaces of the network namespace in which it was made, by
// whomever (`ip link set`). A socket in a group of rtnetlink(7). Thread rule: one thread at a time.
#pragma once

#include "base/result.h"
#include "linux/net/tap.h"
#include "platform/control_channel.h"

#include <optional>
#include <utility>
#include <vector>

namespace ib::os::net {

class LinkWatch {
 public:
  // An interface after a change.
  struct Change {
    int index = 0;
    bool up = false;  // as `ip link set up`; says nothing about the carrier
    LinkMtu mtu{};

    // Else the kernel has taken all addresses of IPv6 from it.
    bool can_have_ipv6() const { return up && mtu.bytes >= kLeastIpv6Mtu.bytes; }
  };

  // ! IoError, TooManyHandles
  static Result<LinkWatch> open();

  // Readable while there are changes.
  int descriptor() const { return socket_.get(); }
  // Those since the last call, in their order. Returns nothing if the kernel has dropped some.
  std::optional<std::vector<Change>> take();

 private:
  explicit LinkWatch(platform::NativeHandle socket) : socket_(std::move(socket)) {}

  platform::NativeHandle socket_;
};

}  // namespace ib::os::net
