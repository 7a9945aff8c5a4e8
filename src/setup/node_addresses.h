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

// Returns the interface of this network namespace that has the address; empty: none has. Passive
// level.
std::string interface_of(const verbs::Gid& ip);

// Those of the interfaces of this network namespace that are up, but for loopback and link-local
// ones: these say nothing about a host. IPv4 first. Passive level.
struct InterfaceAddress {
  verbs::Gid ip{};
  std::string interface;
};
std::vector<InterfaceAddress> interface_addresses();

// The number by which the kernel knows the network namespace of this process; 0: not known.
std::uint64_t network_namespace();

}  // namespace ib::softib
