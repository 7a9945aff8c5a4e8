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

// ib0 in a network namespace, and who watches it.
struct Watched {
  std::string reason;
  Result<LinkWatch> watch = LinkWatch::open();
  Result<Netlink> netlink = Netlink::open();
  Result<Tap> tap = Tap::create({.name = "ib0"}, reason);
  int index = index_of("ib0");

  bool is_there() const { return watch && netlink && tap; }
};

TEST(LinkWatch, TellsWhatBecomesOfAnInterface) {
  IB_NEED_NETWORK_NAMESPACES();
  const auto body = []() -> std::string {
    Watched w;
    if (!w.is_there()) return "no watch, netlink or TAP: " + w.reason;
    std::string text;
    const auto change = [&](const Netlink::LinkChange& wanted) {
      if (w.netlink->change_link(w.index, wanted) != Status::Ok) text += w.netlink->text();
      text += last_change(*w.watch, w.index) + "; ";
    };
    change({.up = true, .mtu = LinkMtu{2044}});
    change({.mtu = LinkMtu{1279}});
    change({.mtu = kLeastIpv6Mtu});
    change({.up = false});
    return text + last_change(*w.watch, w.index);
  };
  EXPECT_EQ(in_network_namespace(body), "up 2044 ipv6; up 1279; up 1280 ipv6; down 1280; none");
}

TEST(LinkWatch, SaysThatTheKernelHasDroppedChanges) {
  IB_NEED_NETWORK_NAMESPACES();
  const auto body = []() -> std::string {
    Watched w;
    if (!w.is_there()) return "no watch, netlink or TAP: " + w.reason;
    const int least = 1;  // the kernel makes some kilobytes of it
    ::setsockopt(w.watch->descriptor(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    for (std::uint32_t mtu = 1300; mtu < 1400; ++mtu) {
      (void)w.netlink->change_link(w.index, {.mtu = LinkMtu{mtu}});
    }
    const bool lost = !w.watch->take();
    (void)w.netlink->change_link(w.index, {.mtu = LinkMtu{1500}});
    return (lost ? "lost, then " : "not lost, then ") + last_change(*w.watch, w.index);
  };
  EXPECT_EQ(in_network_namespace(body), "lost, then down 1500");
}

}  // namespace
}  // namespace ib::os::net
