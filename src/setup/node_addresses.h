// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IP addresses as people write them, and the network interfaces that have them.
#pragma once

#include "verbs/gid.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ib::softib {

// "192.0.2.1", "fd00::1"; nothing: that is no address of one machine.
std::optional<verbs::Gid> parse_address(const std::string& text);

// An address of a network interface.
struct Interface {
  verbs::Gid ip{};
  std::string name;
  unsigned flags = 0;  // IFF_UP, IFF_LOOPBACK ...
};
// Returns those of this network namespace. Passive level.
std::vector<Interface> interfaces();
// Those that are up, but for loopback and link-local addresses, which do not identify a host.
// IPv4 first. Passive level.
std::vector<Interface> host_addresses();

// Returns the name of the interface that has the address; empty: none has.
std::string interface_of(const verbs::Gid& ip, const std::vector<Interface>& known);

// Returns the kernel's number of the network namespace of this process, or 0 if it is not known.
std::uint64_t network_namespace();

}  // namespace ib::softib
