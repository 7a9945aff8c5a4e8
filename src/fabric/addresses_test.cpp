// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/addresses.h"

#include "fabric/model.h"
#include "verbs/limits.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::fabric {
namespace {

using verbs::address_text;
using verbs::GidType;
using verbs::LinkLayer;

Fabric ethernet(std::vector<std::string> nodes, std::uint32_t hcas = 1, std::uint32_t ports = 1) {
  Shape shape;
  shape.nodes = std::move(nodes);
  shape.hcas_per_node = hcas;
  shape.ports_per_hca = ports;
  shape.link_layer = LinkLayer::Ethernet;
  auto fabric = Fabric::create(shape);
  EXPECT_TRUE(fabric);
  return *std::move(fabric);
}

Address address(std::uint32_t ipv4, std::string interface = "eth0", std::uint32_t port = 0) {
  return {verbs::ipv4_gid(ipv4), std::move(interface), port};
}

TEST(Addresses, AnEthernetPortHasNoLidAndItsAddressesAsGids) {
  const Fabric fabric = ethernet({"a", "b"});
  const Port& port = fabric.nodes()[1].hcas[0].ports[0];
  EXPECT_EQ(port.link_layer, LinkLayer::Ethernet);
  EXPECT_EQ(port.lid, 0);
  EXPECT_EQ(port.sm_lid, 0);
  ASSERT_EQ(port.gids.size(), 2u);
  EXPECT_EQ(address_text(port.gids[0].gid), "fe80::53:46ff:fe00:101");
  EXPECT_EQ(address_text(port.gids[1].gid), "127.77.0.2");
  for (const GidEntry& entry : port.gids) {
    EXPECT_EQ(entry.type, GidType::RoceV2);
    EXPECT_EQ(entry.interface, "lo");
    EXPECT_EQ(fabric.graph().find_port(entry.gid), &port);
  }
  EXPECT_EQ(fabric.graph().find_port(std::uint16_t{1}), nullptr);
  EXPECT_EQ(fabric.find_node_by_address(port.gids[1].gid), &fabric.nodes()[1]);
  EXPECT_EQ(fabric.find_node_by_address(port.gids[0].gid), nullptr) << "no address of the node";
}

TEST(Addresses, ANodeWithoutEthernetHasOneToo) {
  const auto fabric = Fabric::create({});
  ASSERT_TRUE(fabric);
  const Node& node = fabric->nodes()[0];
  ASSERT_EQ(node.addresses.size(), 1u);
  EXPECT_EQ(address_text(node.addresses[0].ip), "127.77.0.1");
  EXPECT_EQ(node.hcas[0].ports[0].gids.size(), 1u) << "which is no GID";
  EXPECT_EQ(fabric->graph().find_port(node.addresses[0].ip), nullptr);
}

TEST(Addresses, EachPortOfALargeFabricHasItsOwn) {
  constexpr std::size_t kNodes = 1000;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kNodes; ++i) names.push_back("n" + std::to_string(i));
  const Fabric fabric = ethernet(std::move(names), 2, 2);
  std::set<verbs::Gid> gids;
  for (const Node& node : fabric.nodes()) {
    EXPECT_EQ(node.addresses.size(), 4u);
    for (const Hca& hca : node.hcas) {
      for (const Port& port : hca.ports) {
        ASSERT_EQ(port.gids.size(), 2u);
        for (const GidEntry& entry : port.gids) gids.insert(entry.gid);
      }
    }
  }
  EXPECT_EQ(gids.size(), kNodes * 4 * 2);
  EXPECT_EQ(address_text(fabric.nodes()[999].hcas[1].ports[1].gids[1].gid), "127.80.3.232");
}

TEST(Addresses, TheLinkLayerIsOfAnHca) {
  Shape shape;
  shape.nodes = {"a", "b"};
  shape.hcas_per_node = 2;
  shape.link_layers = {{"", 1, LinkLayer::Ethernet}, {"b", 1, LinkLayer::InfiniBand}};
  auto fabric = Fabric::create(shape);
  ASSERT_TRUE(fabric);
  const auto layer = [&](std::size_t node, std::size_t hca) {
    return fabric->nodes()[node].hcas[hca].ports[0].link_layer;
  };
  EXPECT_EQ(layer(0, 0), LinkLayer::InfiniBand);
  EXPECT_EQ(layer(0, 1), LinkLayer::Ethernet);
  EXPECT_EQ(layer(1, 1), LinkLayer::InfiniBand);
  EXPECT_EQ(fabric->nodes()[0].addresses.size(), 1u);
  shape.link_layers = {{"c", 0, LinkLayer::Ethernet}};
  EXPECT_EQ(Fabric::create(shape).error(), Status::InvalidParameter) << "no such node";
  shape.link_layers = {{"a", 2, LinkLayer::Ethernet}};
  EXPECT_EQ(Fabric::create(shape).error(), Status::InvalidParameter) << "no such HCA";
}

TEST(Addresses, AnHcaThatIsAddedHasAnAddressOfItsOwn) {
  Fabric fabric = ethernet({"a", "b"});
  Node& node = fabric.nodes()[0];
  const auto added = fabric.add_hca(node);
  ASSERT_TRUE(added);
  ASSERT_EQ((*added)->ports[0].gids.size(), 2u);
  EXPECT_EQ(address_text((*added)->ports[0].gids[1].gid), "127.78.0.1");
  EXPECT_EQ(node.addresses.size(), 2u);
}

TEST(Addresses, WhatStaysKeepsItsIndexAndWhatGoesIsFree) {
  Fabric fabric = ethernet({"a"});
  Node& node = fabric.nodes()[0];
  const Port& port = node.hcas[0].ports[0];
  const Address one = address(0x0a000001);
  const Address two = address(0x0a000002);
  const Address three = address(0x0a000003);
  ASSERT_EQ(fabric.set_addresses(node, {one, two}), Status::Ok);
  ASSERT_EQ(port.gids.size(), 3u);
  EXPECT_EQ(port.gids[2].gid, two.ip);
  EXPECT_EQ(port.gids[0].interface, "eth0") << "that of its first address";
  EXPECT_EQ(fabric.graph().find_port(default_address({}, 0, 0)), nullptr);

  ASSERT_EQ(fabric.set_addresses(node, {two}), Status::Ok);
  EXPECT_EQ(port.gids[1], GidEntry{}) << "free";
  EXPECT_EQ(port.gids[2].gid, two.ip) << "its index is in address vectors";
  EXPECT_EQ(fabric.graph().find_port(one.ip), nullptr);

  ASSERT_EQ(fabric.set_addresses(node, {three, two}), Status::Ok);
  EXPECT_EQ(port.gids[1].gid, three.ip);
  EXPECT_EQ(port.gids[2].gid, two.ip);
  EXPECT_EQ(fabric.graph().find_port(three.ip), &port);
}

TEST(Addresses, ANodeCanHaveItsDefaultOnesAgain) {
  Fabric fabric = ethernet({"a"}, 1, 2);
  Node& node = fabric.nodes()[0];
  const std::vector<Address> before = node.addresses;
  EXPECT_EQ(node.address_source, AddressSource::Default);
  EXPECT_EQ(fabric.default_addresses(node), before);
  ASSERT_EQ(fabric.set_addresses(node, {address(0x0a000001)}, AddressSource::Interfaces),
            Status::Ok);
  EXPECT_EQ(node.address_source, AddressSource::Interfaces);
  EXPECT_EQ(fabric.default_addresses(node), before);
  ASSERT_EQ(fabric.set_addresses(node, before, AddressSource::Default), Status::Ok);
  EXPECT_EQ(fabric.graph().find_port(before[1].ip), &node.hcas[0].ports[1]);
}

TEST(Addresses, RefusalsChangeNothing) {
  Fabric fabric = ethernet({"a", "b"});
  Node& node = fabric.nodes()[0];
  const std::vector<Address> before = node.addresses;
  const Address good = address(0x0a000001);
  EXPECT_EQ(fabric.set_addresses(node, {good, good}), Status::AlreadyExists);
  EXPECT_EQ(fabric.set_addresses(node, {good, fabric.nodes()[1].addresses[0]}),
            Status::AlreadyExists);
  EXPECT_EQ(fabric.set_addresses(node, {good, {}}), Status::InvalidParameter);
  EXPECT_EQ(fabric.set_addresses(node, {address(0xe0000001)}), Status::InvalidParameter);
  EXPECT_EQ(fabric.set_addresses(node, {address(0x0a000001, "eth1", 1)}), Status::InvalidParameter);
  std::vector<Address> many;
  for (std::uint32_t i = 0; i < verbs::limits::kGidTableLength; ++i) {
    many.push_back(address(0x0a000001 + i));
  }
  EXPECT_EQ(fabric.set_addresses(node, many), Status::LimitExceeded);
  EXPECT_EQ(node.addresses, before);
  EXPECT_EQ(fabric.graph().find_port(good.ip), nullptr);
  EXPECT_EQ(fabric.graph().find_port(before[0].ip), &node.hcas[0].ports[0]);
  many.pop_back();
  EXPECT_EQ(fabric.set_addresses(node, many), Status::Ok) << "beside the link-local address";
}

}  // namespace
}  // namespace ib::fabric
