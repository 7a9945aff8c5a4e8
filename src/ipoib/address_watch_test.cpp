// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/address_watch.h"

#include "linux/net/in_namespace_test.h"
#include "linux/net/netlink.h"
#include "linux/net/tap.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <string>

namespace ib::ipoib::driver {
namespace {

constexpr int kPatienceMs = 10'000;

// Of an IPv6 address rtnetlink tells its listeners some time after it has answered the request.
bool becomes_readable(const AddressWatch& watch) {
  pollfd waiting{watch.descriptor(), POLLIN, 0};
  return ::poll(&waiting, 1, kPatienceMs) == 1;
}

std::string watch_an_interface() {
  std::string reason;
  const auto tap = os::net::Tap::create({.name = "ib0"}, reason);
  auto netlink = os::net::Netlink::open();
  if (!tap || !netlink) return "no interface: " + reason;
  AddressWatch watch;
  if (watch.open() != Status::Ok) return "no watch";
  if (watch.take()) return "a change before the first one";
  const int index = os::net::index_of("ib0");
  const verbs::Gid ipv4 = verbs::ipv4_gid(0x0a000001);
  const verbs::Gid ipv6 = verbs::make_gid(0xfd00'0000'0000'0000, 5);
  if (netlink->add_address(index, {ipv4, 20}) != Status::Ok) return "no IPv4 address";
  if (!becomes_readable(watch) || !watch.take()) return "an IPv4 address is no change";
  if (netlink->add_address(index, {ipv6, 64}) != Status::Ok) return "no IPv6 address";
  if (!becomes_readable(watch) || !watch.take()) return "an IPv6 address is no change";
  const AddressesByInterface all = addresses_by_interface();
  const auto found = all.find("ib0");
  if (found == all.end() || found->second.size() != 2) return "not both addresses";
  const auto& first = found->second[0];
  const auto& second = found->second[1];
  if (first.ip != ipv4 || first.bits != 20) return "not the IPv4 address and its network";
  return second.ip == ipv6 && second.bits == 64 ? "" : "not the IPv6 address and its network";
}

TEST(AddressWatch, SaysWhenAddressesChangeAndWhichThereAre) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(os::net::in_network_namespace(watch_an_interface), "");
}

TEST(AddressWatch, ANetworkHasANumber) {
  EXPECT_NE(own_network_number(), 0u);
}

}  // namespace
}  // namespace ib::ipoib::driver
