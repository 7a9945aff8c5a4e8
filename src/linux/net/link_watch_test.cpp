// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/net/link_watch.h"

#include "linux/net/in_namespace_test.h"
#include "linux/net/netlink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ib::os::net {
namespace {

// The last change of an interface among those that wait: "up 1500".
std::string last_change(LinkWatch& watch, int index) {
  const auto changes = watch.take();
  if (!changes) return "lost";
  const auto last = std::find_if(changes->rbegin(), changes->rend(),
                                 [index](const auto& one) { return one.index == index; });
  if (last == changes->rend()) return "none";
  return (last->up ? "up " : "down ") + std::to_string(last->mtu.bytes) +
         (last->can_have_ipv6() ? " ipv6" : "");
}

TEST(LinkWatch, TellsWhatBecomesOfAnInterface) {
  IB_NEED_NETWORK_NAMESPACES();
  const auto body = []() -> std::string {
    auto watch = LinkWatch::open();
    auto netlink = Netlink::open();
    std::string reason;
    auto tap = Tap::create({.name = "ib0"}, reason);
    if (!watch || !netlink || !tap) return "no watch, netlink or TAP: " + reason;
    const int index = index_of("ib0");
    std::string text;
    const auto change = [&](const Netlink::LinkChange& wanted) {
      if (netlink->change_link(index, wanted) != Status::Ok) text += netlink->text();
      text += last_change(*watch, index) + "; ";
    };
    change({.up = true, .mtu = LinkMtu{2044}});
    change({.mtu = LinkMtu{1279}});
    change({.mtu = kLeastIpv6Mtu});
    change({.up = false});
    return text + last_change(*watch, index);
  };
  EXPECT_EQ(in_network_namespace(body), "up 2044 ipv6; up 1279; up 1280 ipv6; down 1280; none");
}

TEST(LinkWatch, SaysThatTheKernelHasDroppedChanges) {
  IB_NEED_NETWORK_NAMESPACES();
  const auto body = []() -> std::string {
    auto watch = LinkWatch::open();
    auto netlink = Netlink::open();
    std::string reason;
    auto tap = Tap::create({.name = "ib0"}, reason);
    if (!watch || !netlink || !tap) return "no watch, netlink or TAP: " + reason;
    const int least = 1;  // the kernel makes some kilobytes of it
    ::setsockopt(watch->descriptor(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    const int index = index_of("ib0");
    for (std::uint32_t mtu = 1300; mtu < 1400; ++mtu) {
      (void)netlink->change_link(index, {.mtu = LinkMtu{mtu}});
    }
    const bool lost = !watch->take();
    (void)netlink->change_link(index, {.mtu = LinkMtu{1500}});
    return (lost ? "lost, then " : "not lost, then ") + last_change(*watch, index);
  };
  EXPECT_EQ(in_network_namespace(body), "lost, then down 1500");
}

}  // namespace
}  // namespace ib::os::net
