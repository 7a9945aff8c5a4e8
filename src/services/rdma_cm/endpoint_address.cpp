// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/endpoint_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ib::services::rdma_cm {
namespace {

constexpr std::size_t kIpv4Size = 16;
constexpr std::size_t kIpv6Size = 28;
constexpr std::size_t kIbSize = 48;

}  // namespace

EndpointAddress any_address(Family family, std::uint16_t port) {
  EndpointAddress address;
  address.family = family;
  address.ip = family == Family::Ipv4 ? verbs::ipv4_gid(0) : verbs::Gid{};
  address.port = port;
  return address;
}

bool is_any(const EndpointAddress& address) {
  return address.ip == any_address(address.family).ip;
}

bool is_loopback(const EndpointAddress& address) {
  return address.ip ==
         (address.family == Family::Ipv4 ? verbs::ipv4_gid(0x7f000001) : verbs::make_gid(0, 1));
}

std::size_t size_of(Family family) {
  switch (family) {
    case Family::Ipv4: return kIpv4Size;
    case Family::Ipv6: return kIpv6Size;
    case Family::Ib: return kIbSize;
    case Family::None: break;
  }
  return 0;
}

Family family_of(std::span<const std::uint8_t> bytes) {
  std::uint16_t family = 0;
  if (bytes.size() >= sizeof family) std::memcpy(&family, bytes.data(), sizeof family);
  return static_cast<Family>(family);
}

std::optional<EndpointAddress> read_address(std::span<const std::uint8_t> bytes) {
  EndpointAddress address;
  address.family = family_of(bytes);
  if (address.family != Family::Ipv4 && address.family != Family::Ipv6) return std::nullopt;
  if (bytes.size() < size_of(address.family)) return std::nullopt;
  address.port = static_cast<std::uint16_t>(bytes[2] << 8 | bytes[3]);
  if (address.family == Family::Ipv4) {
    address.ip = verbs::ipv4_gid(0);
    std::copy_n(bytes.begin() + 4, 4, address.ip.begin() + verbs::kIpv4InGid);
    return address;
  }
  std::memcpy(&address.flow_info, bytes.data() + 4, sizeof address.flow_info);
  std::copy_n(bytes.begin() + 8, address.ip.size(), address.ip.begin());
  std::memcpy(&address.scope, bytes.data() + 24, sizeof address.scope);
  return address;
}

void write_address(const EndpointAddress& address, std::span<std::uint8_t> bytes) {
  const std::size_t size = size_of(address.family);
  if (size == 0 || bytes.size() < size) return;
  const auto family = static_cast<std::uint16_t>(address.family);
  std::memcpy(bytes.data(), &family, sizeof family);
  bytes[2] = static_cast<std::uint8_t>(address.port >> 8);
  bytes[3] = static_cast<std::uint8_t>(address.port);
  if (address.family == Family::Ipv4) {
    std::copy_n(address.ip.begin() + verbs::kIpv4InGid, 4, bytes.begin() + 4);
    return;
  }
  std::memcpy(bytes.data() + 4, &address.flow_info, sizeof address.flow_info);
  std::copy(address.ip.begin(), address.ip.end(), bytes.begin() + 8);
  std::memcpy(bytes.data() + 24, &address.scope, sizeof address.scope);
}

std::string text_of(const EndpointAddress& address) {
  if (address.family == Family::Ipv6 && !verbs::is_ipv4(address.ip)) {
    return fmt::format("[{}]:{}", verbs::address_text(address.ip), address.port);
  }
  return fmt::format("{}:{}", verbs::address_text(address.ip), address.port);
}

}  // namespace ib::services::rdma_cm
