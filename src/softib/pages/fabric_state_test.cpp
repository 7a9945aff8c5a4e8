// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/fabric_state.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ib::softib {
namespace {

Json state_of(const std::vector<std::string>& names, Json hcas_per_node, Json ports_per_hca) {
  return {{"link_layer", "infiniband"},
          {"shape",
           {{"nodes", names.size()},
            {"hcas_per_node", std::move(hcas_per_node)},
            {"ports_per_hca", std::move(ports_per_hca)},
            {"names_digest", names_digest(names)}}},
          {"nodes", Json::array()}};
}

FabricShape wanted_nodes(std::vector<std::string> names) {
  FabricShape shape;
  shape.nodes = std::move(names);
  return shape;
}

TEST(FabricState, IsComparedByItsShapeWithoutItsNodes) {
  const Json state = state_of({"a", "b"}, {1, 1}, {2, 2});
  FabricShape wanted;
  EXPECT_EQ(shape_difference(state, wanted), "");
  wanted = wanted_nodes({"a", "b"});
  wanted.hcas = 1;
  wanted.ports = 2;
  wanted.link_layer = "infiniband";
  EXPECT_EQ(shape_difference(state, wanted), "");
  wanted.ports = 1;
  EXPECT_EQ(shape_difference(state, wanted), "it has 2 port(s) per HCA, not 1");
  wanted.hcas = 3;
  EXPECT_EQ(shape_difference(state, wanted), "it has 1 HCA(s) per node, not 3");
  EXPECT_EQ(shape_difference(state, wanted_nodes({"a"})), "it has 2 node(s), not 1");
}

TEST(FabricState, OneHcaThatWasPulledOutIsADifference) {
  FabricShape wanted;
  wanted.hcas = 2;
  EXPECT_EQ(shape_difference(state_of({"a", "b"}, {1, 2}, {1, 1}), wanted),
            "it has 1 HCA(s) per node, not 2");
  wanted.hcas = 1;
  EXPECT_EQ(shape_difference(state_of({"a", "b"}, {1, 2}, {1, 1}), wanted),
            "it has 2 HCA(s) per node, not 1");
}

TEST(FabricState, OtherNamesAreSaidIfTheyAreKnown) {
  Json state = state_of({"a", "b"}, {1, 1}, {1, 1});
  EXPECT_NE(shape_difference(state, wanted_nodes({"a", "c"})), "");
  state["nodes"] = {{{"name", "a"}}, {{"name", "b"}}};
  EXPECT_EQ(shape_difference(state, wanted_nodes({"a", "c"})), "its nodes are a, b");
}

}  // namespace
}  // namespace ib::softib
