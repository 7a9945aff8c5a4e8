// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/subnet/lids.h"

#include <gtest/gtest.h>

namespace ib::sm {
namespace {

// A switch and adapters at it, whose ports have the LIDs that a test gives them.
struct Star {
  Subnet subnet;
  Problems problems;
  Lids lids;
  std::vector<std::uint32_t> ports;

  explicit Star(std::initializer_list<int> had) {
    mad::NodeInfo info;
    info.node_type = 2;
    info.num_ports = 200;
    info.node_guid = 1;
    const std::uint32_t hub = subnet.add(info);
    subnet.port(subnet.port_of(hub, 0)).is_known = true;
    subnet.port(subnet.port_of(hub, 0)).guid = 1;
    std::uint8_t number = 0;
    for (const int lid : had) {
      info.node_type = 1;
      info.num_ports = 1;
      info.node_guid = 100u + ++number;
      const std::uint32_t port = subnet.node(subnet.add(info)).first_port;
      Port& at = subnet.port(port);
      at.is_known = true;
      at.guid = info.node_guid;
      at.info.lid = static_cast<std::uint16_t>(lid);
      subnet.connect(port, subnet.port_of(hub, number));
      ports.push_back(port);
    }
    subnet.set_own_port(ports[0]);
  }
  std::vector<int> assign(std::uint8_t lmc = 0) {
    lids.assign(subnet, lmc, problems);
    std::vector<int> result;
    for (const std::uint32_t port : ports) result.push_back(subnet.port(port).lid);
    return result;
  }
};

TEST(Lids, PortsKeepThoseThatNoOtherHas) {
  Star star({7, 9, 7, 0, 0xc000});
  EXPECT_EQ(star.assign(), (std::vector<int>{7, 9, 2, 3, 4}));  // the switch has LID 1
  EXPECT_EQ(star.lids.top(), 9);
}

TEST(Lids, WithAnLmcEachHasARangeOfItsOwn) {
  Star star({8, 10, 0});
  EXPECT_EQ(star.assign(2), (std::vector<int>{8, 4, 12}));
}

TEST(Lids, OfTwoWithTheSameTheOneKeepsItThatWasGivenIt) {
  Star star({0, 0});
  const auto first = star.assign();
  for (const std::uint32_t port : star.ports) {
    star.subnet.port(port).info.lid = star.subnet.port(port).lid;
  }
  star.subnet.port(star.ports[0]).info.lid = static_cast<std::uint16_t>(first[1]);
  EXPECT_EQ(star.assign(), first);
}

TEST(Lids, APortThatComesBackHasTheLidItHad) {
  Star star({0, 0, 0});
  const auto first = star.assign();
  const std::uint32_t hub = star.subnet.port(star.ports[1]).peer;
  star.subnet.disconnect(star.ports[1]);
  EXPECT_EQ(star.assign()[1], 0);
  star.subnet.connect(star.ports[1], hub);
  EXPECT_EQ(star.assign(), first);
}

}  // namespace
}  // namespace ib::sm
