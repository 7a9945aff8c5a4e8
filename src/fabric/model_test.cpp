// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/model.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ib::fabric {
namespace {

Shape shape(std::vector<std::string> nodes, std::uint32_t hcas, std::uint32_t ports) {
  Shape shape;
  shape.nodes = std::move(nodes);
  shape.hcas_per_node = hcas;
  shape.ports_per_hca = ports;
  return shape;
}

TEST(Fabric, DefaultShapeIsOneActivePort) {
  const auto fabric = Fabric::create({});
  ASSERT_TRUE(fabric);
  ASSERT_EQ(fabric->nodes().size(), 1u);
  const Hca& hca = fabric->nodes()[0].hcas.at(0);
  EXPECT_EQ(hca.name, "softib0");
  EXPECT_EQ(hca.ports.at(0).state, verbs::PortState::Active);
  EXPECT_EQ(hca.ports.at(0).lid, 1);
  EXPECT_EQ(fabric->port_count(), 1u);
}

TEST(Fabric, EveryGuidLidAndPortIndexIsDifferent) {
  const auto fabric = Fabric::create(shape({"a", "b", "c"}, 3, 2));
  ASSERT_TRUE(fabric);
  std::set<std::uint64_t> guids;
  std::set<std::uint16_t> lids;
  std::uint32_t next_port = 0;
  std::uint32_t next_hca = 0;
  for (const Node& node : fabric->nodes()) {
    for (const Hca& hca : node.hcas) {
      EXPECT_EQ(hca.index, next_hca++);
      EXPECT_EQ(hca.first_port, next_port);
      guids.insert(hca.node_guid);
      for (const Port& port : hca.ports) {
        EXPECT_EQ(port.number, next_port - hca.first_port + 1);
        ++next_port;
        guids.insert(port.guid);
        lids.insert(port.lid);
      }
    }
  }
  EXPECT_EQ(guids.size(), 9u + 18u);
  EXPECT_EQ(lids.size(), 18u);
  EXPECT_EQ(lids.count(0), 0u);
  EXPECT_EQ(fabric->port_count(), 18u);
}

TEST(Fabric, SameShapeGivesSameGuids) {
  const auto one = Fabric::create(shape({"a", "b"}, 2, 1));
  const auto two = Fabric::create(shape({"a", "b"}, 2, 1));
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->nodes()[1].hcas[1].node_guid, two->nodes()[1].hcas[1].node_guid);
  EXPECT_EQ(one->nodes()[1].hcas[1].ports[0].guid, two->nodes()[1].hcas[1].ports[0].guid);
}

TEST(Fabric, GidIsSubnetPrefixAndPortGuid) {
  Port port;
  port.guid = 0x0123456789abcdefull;
  const verbs::Gid expected{0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                            1,    0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
  EXPECT_EQ(port.gid(), expected);
}

TEST(Fabric, FindsNodesByNameAndHcasByIndexAndGuid) {
  auto fabric = Fabric::create(shape({"a", "b"}, 2, 1));
  ASSERT_TRUE(fabric);
  const Node* b = fabric->find_node("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(fabric->find_node(""), &fabric->nodes()[0]);
  EXPECT_EQ(fabric->find_node("c"), nullptr);
  EXPECT_EQ(fabric->find_hca(3), &b->hcas[1]);
  EXPECT_EQ(fabric->find_hca(4), nullptr);
  EXPECT_EQ(fabric->find_hca_by_guid(*b, b->hcas[1].node_guid), &b->hcas[1]);
  EXPECT_EQ(fabric->find_hca_by_guid(*fabric->find_node("a"), b->hcas[1].node_guid), nullptr);
}

TEST(Fabric, RefusesEmptyHugeAndAmbiguousShapes) {
  EXPECT_EQ(Fabric::create(shape({}, 1, 1)).error(), Status::InvalidParameter);
  EXPECT_EQ(Fabric::create(shape({"a"}, 0, 1)).error(), Status::InvalidParameter);
  EXPECT_EQ(Fabric::create(shape({"a"}, 1, 0)).error(), Status::InvalidParameter);
  EXPECT_EQ(Fabric::create(shape({"a"}, kMaxHcasPerNode + 1, 1)).error(), Status::LimitExceeded);
  EXPECT_EQ(Fabric::create(shape({"a"}, 1, kMaxPortsPerHca + 1)).error(), Status::LimitExceeded);
  EXPECT_EQ(Fabric::create(shape({"a", "b", "a"}, 1, 1)).error(), Status::InvalidParameter);
  for (const char* bad : {"", "a b", "a/b", "line\n"}) {
    EXPECT_EQ(Fabric::create(shape({bad}, 1, 1)).error(), Status::InvalidParameter) << bad;
  }
  EXPECT_EQ(Fabric::create(shape({std::string(64, 'n')}, 1, 1)).error(), Status::InvalidParameter);
}

TEST(Fabric, TheBiggestShapeHasUnicastLidsOnly) {
  std::vector<std::string> nodes;
  for (std::uint32_t i = 0; i < kMaxNodes; ++i) nodes.push_back("n" + std::to_string(i));
  const auto fabric = Fabric::create(shape(nodes, kMaxHcasPerNode, kMaxPortsPerHca));
  ASSERT_TRUE(fabric);
  EXPECT_EQ(fabric->port_count(), kMaxNodes * kMaxHcasPerNode * kMaxPortsPerHca);
  EXPECT_EQ(fabric->find_hca(kMaxNodes * kMaxHcasPerNode - 1)->ports[1].lid, 8192);
  nodes.push_back("one more");
  EXPECT_EQ(Fabric::create(shape(nodes, 1, 1)).error(), Status::LimitExceeded);
}

}  // namespace
}  // namespace ib::fabric
