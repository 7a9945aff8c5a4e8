// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Announcements: an ARP request for each IPv4 address of an interface by itself [RFC 5227 3]. A new
// queue pair has another 20-byte address, and neighbours that have the old one would go on sending
// to it for seconds.
#pragma once

#include "ulp/ipoib/packets/addresses.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace ib::ipoib::driver {

// An Ethernet frame, as the kernel would send it.
using Announcement = std::array<std::byte, 42>;

Announcement announcement_of(const MacAddress& mac, const Ipv4Address& address);
// Those of an interface of this network namespace; at most 64.
std::vector<Ipv4Address> addresses_of(const std::string& interface);

}  // namespace ib::ipoib::driver
