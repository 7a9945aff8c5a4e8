// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service IDs [IBA1 annex A3]: the first byte says who gives the others out. Forms that connections
// of the stack have, and their text for users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ib::cm {

// The RDMA IP CM service [IBA1 annex A11]: 0x00000000'01, IP protocol, port.
struct IpService {
  std::uint8_t protocol = 6;  // 6 TCP, 17 UDP, or another port space of Linux
  std::uint16_t port = 0;
  friend bool operator==(const IpService&, const IpService&) = default;
};

inline constexpr std::uint64_t kIpServices = 0x0000'0000'0100'0000;
inline constexpr std::uint64_t kIpServiceMask = 0xffff'ffff'ff00'0000;
inline constexpr std::uint64_t kSdpServices = 0x0000'0000'0001'0000;  // and a port [annex A4]
inline constexpr std::uint64_t kSdpServiceMask = 0xffff'ffff'ffff'0000;
// Given out by the operating system of the node: the first byte is 2.
inline constexpr std::uint64_t kLocalServices = 0x0200'0000'0000'0000;
inline constexpr std::uint64_t kAdministratorMask = 0xff00'0000'0000'0000;

constexpr std::uint64_t service_id(IpService service) {
  return kIpServices | std::uint64_t{service.protocol} << 16 | service.port;
}
constexpr std::optional<IpService> ip_service(std::uint64_t service_id) {
  if ((service_id & kIpServiceMask) != kIpServices) return std::nullopt;
  return IpService{static_cast<std::uint8_t>(service_id >> 16),
                   static_cast<std::uint16_t>(service_id)};
}
static_assert(service_id(IpService{6, 7471}) == 0x0000'0000'0106'1d2f);

// "TCP port 7471", "SDP port 80", "local service 0x200000000000001", "service 0x1000ce0000000001".
std::string service_text(std::uint64_t service_id);

}  // namespace ib::cm
