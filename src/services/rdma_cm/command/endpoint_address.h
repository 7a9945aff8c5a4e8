// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An IP address with a port, or a GID with a service id, as a program has it in a sockaddr.
#pragma once

#include "services/rdma_cm/command/ucma_layout.h"
#include "verbs/gid.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ib::services::rdma_cm {

// Numbers of Linux address families.
enum class Family : std::uint16_t { None = 0, Ipv4 = 2, Ipv6 = 10, Ib = 27 };

struct EndpointAddress {
  Family family = Family::None;
  verbs::Gid ip{};  // IPv4 as ::ffff:a.b.c.d; of AF_IB the GID
  std::uint16_t port = 0;
  std::uint32_t flow_info = 0;  // not of IPv4; as the program gave it
  std::uint64_t scope = 0;
  // Of AF_IB only. The port is what the mask leaves of the last two bytes of the service id.
  std::uint16_t pkey = 0;
  std::uint64_t service_id = 0;
  std::uint64_t service_mask = 0;
  bool operator==(const EndpointAddress&) const = default;
};

// The wildcard of a family: 0.0.0.0 or ::, of AF_IB the GID of zeros.
EndpointAddress any_address(Family family, std::uint16_t port = 0);
bool is_any(const EndpointAddress& address);
bool is_loopback(const EndpointAddress& address);  // 127.0.0.1, ::1, not all of 127.0.0.0/8
// An IPv6 address that means something on one link only, without the number of that.
bool lacks_scope(const EndpointAddress& address);

// An AF_IB address with a service id that is known in full.
EndpointAddress ib_address(const verbs::Gid& gid, std::uint16_t pkey, std::uint64_t service_id);

// Reads a sockaddr of a program. Returns nothing if it is of another family, or the bytes are too
// few for it.
std::optional<EndpointAddress> read_address(std::span<const std::uint8_t> bytes);
Family family_of(std::span<const std::uint8_t> bytes);
// The size of a sockaddr of that family; 0: of no family that an rdma_cm id may have.
std::size_t size_of(Family family);

void write_address(const EndpointAddress& address, std::span<std::uint8_t> bytes);

// "10.0.0.2:7471", "[::1]:7471"
std::string text_of(const EndpointAddress& address);

}  // namespace ib::services::rdma_cm
