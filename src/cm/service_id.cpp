// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/service_id.h"

#include <fmt/format.h>

namespace ib::cm {

std::string service_text(std::uint64_t service_id) {
  constexpr std::uint8_t kTcp = 6, kUdp = 17;
  if (const auto ip = ip_service(service_id)) {
    if (ip->protocol == kTcp) return fmt::format("TCP port {}", ip->port);
    if (ip->protocol == kUdp) return fmt::format("UDP port {}", ip->port);
    return fmt::format("port {} of port space {:#x}", ip->port, ip->protocol);
  }
  if ((service_id & kSdpServiceMask) == kSdpServices) {
    return fmt::format("SDP port {}", service_id & 0xffff);
  }
  if ((service_id & kAdministratorMask) == kLocalServices) {
    return fmt::format("local service {:#x}", service_id);
  }
  return fmt::format("service {:#x}", service_id);
}

}  // namespace ib::cm
