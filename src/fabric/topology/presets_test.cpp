// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/presets.h"

#include "fabric/addresses.h"
#include "fabric/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace ib::fabric {
namespace {

using testing::HasSubstr;

Topology made(std::string_view text) {
  std::string reason;
  auto topology = preset_topology(text, reason);
  EXPECT_TRUE(topology) << text << ": " << reason;
  return topology ? *std::move(topology) : Topology{};
}

std::string refusal(std::string_view text, Status expected = Status::InvalidParameter) {
  std::string reason;
  EXPECT_EQ(preset_topology(text, reason).error(), expected) << text;
  return reason;
}

std::size_t switches(const Topology& topology) {
  return static_cast<std::size_t>(
      std::count_if(topology.elements.begin(), topology.elements.end(),
                    [](const TopologyElement& element) { return element.is_switch(); }));
}
std::size_t hcas(const Topology& topology) {
  return topology.elements.size() - switches(topology);
}

std::uint32_t find(const Topology& topology, std::string_view description) {
  for (std::uint32_t i = 0; i < topology.elements.size(); ++i) {
    if (topology.elements[i].description == description) return i;
  }
  ADD_FAILURE() << "no " << description;
  return 0;
}

// "switch-1-0:3" for the other end of a cable; "" if there is none.
std::string peer(const Topology& topology, std::string_view description, std::uint32_t port) {
  const TopologyEnd end{find(topology, description), port};
  for (const TopologyCable& cable : topology.cables) {
    if (cable.a != end && cable.b != end) continue;
    const TopologyEnd other = cable.a == end ? cable.b : cable.a;
    return topology.elements[other.element].description + ":" + std::to_string(other.port);
  }
  return "";
}

// The elements that each one has a cable to, each cable once.
std::vector<std::vector<std::uint32_t>> neighbours(const Topology& topology) {
  std::vector<std::vector<std::uint32_t>> result(topology.elements.size());
  for (const TopologyCable& cable : topology.cables) {
    result[cable.a.element].push_back(cable.b.element);
    result[cable.b.element].push_back(cable.a.element);
  }
  return result;
}

// The number of cables to the farthest element; 0 if one cannot be reached.
std::uint32_t distance(const Topology& topology, std::uint32_t from) {
  const auto next = neighbours(topology);
  std::vector<std::uint32_t> hops(next.size(), kNoIndex);
  std::vector<std::uint32_t> queue{from};
  hops[from] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::uint32_t other : next[queue[i]]) {
      if (hops[other] != kNoIndex) continue;
      hops[other] = hops[queue[i]] + 1;
      queue.push_back(other);
    }
  }
  return queue.size() == next.size() ? hops[queue.back()] : 0;
}

TEST(Presets, TheirNodesHaveTheGuidsThatTheyHaveWithoutATopology) {
  const Topology topology = made("star:12");
  Shape shape;
  shape.nodes.clear();
  for (int i = 0; i < 12; ++i) shape.nodes.push_back("node" + std::to_string(i));
  const auto fabric = Fabric::create(shape);
  ASSERT_TRUE(fabric);
  for (std::size_t i = 0; i < 12; ++i) {
    const Hca& hca = fabric->nodes()[i].hcas[0];
    EXPECT_EQ(topology.elements[i].node_guid, hca.node_guid);
    EXPECT_EQ(end_port_guid(topology.elements[i], 0), hca.ports[0].guid);
    EXPECT_EQ(topology.elements[i].description, fabric->nodes()[i].name + " " + hca.name);
  }
}

TEST(Presets, GuidsOfSwitchesAreThoseOfNoNode) {
  EXPECT_GT(switch_guid(0), position_guid(kMaxTopologyLids, kMaxHcasPerNode, 255));
  EXPECT_LT(switch_guid(kMaxTopologyLids), 0x0253470000000000u);
  EXPECT_NE(switch_guid(0), switch_guid(1));
}

TEST(Presets, BackToBackIsOneCable) {
  const Topology topology = made("back-to-back");
  EXPECT_EQ(topology.elements.size(), 2u);
  EXPECT_EQ(topology.cables, (std::vector<TopologyCable>{{{0, 1}, {1, 1}}}));
}

TEST(Presets, AStarHasOneSwitch) {
  const Topology topology = made("star:254");
  EXPECT_EQ(hcas(topology), 254u);
  EXPECT_EQ(switches(topology), 1u);
  EXPECT_EQ(peer(topology, "node253 softib0", 1), "switch-0:254");
  EXPECT_EQ(refusal("star:255"), "topology star: the number of HCAs is '255'; it can be 1 to 254");
  EXPECT_THAT(refusal("star:0"), HasSubstr("is '0'; it can be 1 to 254"));
  EXPECT_THAT(refusal("star"), HasSubstr("is ''; it can be 1 to 254"));
  EXPECT_THAT(refusal("star:x"), HasSubstr("is 'x'"));
  EXPECT_THAT(refusal("star:4294967297"), HasSubstr("is '4294967297'"));
  EXPECT_EQ(refusal("star:4,hosts=2"),
            "topology star: it has no argument 'hosts'; it has: width, speed");
  EXPECT_THAT(refusal("star:4,5"), HasSubstr("'5' has no key"));
  EXPECT_THAT(refusal("star:4,width=4x,width=4x"), HasSubstr("'width' is given twice"));
}

TEST(Presets, CablesHaveAWidthAndASpeed) {
  EXPECT_EQ(made("star:2").cables[1].width, 2);
  EXPECT_EQ(made("star:2").cables[1].speed, 32);
  const Topology topology = made("star:2,speed=hdr,width=2X");
  EXPECT_EQ(topology.cables[1].width, 16);
  EXPECT_EQ(topology.cables[1].speed, 64);
  EXPECT_EQ(refusal("star:2,speed=fast"),
            "topology star: speed is 'FAST'; it can be one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, "
            "NDR");
  EXPECT_THAT(refusal("back-to-back:width=3x"), HasSubstr("one of 1x, 4x, 8x, 12x, 2x"));
  EXPECT_THAT(refusal("back-to-back:speed="), HasSubstr("'speed=' has no value"));
}

TEST(Presets, AFatTreeOfTwoLevels) {
  const Topology topology = made("fat-tree:levels=2,ports=36");
  EXPECT_EQ(hcas(topology), 648u);
  EXPECT_EQ(switches(topology), 36u + 18u);
  EXPECT_EQ(topology.cables.size(), 648u + 36u * 18u);
  EXPECT_EQ(distance(topology, 0), 4u);
  EXPECT_EQ(peer(topology, "node0 softib0", 1), "switch-1-0:1");
  EXPECT_EQ(peer(topology, "node19 softib0", 1), "switch-1-1:2");
  EXPECT_EQ(peer(topology, "switch-1-3", 20), "switch-2-1:4");
  EXPECT_EQ(made("fat-tree:hcas=648,ports=36"), topology);
  EXPECT_EQ(made("fat-tree:hcas=648"), topology) << "36 ports unless given";
}

TEST(Presets, AFatTreeOfThreeLevels) {
  const Topology topology = made("fat-tree:levels=3,ports=8");
  EXPECT_EQ(hcas(topology), 128u);
  EXPECT_EQ(switches(topology), 5u * 8 * 8 / 4);
  EXPECT_EQ(topology.cables.size(), 3u * 128u);
  EXPECT_EQ(distance(topology, 0), 6u);
  EXPECT_EQ(peer(topology, "switch-1-5", 6), "switch-2-5:2");
  EXPECT_EQ(peer(topology, "switch-2-5", 6), "switch-3-5:2");
  EXPECT_EQ(made("fat-tree:hcas=128,ports=8"), topology) << "two levels carry 32";
}

TEST(Presets, AFatTreeMayBePartlyFilled) {
  const Topology two = made("fat-tree:hcas=20,ports=8");
  EXPECT_EQ(switches(two), 5u + 4u);
  EXPECT_EQ(distance(two, 0), 4u);
  const Topology one = made("fat-tree:hcas=4,ports=8");
  EXPECT_EQ(switches(one), 1u) << "a leaf needs no spine";
  EXPECT_EQ(distance(one, 0), 2u);
  const Topology pod = made("fat-tree:hcas=10,ports=8,levels=3");
  EXPECT_EQ(switches(pod), 3u + 4u) << "one pod needs no spine";
  EXPECT_EQ(distance(pod, 0), 4u);
  const Topology large = made("fat-tree:hcas=8192,ports=36");
  EXPECT_EQ(hcas(large), 8192u);
  EXPECT_EQ(distance(large, 0), 6u);
  EXPECT_EQ(refusal("fat-tree:hcas=649,levels=2,ports=36"),
            "topology fat-tree: 2 levels of switches with 36 ports carry 648 HCAs, not 649; give "
            "more ports or levels=3");
  EXPECT_THAT(refusal("fat-tree:hcas=129,ports=8"), HasSubstr("3 levels"));
  EXPECT_THAT(refusal("fat-tree:hcas=8,ports=7"), HasSubstr("ports is 7; it must be even"));
  EXPECT_THAT(refusal("fat-tree"), HasSubstr("its size is missing"));
  EXPECT_THAT(refusal("fat-tree:levels=4"), HasSubstr("levels is '4'; it can be 2 to 3"));
  EXPECT_THAT(refusal("fat-tree:levels=3,ports=254", Status::LimitExceeded),
              HasSubstr("it has 4096766 HCAs and"));
}

TEST(Presets, ATorusHasASwitchAtEachPoint) {
  const Topology topology = made("torus:4x3x2,hosts=2");
  EXPECT_EQ(switches(topology), 24u);
  EXPECT_EQ(hcas(topology), 48u);
  EXPECT_EQ(topology.cables.size(), 48u + 24u + 24u + 12u) << "two switches have one cable";
  EXPECT_EQ(peer(topology, "switch-1-2-0", 3), "switch-2-2-0:4");
  EXPECT_EQ(peer(topology, "switch-3-2-0", 3), "switch-0-2-0:4") << "around";
  EXPECT_EQ(peer(topology, "switch-1-2-1", 5), "switch-1-0-1:6");
  EXPECT_EQ(peer(topology, "switch-1-2-0", 7), "switch-1-2-1:8");
  EXPECT_EQ(peer(topology, "switch-1-2-1", 7), "");
  EXPECT_EQ(distance(topology, 0), 2u + 2u + 1u + 1u);
  const Topology flat = made("torus:5x1");
  EXPECT_EQ(switches(flat), 5u);
  EXPECT_EQ(flat.cables.size(), 10u);
  for (const char* text : {"torus", "torus:4", "torus:4x", "torus:x4", "torus:4xx4", "torus:0x4",
                           "torus:2x2x2x2", "torus:4x4y", "torus:4x4,hosts=251"}) {
    EXPECT_THAT(refusal(text), HasSubstr("topology torus: ")) << text;
  }
  EXPECT_THAT(refusal("torus:49151x49151x49151", Status::LimitExceeded), HasSubstr("HCAs and"));
}

TEST(Presets, ADragonflyJoinsEachPairOfGroups) {
  const Topology topology = made("dragonfly:a=4,p=2,h=2");
  EXPECT_EQ(switches(topology), 9u * 4);
  EXPECT_EQ(hcas(topology), 9u * 4 * 2);
  EXPECT_EQ(topology.cables.size(), 72u + 9u * 6 + 9u * 8 / 2);
  EXPECT_LE(distance(topology, 0), 5u) << "in, local, global, local, out";
  EXPECT_EQ(peer(topology, "switch-0-1", 3), "switch-0-0:3");
  std::set<std::pair<std::uint32_t, std::uint32_t>> joined;
  for (const TopologyCable& cable : topology.cables) {
    if (cable.a.element < 72 || cable.b.element < 72) continue;
    const std::uint32_t one = (cable.a.element - 72) / 4;
    const std::uint32_t other = (cable.b.element - 72) / 4;
    if (one != other) {
      EXPECT_TRUE(joined.emplace(std::min(one, other), std::max(one, other)).second)
          << one << " " << other;
    }
  }
  EXPECT_EQ(joined.size(), 36u);
  EXPECT_EQ(made("dragonfly:a=4,p=2,h=2,groups=3").cables.size(), 24u + 3u * 6 + 3u * 4)
      << "four cables between each two";
  EXPECT_EQ(made("dragonfly:a=4,p=2,h=2,groups=2").cables.size(), 16u + 2u * 6 + 8u);
  EXPECT_EQ(made("dragonfly:a=4,p=2,h=2,groups=1").cables.size(), 8u + 6u);
  EXPECT_THAT(refusal("dragonfly:a=4,p=2,h=2,groups=10"), HasSubstr("it can be 1 to 9"));
  EXPECT_THAT(refusal("dragonfly:a=254,p=2"), HasSubstr("its switches need 257 ports"));
}

TEST(Presets, ARandomOneIsWholeAndTheSameEverywhere) {
  for (const char* seed : {"0", "1", "7", "4294967295"}) {
    const std::string text = std::string("random:nodes=100,switches=20,ports=24,seed=") + seed;
    const Topology topology = made(text);
    EXPECT_EQ(hcas(topology), 100u);
    EXPECT_EQ(switches(topology), 20u);
    EXPECT_EQ(topology.cables.size(), 100u + 19u + 20u);
    EXPECT_NE(distance(topology, 0), 0u) << "an element is not reached";
    EXPECT_EQ(made(text), topology);
  }
  EXPECT_NE(made("random:seed=1"), made("random:seed=2"));
  // These values are those of every machine.
  const Topology topology = made("random:nodes=4,switches=3,ports=4,seed=7");
  std::ostringstream cables;
  for (const TopologyCable& cable : topology.cables) {
    cables << cable.a.element << ":" << cable.a.port << "-" << cable.b.element << ":"
           << cable.b.port << " ";
  }
  EXPECT_EQ(cables.str(), "4:1-5:1 4:2-6:1 0:1-6:2 1:1-5:2 2:1-5:3 3:1-4:3 5:4-4:4 ");
}

TEST(Presets, ARandomOneUsesTheLastPort) {
  for (int seed = 0; seed < 200; ++seed) {
    const std::string text = "random:nodes=10,switches=6,ports=4,seed=" + std::to_string(seed);
    const Topology topology = made(text);
    EXPECT_NE(distance(topology, 0), 0u) << text;
    for (const TopologyCable& cable : topology.cables) {
      EXPECT_NE(cable.a.element, cable.b.element) << text;
    }
    EXPECT_NE(distance(made("random:nodes=2,switches=9,ports=2,seed=" + std::to_string(seed)), 0),
              0u);
  }
  EXPECT_EQ(refusal("random:nodes=15,switches=6,ports=4"),
            "topology random: 6 switches of 4 ports have 24 ports; 15 nodes and the cables that "
            "join the switches need 25");
}

TEST(Presets, OnlyTheirNamesArePresets) {
  EXPECT_TRUE(is_preset("star:3"));
  EXPECT_TRUE(is_preset("back-to-back"));
  EXPECT_TRUE(is_preset("torus:"));
  EXPECT_FALSE(is_preset("stars"));
  EXPECT_FALSE(is_preset("cluster.topo"));
  EXPECT_FALSE(is_preset(""));
  EXPECT_EQ(refusal("ring:4", Status::NotFound),
            "there is no topology 'ring'; there are back-to-back, star, fat-tree, torus, dragonfly "
            "and random");
  std::istringstream help(kPresetHelp);
  for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 78u) << line;
}

}  // namespace
}  // namespace ib::fabric
