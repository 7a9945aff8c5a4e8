// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/announcement.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace ib::ipoib::driver {

namespace {

constexpr std::size_t kMostAddresses = 64;
constexpr std::array<std::uint8_t, 10> kArpRequest{0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};

}  // namespace

Announcement announcement_of(const MacAddress& mac, const Ipv4Address& address) {
  Announcement frame{};
  std::size_t at = 0;
  const auto add = [&](std::span<const std::uint8_t> bytes) {
    std::memcpy(frame.data() + at, bytes.data(), bytes.size());
    at += bytes.size();
  };
  add(kBroadcastMac.bytes);
  add(mac.bytes);
  add(kArpRequest);
  add(mac.bytes);
  add(address.bytes);
  at += mac.bytes.size();  // of the target: unknown
  add(address.bytes);
  return frame;
}

std::vector<Ipv4Address> addresses_of(const std::string& interface) {
  std::vector<Ipv4Address> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr && found.size() < kMostAddresses;
       one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (interface != one->ifa_name) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    Ipv4Address ip;
    std::memcpy(ip.bytes.data(), &address.sin_addr, ip.bytes.size());
    found.push_back(ip);
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace ib::ipoib::driver
