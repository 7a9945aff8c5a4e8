// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The RDMA IP CM service [IBA1 annex A11]: how IP addresses and ports become service ids, the
// header in front of the private data of a REQ or SIDR_REQ, and the multicast GIDs of IP groups.
#pragma once

#include "services/rdma_cm/command/endpoint_address.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ib::services::rdma_cm {

using ucma::Error;

enum class PortSpace : std::uint16_t { Ipoib = 0x0002, Ib = 0x013f, Tcp = 0x0106, Udp = 0x0111 };
inline constexpr std::array kPortSpaces{PortSpace::Ipoib, PortSpace::Ib, PortSpace::Tcp,
                                        PortSpace::Udp};
bool is_port_space(std::uint16_t number);
const char* name_of(PortSpace space);  // "TCP"

// Bytes 4 and 5 of a service id are the port space, 6 and 7 the port [A11.3.1].
std::uint64_t service_id(PortSpace space, std::uint16_t port);
// Of an address that an id of this space has: an AF_IB address brings its own.
std::uint64_t service_id(PortSpace space, const EndpointAddress& address);
inline constexpr std::uint64_t kServicePortMask = 0xffff;
// Returns nothing if the service id is not one of this service.
struct ServicePort {
  PortSpace space;
  std::uint16_t port;
};
std::optional<ServicePort> service_of(std::uint64_t service_id);
// The port space that the service id of an AF_IB address names, as far as its mask says so: IB
// ids may take ports of TCP and UDP, too. Returns nothing if the id must not have it.
std::optional<PortSpace> port_space_of(PortSpace of_id, const EndpointAddress& address);

// The private data of a REQ or SIDR_REQ begins with this [A11.3.2].
inline constexpr std::size_t kIpHeaderBytes = 36;
struct IpHeader {
  Family family = Family::None;
  std::uint16_t port = 0;  // of the sender
  verbs::Gid source{};
  verbs::Gid destination{};
};
void write_ip_header(const IpHeader& header, std::span<std::uint8_t, kIpHeaderBytes> bytes);
// Returns nothing if it is too short, or of another version of the service or of IP.
std::optional<IpHeader> read_ip_header(std::span<const std::uint8_t> private_data);

// The Q_Key of datagram services, until the peers agree on another one.
inline constexpr std::uint32_t kUdpQkey = 0x01234567;

// The multicast GID of an IP group on InfiniBand [RFC 4391 section 4], with the signature of this
// service in port space UDP; on Ethernet the GID is the address.
verbs::Gid multicast_gid(const EndpointAddress& group, PortSpace space, std::uint16_t pkey);

}  // namespace ib::services::rdma_cm
