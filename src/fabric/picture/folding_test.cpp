// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/picture/folding.h"

#include "fabric/picture/preset_subnet_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace ib::fabric {
namespace {

Folding folded(const ShownSubnet& subnet, const FoldingLimits& limits = {}) {
  return fold(subnet, levels_of(subnet), limits);
}

// How many boxes of a level have how many elements.
std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> sizes_of(const ShownSubnet& subnet,
                                                                      const Folding& folding) {
  const Levels levels = levels_of(subnet);
  std::map<std::uint32_t, std::size_t> counts;
  std::map<std::uint32_t, std::uint32_t> level;
  for (std::uint32_t i = 0; i < folding.box.size(); ++i) {
    ++counts[folding.box[i]];
    level[folding.box[i]] = levels.of[i];
  }
  std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> sizes;
  for (const auto& [box, count] : counts) ++sizes[{level[box], count}];
  return sizes;
}

using Sizes = std::map<std::pair<std::uint32_t, std::size_t>, std::size_t>;

TEST(Folding, ASmallSubnetHasABoxForEachElement) {
  const ShownSubnet subnet = shown_preset("fat-tree:hcas=16,ports=8");
  EXPECT_EQ(folded(subnet).boxes, 24u);
}

TEST(Folding, LevelsAreCountedFromTheAdapters) {
  const ShownSubnet subnet = shown_preset("fat-tree:hcas=16,ports=8");
  const Levels levels = levels_of(subnet);
  EXPECT_TRUE(levels.are_levels);
  EXPECT_EQ(levels.highest, 2u);
  EXPECT_EQ(levels.of[place_of(subnet, "node3")], 0u);
  EXPECT_EQ(levels.of[place_of(subnet, "switch-2-1")], 2u);
  EXPECT_FALSE(levels_of(shown_preset("torus:3x3")).are_levels);
}

TEST(Folding, TheAdaptersOfALeafShareABox) {
  const ShownSubnet subnet = shown_preset("fat-tree:levels=2,ports=36");
  EXPECT_EQ(sizes_of(subnet, folded(subnet)), (Sizes{{{0, 18}, 36}, {{1, 1}, 36}, {{2, 1}, 18}}));
}

TEST(Folding, ATreeOfThreeLevelsIsFoldedToItsPods) {
  const ShownSubnet subnet = shown_preset("fat-tree:hcas=8192,ports=32");
  EXPECT_EQ(sizes_of(subnet, folded(subnet)),
            (Sizes{{{0, 256}, 32}, {{1, 16}, 32}, {{2, 16}, 32}, {{3, 256}, 1}}));
}

TEST(Folding, TheRouteIsNotFolded) {
  ShownSubnet subnet = shown_preset("fat-tree:hcas=8192,ports=32");
  const std::uint32_t node = place_of(subnet, "node300");
  const std::uint32_t leaf = subnet.elements[node].ports[0].peer;
  subnet.route = {{node, 1}};
  subnet.route_ends = {node, place_of(subnet, "node8000")};
  const Folding folding = folded(subnet);
  for (const std::uint32_t single : {node, leaf, place_of(subnet, "node8000")}) {
    EXPECT_EQ(std::count(folding.box.begin(), folding.box.end(), folding.box[single]), 1);
  }
  EXPECT_LT(folding.boxes, 160u);
}

TEST(Folding, WithoutLevelsAdaptersGoIntoTheBoxesOfTheirSwitches) {
  const ShownSubnet subnet = shown_preset("torus:6x6,hosts=2");
  const Folding folding = folded(subnet);
  EXPECT_EQ(folding.boxes, 36u);
  const std::uint32_t node = place_of(subnet, "node5");
  EXPECT_EQ(folding.box[node], folding.box[subnet.elements[node].ports[0].peer]);
}

TEST(Folding, ALargeTorusIsCutIntoRegions) {
  const ShownSubnet subnet = shown_preset("torus:12x12x12,hosts=1");
  const Folding folding = folded(subnet);
  EXPECT_LE(folding.boxes, 160u);
  EXPECT_GE(folding.boxes, 60u);
}

TEST(Folding, GroupsOfADragonflyStayTogether) {
  const ShownSubnet subnet = shown_preset("dragonfly:a=8,p=4,h=4");
  const Folding folding = folded(subnet, {32, 40});
  std::map<std::string, std::set<std::uint32_t>> boxes;  // of each group
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    const std::string& name = subnet.elements[i].name;
    if (subnet.elements[i].is_switch) boxes[name.substr(0, name.rfind('-'))].insert(folding.box[i]);
  }
  const auto whole = std::count_if(boxes.begin(), boxes.end(),
                                   [](const auto& group) { return group.second.size() == 1; });
  EXPECT_EQ(boxes.size(), 33u);
  EXPECT_GE(whole, 25);
}

TEST(Folding, AnEmptySubnetHasNoBox) {
  EXPECT_EQ(folded({}).boxes, 0u);
}

}  // namespace
}  // namespace ib::fabric
