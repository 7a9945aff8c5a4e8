// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/names/interface_list.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace ib::host_abi::preload {
namespace {

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                sizeof text);
  } else {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                sizeof text);
  }
  return text;
}

// "name address/mask" of each entry.
std::vector<std::string> entries(const std::string& text, const ifaddrs* known = nullptr) {
  bool failed = true;
  ifaddrs* const list = make_entries(text.data(), text.size(), known, failed);
  EXPECT_FALSE(failed);
  std::vector<std::string> rows;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    EXPECT_TRUE(is_made_entry(*at));
    EXPECT_EQ(at->ifa_flags, unsigned{IFF_UP | IFF_RUNNING});
    rows.push_back(std::string(at->ifa_name) + " " + text_of(at->ifa_addr) + "/" +
                   text_of(at->ifa_netmask));
  }
  std::free(list);
  return rows;
}

using Rows = std::vector<std::string>;

TEST(InterfaceList, AnAddressWithoutInterfaceGetsOne) {
  EXPECT_EQ(entries("127.77.0.1\nfd00:77::1\n"),
            (Rows{"softib0 127.77.0.1/255.0.0.0",
                  "softib1 fd00:77::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}));
}

TEST(InterfaceList, AnAddressOfAnInterfaceIsNotListedTwice) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x0a000001);
  ifaddrs known{};
  known.ifa_name = const_cast<char*>("eth0");
  known.ifa_addr = reinterpret_cast<sockaddr*>(&address);
  EXPECT_FALSE(is_made_entry(known));
  EXPECT_EQ(entries("10.0.0.1\n", &known), Rows{});
  EXPECT_EQ(entries("10.0.0.1\n10.0.0.2\n", &known), Rows{"softib0 10.0.0.2/255.255.255.255"});
}

TEST(InterfaceList, ThereAreEightAtMost) {
  std::string text;
  for (int i = 1; i < 20; ++i) text += "10.0.0." + std::to_string(i) + "\n";
  EXPECT_EQ(entries(text).size(), 8u);
}

TEST(InterfaceList, DamagedTextGivesNothing) {
  EXPECT_EQ(entries(""), Rows{});
  EXPECT_EQ(entries("\n\n10.0.0\n" + std::string(2000, '1') + "\nx\n"), Rows{});
  EXPECT_EQ(entries("10.0.0.1"), Rows{"softib0 10.0.0.1/255.255.255.255"}) << "no end of line";
}

}  // namespace
}  // namespace ib::host_abi::preload
