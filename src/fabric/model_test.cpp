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
  const Hca& hca = fabric->nodes()[0].hcas[0];
  EXPECT_EQ(hca.name, "softib0");
  EXPECT_EQ(hca.ports[0].state, verbs::PortState::Active);
  EXPECT_EQ(hca.ports[0].lid, 1);
  EXPECT_EQ(fabric->graph().port_count(), 1u);
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
  EXPECT_EQ(fabric->graph().port_count(), 18u);
}

TEST(Fabric, SameShapeGivesSameGuids) {
  const auto one = Fabric::create(shape({"a", "b"}, 2, 1));
  const auto two = Fabric::create(shape({"a", "b"}, 2, 1));
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->nodes()[1].hcas[1].node_guid, two->nodes()[1].hcas[1].node_guid);
  EXPECT_EQ(one->nodes()[1].hcas[1].ports[0].guid, two->nodes()[1].hcas[1].ports[0].guid);
}

TEST(Fabric, GidIsSubnetPrefixAndPortGuid) {
  auto fabric = Fabric::create({});
  ASSERT_TRUE(fabric);
  Port& port = fabric->nodes()[0].hcas[0].ports[0];
  ASSERT_EQ(fabric->graph().set_guid(port, 0x0123456789abcdefull), Status::Ok);
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
  EXPECT_EQ(Fabric::create({.packet_life_time = kMaxPacketLifeTime + 1}).error(),
            Status::LimitExceeded);
  for (const char* bad : {"", "a b", "a/b", "line\n"}) {
    EXPECT_EQ(Fabric::create(shape({bad}, 1, 1)).error(), Status::InvalidParameter) << bad;
  }
  EXPECT_EQ(Fabric::create(shape({std::string(64, 'n')}, 1, 1)).error(), Status::InvalidParameter);
}

std::vector<std::string> many(std::uint32_t count) {
  std::vector<std::string> nodes;
  for (std::uint32_t i = 0; i < count; ++i) nodes.push_back("n" + std::to_string(i));
  return nodes;
}

TEST(Fabric, TheBiggestShapeHasUnicastLidsOnly) {
  constexpr std::uint32_t kNodes = kMaxPorts / (kMaxHcasPerNode * kMaxPortsPerHca);
  const auto fabric = Fabric::create(shape(many(kNodes), kMaxHcasPerNode, kMaxPortsPerHca));
  ASSERT_TRUE(fabric);
  EXPECT_EQ(fabric->graph().port_count(), kNodes * kMaxHcasPerNode * kMaxPortsPerHca);
  EXPECT_EQ(fabric->find_hca(kNodes * kMaxHcasPerNode - 1)->ports[1].lid,
            fabric->graph().port_count());
  EXPECT_LE(fabric->graph().port_count(), kLastUnicastLid);
  EXPECT_EQ(Fabric::create(shape(many(kNodes + 1), kMaxHcasPerNode, kMaxPortsPerHca)).error(),
            Status::LimitExceeded);
  EXPECT_EQ(Fabric::create(shape(many(kMaxNodes + 1), 1, 1)).error(), Status::LimitExceeded);
  EXPECT_TRUE(Fabric::create(shape(many(kMaxNodes), 1, 1)));
}

// Everything that can be looked up is found, in a fabric of many hosts, and nothing else.
TEST(Fabric, FindsEverythingAmongTwentyThousandNodes) {
  constexpr std::uint32_t kNodes = 20'000;
  auto fabric = Fabric::create(shape(many(kNodes), 1, 2));
  ASSERT_TRUE(fabric);
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    const Node* node = fabric->find_node("n" + std::to_string(i));
    ASSERT_EQ(node, &fabric->nodes()[i]);
    const Hca& hca = node->hcas[0];
    ASSERT_EQ(fabric->find_hca(hca.index), &hca);
    ASSERT_EQ(fabric->find_hca_by_guid(*node, hca.node_guid), &hca);
    ASSERT_EQ(&fabric->node_of(hca), node);
    for (const Port& port : hca.ports) {
      ASSERT_EQ(fabric->graph().find_port(port.lid), &port);
      ASSERT_EQ(fabric->graph().find_port(port.gid()), &port);
      ASSERT_EQ(fabric->hca_of(port), &hca);
    }
  }
  EXPECT_EQ(fabric->find_node("n20000"), nullptr);
  EXPECT_EQ(fabric->find_hca(kNodes), nullptr);
  EXPECT_EQ(fabric->graph().find_port(std::uint16_t{0}), nullptr);
  EXPECT_EQ(fabric->graph().find_port(static_cast<std::uint16_t>(2 * kNodes + 1)), nullptr);
  EXPECT_EQ(fabric->graph().find_port(std::uint16_t{0xffff}), nullptr);
  verbs::Gid elsewhere = fabric->nodes()[7].hcas[0].ports[0].gid();
  elsewhere[1] ^= 1;  // the same GUID in another subnet
  EXPECT_EQ(fabric->graph().find_port(elsewhere), nullptr);
}

TEST(Fabric, LookupsFollowNewLidsAndGuids) {
  auto fabric = Fabric::create(shape({"a", "b"}, 1, 1));
  ASSERT_TRUE(fabric);
  Port& port = fabric->nodes()[0].hcas[0].ports[0];
  const Port& other = fabric->nodes()[1].hcas[0].ports[0];
  const std::uint16_t old_lid = port.lid;
  const verbs::Gid old_gid = port.gid();

  EXPECT_EQ(fabric->graph().set_lid(port, other.lid), Status::AlreadyExists);
  EXPECT_EQ(fabric->graph().set_lid(port, 0), Status::InvalidParameter);
  EXPECT_EQ(fabric->graph().set_lid(port, 0xc000), Status::InvalidParameter);
  EXPECT_EQ(fabric->graph().set_guid(port, other.guid), Status::AlreadyExists);
  EXPECT_EQ(fabric->graph().find_port(old_lid), &port) << "a refusal changes nothing";
  EXPECT_EQ(fabric->graph().find_port(old_gid), &port);

  EXPECT_EQ(fabric->graph().set_lid(port, 3), Status::Ok);
  EXPECT_EQ(fabric->graph().set_lid(port, 3), Status::Ok) << "what it has already";
  EXPECT_EQ(fabric->graph().find_port(old_lid), nullptr);
  EXPECT_EQ(fabric->graph().find_port(std::uint16_t{3}), &port);
  EXPECT_EQ(fabric->graph().set_guid(port, 0x1234), Status::Ok);
  EXPECT_EQ(fabric->graph().set_guid(port, 0x1234), Status::Ok);
  EXPECT_EQ(fabric->graph().find_port(old_gid), nullptr);
  EXPECT_EQ(fabric->graph().find_port(port.gid()), &port);

  // A new HCA takes a LID that is free, not the next by count.
  const auto added = fabric->add_hca(fabric->nodes()[1]);
  ASSERT_TRUE(added);
  EXPECT_EQ((*added)->ports[0].lid, 4);
  EXPECT_EQ(fabric->graph().find_port(std::uint16_t{4}), &(*added)->ports[0]);
}

// Others point to nodes, HCAs and ports: what is added later moves none of them.
TEST(Fabric, NothingMovesWhenHcasAreAdded) {
  auto made = Fabric::create(shape({"a", "b"}, 1, 2));
  ASSERT_TRUE(made);
  Node& a = made->nodes()[0];
  const Hca* first = &a.hcas[0];
  const Port* port = &first->ports[1];
  Fabric fabric = *std::move(made);
  for (std::uint32_t i = 1; i < kMaxHcasPerNode; ++i) ASSERT_TRUE(fabric.add_hca(a));
  EXPECT_EQ(fabric.add_hca(a).error(), Status::LimitExceeded);
  EXPECT_TRUE(fabric.add_hca(fabric.nodes()[1])) << "one node's limit is not another's";
  EXPECT_EQ(fabric.find_hca(0), first);
  EXPECT_EQ(fabric.graph().find_port(port->lid), port);
  EXPECT_EQ(a.hcas.size(), kMaxHcasPerNode);
  EXPECT_EQ(&first->ports[1], port);
  EXPECT_EQ(first->ports.size(), 2u);
}

// The LIDs are the last thing that a fabric runs out of.
TEST(Fabric, NoHcaIsAddedWithoutLids) {
  constexpr std::uint32_t kNodes = kMaxPorts / kMaxPortsPerHca;
  auto fabric = Fabric::create(shape(many(kNodes), 1, kMaxPortsPerHca));
  ASSERT_TRUE(fabric);
  EXPECT_EQ(fabric->add_hca(fabric->nodes()[0]).error(), Status::LimitExceeded);
}

}  // namespace
}  // namespace ib::fabric
