// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/tree_text.h"

#include "fabric/topology/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ib::fabric {
namespace {

Topology made(const char* preset) {
  std::string reason;
  auto topology = preset_topology(preset, reason);
  EXPECT_TRUE(topology) << reason;
  return topology ? *std::move(topology) : Topology{};
}

TEST(TreeText, AFatTreeBeginsWithItsSpines) {
  EXPECT_EQ(topology_tree(made("fat-tree:hcas=4,ports=4")),
            "switch-2-0, 4 ports\n"
            "  [1] switch-1-0[3] 4xEDR\n"
            "    [1] node0 softib0[1] 4xEDR\n"
            "    [2] node1 softib0[1] 4xEDR\n"
            "    also [4] switch-2-1[1] 4xEDR\n"
            "  [2] switch-1-1[3] 4xEDR\n"
            "    [1] node2 softib0[1] 4xEDR\n"
            "    [2] node3 softib0[1] 4xEDR\n"
            "    also [4] switch-2-1[2] 4xEDR\n"
            "switch-2-1, 4 ports\n"
            "  also [1] switch-1-0[4] 4xEDR, [2] switch-1-1[4] 4xEDR\n");
}

TEST(TreeText, ATorusIsAListOfSwitches) {
  EXPECT_EQ(topology_tree(made("torus:2x1,speed=HDR")),
            "switch-0-0, 5 ports\n"
            "  [1] node0 softib0[1] 4xHDR\n"
            "  also [2] switch-1-0[3] 4xHDR\n"
            "switch-1-0, 5 ports\n"
            "  [1] node1 softib0[1] 4xHDR\n"
            "  also [3] switch-0-0[2] 4xHDR\n");
}

TEST(TreeText, CablesWithoutSwitchesAndElementsWithoutCablesAreShown) {
  Topology topology = made("back-to-back");
  topology.cables[0].is_up = false;
  topology.elements.emplace_back().node_guid = 0x77;
  EXPECT_EQ(topology_tree(topology),
            "node0 softib0, 1 port\n"
            "  also [1] node1 softib0[1] 4xEDR down\n"
            "node1 softib0, 1 port\n"
            "  also [1] node0 softib0[1] 4xEDR down\n"
            "0x0000000000000077, 1 port\n");
  EXPECT_EQ(topology_summary(topology), "3 HCAs, 0 switches, 1 cable, 1 of them down");
}

TEST(TreeText, TheTableHasARowForEachElement) {
  Topology topology = made("star:2");
  topology.elements[2].lids = {5};
  topology.elements[1].is_router = true;
  EXPECT_EQ(topology_table(topology),
            "NAME           KIND    NODE GUID           PORTS  CABLES  LID\n"
            "node0 softib0  HCA     0x0253460000000000      1       1  -\n"
            "node1 softib0  router  0x0253460000010000      1       1  -\n"
            "switch-0       switch  0x0253468000000000      2       2  5\n");
  EXPECT_EQ(topology_summary(topology), "1 HCA, 1 switch, 1 router, 2 cables");
}

TEST(TreeText, ALongLineOfSwitchesDoesNotLeaveThePage) {
  Topology topology = made("star:1");
  topology.elements[1].ports = 2;
  for (std::uint32_t i = 2; i < 100; ++i) {
    topology.elements.push_back(topology.elements[1]);
    topology.elements.back().node_guid = switch_guid(i);
    topology.cables.push_back({{i - 1, 2}, {i, 1}});
  }
  const std::string text = topology_tree(topology);
  EXPECT_EQ(std::count(text.begin(), text.end(), '['), 2 * 99 + 2 * 5) << "five roots more";
  EXPECT_EQ(text.find(std::string(40, ' ')), std::string::npos);
}

}  // namespace
}  // namespace ib::fabric
