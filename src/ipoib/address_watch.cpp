// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/address_watch.h"

#include "linux/process/client_handle.h"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

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
    out.ip[10] = out.ip[11] = 0xff;
    std::copy(bytes.begin(), bytes.end(), out.ip.begin() + 12);
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
  struct stat found {};
  return ::stat("/proc/self/ns/net", &found) == 0 ? found.st_ino : 0;
}

Status AddressWatch::open() {
  socket_ = os::own_descriptor(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket_.valid()) return Status::InsufficientResources;
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(socket_.get(), generic, sizeof address) == 0 ? Status::Ok : Status::IoError;
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
