// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The little of rtnetlink(7) that a node's network needs, in the network namespace in which the
// socket was made. Each call sends one request and waits for the kernel's answer to it, which comes
// at once. Thread rule: one thread at a time.
#pragma once

#include "base/result.h"
#include "linux/net/ip_prefix.h"
#include "linux/net/tap.h"
#include "platform/control_channel.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace ib::os::net {

// A socket that does not block and is readable when something of these groups (RTMGRP_LINK ...) of
// rtnetlink has changed in this network namespace.  ! IoError, TooManyHandles
Result<platform::NativeHandle> watch_rtnetlink(std::uint32_t groups);

enum class RouteKind : std::uint8_t {
  OnLink,       // the network is at the interface
  Unreachable,  // packets to the network fail, those to loopback addresses too
};

class Netlink {
 public:
  // ! IoError, TooManyHandles
  static Result<Netlink> open();

  // Of an interface; what is not set stays as it is.
  struct LinkChange {
    std::optional<bool> up = std::nullopt;
    std::optional<LinkMtu> mtu = std::nullopt;
    std::optional<MacAddress> mac = std::nullopt;
    bool keep_ipv6_unset = false;  // the kernel makes no link-local address by itself
  };
  Status change_link(int index, const LinkChange& change);
  Status delete_link(int index);
  // Ok if the interface has it already. The address is usable at once (no duplicate detection: the
  // fabric gives each to one node).
  Status add_address(int index, const IpPrefix& address);
  // Ok if there is such a route already. `index`: of OnLink.
  Status add_route(int index, const IpPrefix& network, RouteKind kind);

  // errno of the last call that failed, and what the kernel says about it; may be empty.
  int error() const { return error_; }
  const std::string& text() const { return text_; }

 private:
  explicit Netlink(platform::NativeHandle socket) : socket_(std::move(socket)) {}

  class Request;
  Status exchange(Request& request);
  Status read_answer(std::uint32_t sequence);
  Status fail(int error);

  platform::NativeHandle socket_;
  std::uint32_t sequence_ = 0;
  int error_ = 0;
  std::string text_;
};

// The number of an interface of this thread's network namespace; 0: there is none of that name.
int index_of(const std::string& name);

}  // namespace ib::os::net
