// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/net/tap.h"

#include "linux/net/in_namespace_test.h"
#include "linux/net/netlink.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

namespace ib::os::net {
namespace {

constexpr MacAddress kMac{2, 1, 2, 3, 4, 5};

// An interface that is up, with carrier and an address.
struct Port {
  std::optional<Tap> tap;
  std::optional<Netlink> netlink;
  int index = 0;

  std::string make(const std::string& name = "ib0") {
    std::string reason;
    auto made = Tap::create({.name = name}, reason);
    if (!made) return reason;
    tap = *std::move(made);
    auto opened = Netlink::open();
    if (!opened) return "no netlink";
    netlink = *std::move(opened);
    index = index_of(name);
    if (netlink->change_link(index, {.up = true, .mtu = kMaxMtu, .mac = kMac}) != Status::Ok)
      return "link: " + netlink->text();
    if (netlink->add_address(index, {verbs::ipv4_gid(0x0a010001), 24}) != Status::Ok)
      return "address: " + netlink->text();
    return tap->set_carrier(true) == Status::Ok ? "" : "carrier";
  }
};

ifreq request_about(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  return request;
}

bool send_datagram(std::uint32_t to, std::size_t size) {
  const auto socket = own_descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(to);
  const std::vector<char> bytes(size, 'x');
  return ::sendto(socket.get(), bytes.data(), bytes.size(), 0,
                  reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) == static_cast<ssize_t>(size);
}

TEST(Tap, HasCarrierMtuAndMacAddressAsTheyWereSet) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              Port port;
              if (const std::string flaw = port.make(); !flaw.empty()) return flaw;
              if (state_of_interface("ib0") != "carrier") return "no carrier";
              const auto socket = own_descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
              ifreq request = request_about("ib0");
              if (::ioctl(socket.get(), SIOCGIFMTU, &request) != 0 || request.ifr_mtu != 65520)
                return "mtu";
              if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0 ||
                  std::memcmp(request.ifr_hwaddr.sa_data, kMac.data(), kMac.size()) != 0)
                return "mac";
              if (port.tap->set_carrier(false) != Status::Ok) return "carrier off";
              return state_of_interface("ib0") == "no carrier" ? "" : "carrier without it";
            }),
            "");
}

TEST(Tap, GivesFramesOfTheKernelWithTheirHeader) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              Port port;
              if (const std::string flaw = port.make(); !flaw.empty()) return flaw;
              if (!send_datagram(0x0a010002, 100)) return "sendto";
              // The kernel looks for the neighbour first.
              std::vector<unsigned char> frame(kMaxFrameBytes);
              for (;;) {
                pollfd ready{port.tap->descriptor(), POLLIN, 0};
                if (::poll(&ready, 1, 10'000) != 1) return "no frame";
                const ssize_t got = ::read(port.tap->descriptor(), frame.data(), frame.size());
                if (got < 0) return std::strerror(errno);
                const std::size_t type = kVnetHeaderBytes + 12;
                const bool is_arp = frame[type] == 8 && frame[type + 1] == 6;
                if (!is_arp) continue;
                const bool from_us =
                    std::memcmp(&frame[kVnetHeaderBytes + 6], kMac.data(), kMac.size()) == 0;
                return from_us ? "" : "from another MAC address";
              }
            }),
            "");
}

TEST(Tap, WithoutAFrameReadingFailsAtOnce) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              std::string reason;
              auto tap = Tap::create({.name = "ib7"}, reason);
              if (!tap) return reason;
              std::array<char, 64> frame{};
              if (::read(tap->descriptor(), frame.data(), frame.size()) >= 0) return "a frame";
              return errno == EAGAIN || errno == EIO ? "" : std::strerror(errno);
            }),
            "");
}

TEST(Tap, ANameThatIsTakenIsSaidToBe) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              std::string reason;
              auto tap = Tap::create({.name = "ib0"}, reason);
              if (!tap) return reason;
              if (Tap::create({.name = "ib0"}, reason).error() != Status::AlreadyExists)
                return "twice";
              if (reason != "there is an interface ib0 already") return reason;
              if (Tap::create({.name = "lo"}, reason).error() != Status::AlreadyExists)
                return "lo: " + reason;
              const auto wrong = Tap::create({.name = "a-name-too-long-to-be"}, reason).error();
              return wrong == Status::InvalidParameter ? "" : reason;
            }),
            "");
}

TEST(Tap, GoesWithItsDescriptorUnlessItIsKept) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              std::string reason;
              { auto tap = Tap::create({.name = "ib0"}, reason); }
              if (index_of("ib0") != 0) return "still there";
              { auto tap = Tap::create({.name = "ib1", .persist = true}, reason); }
              const int before = index_of("ib1");
              if (before == 0) return "not kept";
              {
                auto tap = Tap::create({.name = "ib1", .persist = true}, reason);
                if (!tap) return reason;
                if (index_of("ib1") != before) return "another one";
                if (tap->discard() != Status::Ok) return "discard";
              }
              return index_of("ib1") == 0 ? "" : "not discarded";
            }),
            "");
}

TEST(Netlink, AddressesAndRoutesMayBeThereAlready) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              Port port;
              if (const std::string flaw = port.make(); !flaw.empty()) return flaw;
              Netlink& netlink = *port.netlink;
              const IpPrefix address{verbs::ipv4_gid(0x0a010001), 24};
              if (netlink.add_address(port.index, address) != Status::Ok) return "address again";
              const IpPrefix route{verbs::ipv4_gid(0xc0000200), 24};
              for (int i = 0; i < 2; ++i) {
                if (netlink.add_route(port.index, route, RouteKind::OnLink) != Status::Ok)
                  return "route: " + netlink.text();
              }
              // 127.0.0.0/8 is the machine itself, but for this part of it.
              const IpPrefix nowhere{verbs::ipv4_gid(0x7f976000), 19};
              if (!send_datagram(0x7f976001, 1)) return "loopback";
              if (netlink.add_route(0, nowhere, RouteKind::Unreachable) != Status::Ok)
                return "unreachable: " + netlink.text();
              if (send_datagram(0x7f976001, 1) || errno != EHOSTUNREACH) return "still reachable";
              if (netlink.add_address(9999, address) == Status::Ok) return "of no interface";
              return netlink.error() == ENODEV ? "" : "not ENODEV";
            }),
            "");
}

}  // namespace
}  // namespace ib::os::net
