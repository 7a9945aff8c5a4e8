// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib_net/host_network.h"

#include "linux/net/in_namespace_test.h"
#include "linux/process/client_handle.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ib::softib_net {
namespace {

using os::net::LinkMtu;
using os::net::Netlink;
using os::net::NodeEvent;
using softib::PlanEntry;
using softib::PlanKind;

constexpr std::uint64_t kGuid = 0x0200000000000007;

// A file of /proc, the lines that have a word.
std::string lines_with(const std::string& file, const std::string& word) {
  std::ifstream lines("/proc/self/net/" + file);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (line.find(word) != std::string::npos) text += line + "\n";
  return text;
}

std::size_t count_of(const std::string& text, char letter) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), letter));
}

// The addresses and routes of the plan that ib0 has, in one line.
std::string state_of_ib0() {
  const std::string ipv6 = lines_with("if_inet6", "ib0");
  std::string text;
  if (ipv6.find("fe800000000000000000000000000007") != std::string::npos) text += "link-local ";
  if (ipv6.find("fd690000000000000000000000000001") != std::string::npos) text += "fd69::1 ";
  if (count_of(ipv6, '\n') > 2) text += "others ";
  if (!lines_with("fib_trie", "|-- 10.1.0.1").empty()) text += "10.1.0.1 ";
  // The network 10.2.0.0/16, little-endian.
  if (!lines_with("route", "ib0\t0000020A").empty()) text += "10.2.0.0/16 ";
  return text;
}

// A network with ib0 in a namespace of its own.
struct Network {
  std::array<platform::NativeHandle, 2> ends;
  std::unique_ptr<HostNetwork> host;
  std::optional<Netlink> netlink;
  int index = 0;

  std::string make() {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0)
      return "socketpair";
    ends = {os::own_descriptor(pair[0]), os::own_descriptor(pair[1])};
    NodeStart start;
    start.plan = {PlanEntry{verbs::ipv4_gid(0x0a010001), 24, PlanKind::Address, 0},
                  PlanEntry{verbs::make_gid(0xfd69ull << 48, 1), 64, PlanKind::Address, 0},
                  PlanEntry{verbs::ipv4_gid(0x0a020000), 16, PlanKind::OnLink, 0}};
    std::string reason;
    auto made = HostNetwork::create(std::move(start), std::move(ends[0]), reason);
    auto opened = Netlink::open();
    if (!made || !opened) return "no network: " + reason;
    host = *std::move(made);
    netlink = *std::move(opened);
    auto ib0 = host->add({.mac = {2, 0, 0, 0, 0, 1}, .port_guid = kGuid}, reason);
    if (!ib0) return reason;
    index = (*ib0)->index();
    return "";
  }

  // As a user would, and then the driver looks at its events.
  std::string change(const Netlink::LinkChange& wanted) {
    if (netlink->change_link(index, wanted) != Status::Ok) return "refused " + netlink->text();
    pollfd waiting{host->events(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) != 1) return "no event";
    if (host->take_event() != NodeEvent::None) return "an event for the driver";
    return state_of_ib0();
  }
};

std::string in_network(const std::function<std::string(Network&)>& body) {
  return os::net::in_network_namespace([&]() -> std::string {
    Network network;
    const std::string flaw = network.make();
    return flaw.empty() ? body(network) : flaw;
  });
}

constexpr const char* kAll = "link-local fd69::1 10.1.0.1 10.2.0.0/16 ";

TEST(HostNetwork, AnInterfaceThatWasSetDownHasItsAddressesAndRoutesAgain) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network([](Network&) { return state_of_ib0(); }), kAll);
  EXPECT_EQ(in_network([](Network& network) { return network.change({.up = false}); }),
            "10.1.0.1 ");
  EXPECT_EQ(in_network([](Network& network) {
              return network.change({.up = false}) + network.change({.up = true});
            }),
            "10.1.0.1 " + std::string(kAll));
}

TEST(HostNetwork, DownAndUpAtOnceIsSeenToo) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network([](Network& network) -> std::string {
              (void)network.netlink->change_link(network.index, {.up = false});
              return network.change({.up = true});
            }),
            kAll);
}

TEST(HostNetwork, AnMtuTooSmallForIpv6TakesItsAddressesOnlyWhileItIsSet) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network([](Network& network) { return network.change({.mtu = LinkMtu{1000}}); }),
            "10.1.0.1 10.2.0.0/16 ");
  const std::string again = in_network([](Network& network) {
    return network.change({.mtu = LinkMtu{1000}}) + network.change({.mtu = LinkMtu{1500}});
  });
  EXPECT_NE(again.find("link-local fd69::1 "), std::string::npos) << again;
}

}  // namespace
}  // namespace ib::softib_net
