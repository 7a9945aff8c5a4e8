// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/command/endpoint_address.h"

#include "base/big_endian.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ib::services::rdma_cm {
namespace {

constexpr std::size_t kIpv4Size = 16;
constexpr std::size_t kIpv6Size = 28;
constexpr std::size_t kIbSize = 48;

// struct sockaddr_ib; all but the family and the scope are big-endian.
struct IbSockaddr {
  std::uint16_t family = 0;
  Be16 pkey{0};
  std::uint32_t flow_info = 0;  // goes through as it is
  verbs::Gid gid{};
  Be64 service_id{0};
  Be64 service_mask{0};
  std::uint64_t scope = 0;
};
static_assert(sizeof(IbSockaddr) == kIbSize);

EndpointAddress read_ib_address(std::span<const std::uint8_t> bytes) {
  IbSockaddr in;
  std::memcpy(&in, bytes.data(), sizeof in);
  EndpointAddress address;
  address.family = Family::Ib;
  address.ip = in.gid;
  address.flow_info = in.flow_info;
  address.scope = in.scope;
  address.pkey = in.pkey;
  address.service_id = in.service_id;
  address.service_mask = in.service_mask;
  address.port = static_cast<std::uint16_t>(address.service_id & address.service_mask);
  return address;
}

void write_ib_address(const EndpointAddress& address, std::span<std::uint8_t> bytes) {
  IbSockaddr out;
  out.family = static_cast<std::uint16_t>(Family::Ib);
  out.pkey = Be16(address.pkey);
  out.flow_info = address.flow_info;
  out.gid = address.ip;
  out.service_id = Be64(address.service_id);
  out.service_mask = Be64(address.service_mask);
  out.scope = address.scope;
  std::memcpy(bytes.data(), &out, sizeof out);
}

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

bool lacks_scope(const EndpointAddress& address) {
  return address.family == Family::Ipv6 && verbs::is_link_local(address.ip) && address.scope == 0;
}

EndpointAddress ib_address(const verbs::Gid& gid, std::uint16_t pkey, std::uint64_t service_id) {
  EndpointAddress address = any_address(Family::Ib, static_cast<std::uint16_t>(service_id));
  address.ip = gid;
  address.pkey = pkey;
  address.service_id = service_id;
  address.service_mask = ~std::uint64_t{0};
  return address;
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
  const std::size_t size = size_of(address.family);
  if (size == 0 || bytes.size() < size) return std::nullopt;
  if (address.family == Family::Ib) return read_ib_address(bytes);
  address.port = static_cast<std::uint16_t>(bytes[2] << 8 | bytes[3]);
  if (address.family == Family::Ipv4) {
    address.ip = verbs::ipv4_gid(0);
    std::copy_n(bytes.begin() + 4, 4, address.ip.begin() + verbs::kIpv4InGid);
    return address;
  }
  std::memcpy(&address.flow_info, bytes.data() + 4, sizeof address.flow_info);
  std::copy_n(bytes.begin() + 8, address.ip.size(), address.ip.begin());
  std::uint32_t scope = 0;
  std::memcpy(&scope, bytes.data() + 24, sizeof scope);
  address.scope = scope;
  return address;
}

void write_address(const EndpointAddress& address, std::span<std::uint8_t> bytes) {
  const std::size_t size = size_of(address.family);
  if (size == 0 || bytes.size() < size) return;
  if (address.family == Family::Ib) return write_ib_address(address, bytes);
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
  const auto scope = static_cast<std::uint32_t>(address.scope);
  std::memcpy(bytes.data() + 24, &scope, sizeof scope);
}

std::string text_of(const EndpointAddress& address) {
  if (address.family != Family::Ipv4 && !verbs::is_ipv4(address.ip)) {
    return fmt::format("[{}]:{}", verbs::address_text(address.ip), address.port);
  }
  return fmt::format("{}:{}", verbs::address_text(address.ip), address.port);
}

}  // namespace ib::services::rdma_cm
