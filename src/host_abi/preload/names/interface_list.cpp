// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/names/interface_list.h"

#include "host_abi/preload/names/node_names.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

// No interface of the kernel: if_nametoindex() finds none. Being elsewhere than in the blocks of
// libc, the names also tell whose an entry is.
constexpr std::size_t kLongestName = 8;
constexpr char kNames[][kLongestName] = {"softib0", "softib1", "softib2", "softib3",
                                         "softib4", "softib5", "softib6", "softib7"};
constexpr std::size_t kMostEntries = sizeof kNames / sizeof kNames[0];

struct Made {
  ifaddrs entry;
  sockaddr_storage address;
  sockaddr_storage mask;
};

// Returns false if `text` is no address.
bool parse(const char* text, sockaddr_storage& address, sockaddr_storage& mask) {
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  if (::inet_pton(AF_INET, text, &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    std::memcpy(&address, &ipv4, sizeof ipv4);
    const bool is_loopback = (ntohl(ipv4.sin_addr.s_addr) >> 24) == 127;
    ipv4.sin_addr.s_addr = htonl(is_loopback ? 0xff000000u : 0xffffffffu);
    std::memcpy(&mask, &ipv4, sizeof ipv4);
    return true;
  }
  if (::inet_pton(AF_INET6, text, &ipv6.sin6_addr) != 1) return false;
  ipv6.sin6_family = AF_INET6;
  std::memcpy(&address, &ipv6, sizeof ipv6);
  std::memset(&ipv6.sin6_addr, 0xff, sizeof ipv6.sin6_addr);
  std::memcpy(&mask, &ipv6, sizeof ipv6);
  return true;
}

bool has(const ifaddrs* list, const sockaddr_storage& address) {
  for (; list != nullptr; list = list->ifa_next) {
    if (list->ifa_addr == nullptr || list->ifa_addr->sa_family != address.ss_family) continue;
    if (address.ss_family == AF_INET) {
      if (std::memcmp(&reinterpret_cast<const sockaddr_in*>(list->ifa_addr)->sin_addr,
                      &reinterpret_cast<const sockaddr_in&>(address).sin_addr,
                      sizeof(in_addr)) == 0) {
        return true;
      }
    } else if (std::memcmp(&reinterpret_cast<const sockaddr_in6*>(list->ifa_addr)->sin6_addr,
                           &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr,
                           sizeof(in6_addr)) == 0) {
      return true;
    }
  }
  return false;
}

// Copies the next line that an address can be; returns false at the end of the text.
bool next_line(const char*& at, const char* end, char (&line)[kAddressSize]) {
  while (at < end) {
    const std::size_t rest = static_cast<std::size_t>(end - at);
    const auto* stop = static_cast<const char*>(std::memchr(at, '\n', rest));
    const std::size_t size = stop != nullptr ? static_cast<std::size_t>(stop - at) : rest;
    const char* const start = at;
    at += size + 1;
    if (size == 0 || size >= kAddressSize) continue;
    std::memcpy(line, start, size);
    line[size] = '\0';
    return true;
  }
  return false;
}

}  // namespace

ifaddrs* make_entries(const char* text, std::size_t length, const ifaddrs* known, bool& failed) {
  failed = false;
  Made found[kMostEntries]{};
  std::size_t count = 0;
  char line[kAddressSize];
  for (const char* at = text; count < kMostEntries && next_line(at, text + length, line);) {
    Made& made = found[count];
    if (parse(line, made.address, made.mask) && !has(known, made.address)) ++count;
  }
  if (count == 0) return nullptr;
  auto* const block = static_cast<Made*>(std::malloc(count * sizeof(Made)));
  failed = block == nullptr;
  if (failed) return nullptr;
  std::memcpy(block, found, count * sizeof(Made));
  for (std::size_t i = 0; i < count; ++i) {
    ifaddrs& entry = block[i].entry;
    entry.ifa_next = i + 1 < count ? &block[i + 1].entry : nullptr;
    entry.ifa_name = const_cast<char*>(kNames[i]);
    entry.ifa_flags = IFF_UP | IFF_RUNNING;
    entry.ifa_addr = reinterpret_cast<sockaddr*>(&block[i].address);
    entry.ifa_netmask = reinterpret_cast<sockaddr*>(&block[i].mask);
  }
  return &block->entry;
}

bool is_made_entry(const ifaddrs& entry) {
  const char* const name = entry.ifa_name;
  return name >= kNames[0] && name < kNames[kMostEntries - 1] + kLongestName;
}

}  // namespace ib::host_abi::preload
