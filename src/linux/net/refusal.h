// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the system refused a step on the way to a node's network, in words and with the remedy. The
// steps are in the order in which they are taken.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>

namespace ib::os::net {

enum class Step : std::uint32_t {
  None,              // nothing was refused
  UserNamespace,     // unshare(CLONE_NEWUSER)
  Mapping,           // /proc/self/uid_map and the like
  NetworkNamespace,  // unshare(CLONE_NEWNET)
  TunDevice,         // open("/dev/net/tun")
  Tap,               // TUNSETIFF and the ioctls after it
  Interface,         // rtnetlink: addresses, routes, up
  Join,              // setns()
  Capabilities,      // keeping them across exec
};

struct Refusal {
  Step step = Step::None;
  int error = 0;  // errno

  explicit operator bool() const { return step != Step::None; }
};

Status status_of(const Refusal& refusal);
// The refusal and its likely reason, by the settings of this machine.
std::string describe(const Refusal& refusal);
// The remedy.
std::string remedy(const Refusal& refusal);
// Both, in two lines.
std::string explain(const Refusal& refusal);

}  // namespace ib::os::net
