// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/address_watch.h"

#include "linux/net/namespaces.h"
#include "linux/net/netlink.h"
#include "verbs/gid.h"

#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace ib::ipoib::driver {
namespace {

using verbs::control::PrefixedAddress;

std::uint32_t bits_of(std::span<const std::uint8_t> mask) {
  std::uint32_t bits = 0;
  for (const std::uint8_t byte : mask) bits += static_cast<std::uint32_t>(std::popcount(byte));
  return bits;
}

std::optional<PrefixedAddress> read_address(const sockaddr* address, const sockaddr* mask) {
  if (address == nullptr || mask == nullptr) return std::nullopt;
  PrefixedAddress out;
  if (address->sa_family == AF_INET) {
    constexpr std::size_t kAt = offsetof(sockaddr_in, sin_addr);
    std::array<std::uint8_t, sizeof(in_addr)> bytes{};
    std::memcpy(bytes.data(), reinterpret_cast<const char*>(address) + kAt, bytes.size());
    out.ip = verbs::ipv4_gid(0);
    std::copy(bytes.begin(), bytes.end(), out.ip.begin() + verbs::kIpv4InGid);
    std::memcpy(bytes.data(), reinterpret_cast<const char*>(mask) + kAt, bytes.size());
    out.bits = bits_of(bytes);
    return out;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  constexpr std::size_t kAt = offsetof(sockaddr_in6, sin6_addr);
  std::array<std::uint8_t, sizeof(in6_addr)> bytes{};
  std::memcpy(out.ip.data(), reinterpret_cast<const char*>(address) + kAt, out.ip.size());
  std::memcpy(bytes.data(), reinterpret_cast<const char*>(mask) + kAt, bytes.size());
  out.bits = bits_of(bytes);
  return out;
}

}  // namespace

AddressesByInterface addresses_by_interface() {
  AddressesByInterface found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const auto address = read_address(one->ifa_addr, one->ifa_netmask);
    if (!address) continue;
    // An alias, "ib0:1", is a label of an address of ib0.
    const std::string name(one->ifa_name, std::strcspn(one->ifa_name, ":"));
    auto& of_interface = found[name];
    if (of_interface.size() < verbs::control::kMaxInterfaceAddresses)
      of_interface.push_back(*address);
  }
  ::freeifaddrs(all);
  return found;
}

std::uint64_t own_network_number() {
  return os::net::namespace_id(os::net::own_network_namespace().get()).inode;
}

Status AddressWatch::open() {
  auto socket = os::net::watch_rtnetlink(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
  if (!socket) return socket.error();
  socket_ = *std::move(socket);
  return Status::Ok;
}

bool AddressWatch::take() {
  bool changed = false;
  std::array<std::byte, 8192> message;
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), message.data(), message.size(), 0);
    // ENOBUFS: messages were lost, which is a change, too.
    if (got < 0 && errno != ENOBUFS && errno != EINTR) return changed;
    changed = true;
  }
}

}  // namespace ib::ipoib::driver
