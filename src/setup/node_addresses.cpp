// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/node_addresses.h"

#include "base/big_endian.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace ib::softib {
namespace {

constexpr std::uint8_t kLoopbackNetwork = 127;

verbs::Gid gid_of(const in_addr& address) {
  return verbs::ipv4_gid(to_big_endian(address.s_addr));
}

// Nothing for other families.
std::optional<verbs::Gid> gid_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in ip{};
    std::memcpy(&ip, address, sizeof ip);
    return gid_of(ip.sin_addr);
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 ip{};
  std::memcpy(&ip, address, sizeof ip);
  verbs::Gid gid{};
  std::memcpy(gid.data(), &ip.sin6_addr, gid.size());
  return gid;
}

}  // namespace

std::optional<verbs::Gid> parse_address(const std::string& text) {
  verbs::Gid gid{};
  in_addr ipv4{};
  if (::inet_pton(AF_INET, text.c_str(), &ipv4) == 1) {
    gid = gid_of(ipv4);
  } else if (::inet_pton(AF_INET6, text.c_str(), gid.data()) != 1) {
    return std::nullopt;
  }
  if (!verbs::is_host_address(gid)) return std::nullopt;
  return gid;
}

std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  std::vector<Interface> result;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    const std::optional<verbs::Gid> ip = gid_of(at->ifa_addr);
    // Under `softib run` the list has interfaces that the kernel does not have.
    if (ip && ::if_nametoindex(at->ifa_name) != 0)
      result.push_back({*ip, at->ifa_name, at->ifa_flags});
  }
  return result;
}

std::string interface_of(const verbs::Gid& ip, const std::vector<Interface>& known) {
  std::string loopback;
  for (const Interface& interface : known) {
    if (interface.ip == ip) return interface.name;
    if ((interface.flags & IFF_LOOPBACK) != 0) loopback = interface.name;
  }
  // The loopback interface has all of its network.
  const bool local = verbs::is_ipv4(ip) && ip[verbs::kIpv4InGid] == kLoopbackNetwork;
  return local ? loopback : std::string();
}

std::vector<Interface> host_addresses() {
  std::vector<Interface> result = interfaces();
  std::erase_if(result, [](const Interface& interface) {
    return (interface.flags & IFF_UP) == 0 || (interface.flags & IFF_LOOPBACK) != 0 ||
           !verbs::is_host_address(interface.ip) || verbs::is_link_local(interface.ip);
  });
  std::stable_partition(result.begin(), result.end(),
                        [](const Interface& interface) { return verbs::is_ipv4(interface.ip); });
  return result;
}

std::uint64_t network_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace ib::softib
