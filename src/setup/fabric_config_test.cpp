// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/fabric_config.h"

#include "setup/driver_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ib::softib {
namespace {

std::string complaint(std::string_view text) {
  std::string reason;
  const auto config = parse_fabric_config(text, "/etc", reason);
  return config ? "none" : reason;
}

TEST(FabricConfig, ReadsChildrenPartitionsAndTheDriverStore) {
  std::string reason;
  const auto config = parse_fabric_config(R"(
drivers = "drivers"
packet_life_time = 12
[[child]]
name = "ping"
device_id = 'IBA\Ping'
compatible_ids = ['IBA\SID_0000000002139702']
description = "a ping"
[[partition]]
pkey = 0x8001
name = "i8001"
)",
                                          "/etc/softib", reason);
  ASSERT_TRUE(config) << reason;
  const FabricConfig& c = *config;
  EXPECT_EQ(c.drivers, "/etc/softib/drivers");
  EXPECT_EQ(c.packet_life_time, 12);
  ASSERT_EQ(c.children.size(), 2u);
  EXPECT_EQ(c.children[0].name, "ipoib");
  EXPECT_EQ(c.children[1].hardware_ids, std::vector<std::string>{"IBA\\Ping"});
  EXPECT_EQ(c.children[1].pkey, 0xffff);
  ASSERT_EQ(c.partitions.size(), 1u);
  EXPECT_EQ(c.partitions[0].pkey, 0x8001);
  EXPECT_EQ(c.partitions[0].ca, "softib0");
}

TEST(FabricConfig, SaysWhatIsWrong) {
  EXPECT_EQ(complaint("ipoib = 1"), "1:9: top level: \"ipoib\" must be true or false");
  EXPECT_EQ(complaint("# a comment\n  driver = 'x'"),
            "2:3: top level: \"driver\" is not known; known are child, drivers, hca, ipoib, "
            "ipoib_mode, link, node, packet_life_time, partition");
  EXPECT_EQ(complaint("[[child]]\nname = 'x'"), "1:1: [[child]]: \"device_id\" is missing");
  EXPECT_EQ(complaint("[[partition]]\nname = 'x'\npkey = 70000"),
            "3:8: [[partition]]: \"pkey\" must be a number from 0 to 65535");
  EXPECT_EQ(complaint("packet_life_time = 31"),
            "1:20: top level: \"packet_life_time\" must be a number from 0 to 30");
  EXPECT_EQ(complaint("child = 1"), "1:9: top level: \"child\" must be tables: [[...]]");
  EXPECT_EQ(complaint("[[child]]\nname = 'x'\ndevice_id = 'y'\nhardware_ids = ['a', 7]"),
            "4:22: [[child]]: \"hardware_ids\" must be a list of texts");
  EXPECT_NE(complaint("[[child]]\nname = 'a-b'\ndevice_id = 'x'").find("is no name of a child"),
            std::string::npos);
  EXPECT_NE(complaint("[[child]]\ndevice_id = 'x'\nname = 'a-b'").find("3:8: "), std::string::npos);
  EXPECT_EQ(complaint("\n\n=").find("3:1: "), 0u);
  EXPECT_EQ(complaint("ipoib = false"), "none");
}

// The mistake of a file for a fabric of two nodes with two HCAs each; "none": it fits.
std::string misfit(std::string_view text) {
  std::string reason;
  const auto config = parse_fabric_config(text, "/etc", reason);
  if (!config) return reason;
  fabric::Shape shape;
  shape.nodes = {"a", "b"};
  shape.hcas_per_node = 2;
  if (apply_link_layers(*config, shape, reason) != Status::Ok) return reason;
  auto fabric = fabric::Fabric::create(shape);
  EXPECT_TRUE(fabric);
  if (apply_addresses(*config, *fabric, reason) != Status::Ok) return reason;
  return apply_cables(*config, *fabric, reason) == Status::Ok ? "none" : reason;
}

TEST(FabricConfig, HcasHaveLinkLayersAndNodesAddresses) {
  std::string reason;
  const auto config = parse_fabric_config(R"(
[[hca]]
name = "softib1"
link_layer = "ethernet"
[[hca]]
node = "b"
link_layer = "ethernet"
[[node]]
name = "b"
addresses = ["192.0.2.1", "fd00::1", "127.0.0.9"]
)",
                                          "/etc", reason);
  ASSERT_TRUE(config) << reason;
  fabric::Shape shape;
  shape.nodes = {"a", "b"};
  shape.hcas_per_node = 2;
  ASSERT_EQ(apply_link_layers(*config, shape, reason), Status::Ok) << reason;
  auto fabric = fabric::Fabric::create(shape);
  ASSERT_TRUE(fabric);
  ASSERT_EQ(apply_addresses(*config, *fabric, reason), Status::Ok) << reason;
  const auto& nodes = fabric->nodes();
  EXPECT_FALSE(nodes[0].hcas[0].ports[0].is_ethernet());
  EXPECT_TRUE(nodes[0].hcas[1].ports[0].is_ethernet());
  const fabric::Port& port = nodes[1].hcas[0].ports[0];
  ASSERT_TRUE(port.is_ethernet());
  ASSERT_EQ(port.gids.size(), 4u);
  EXPECT_EQ(verbs::address_text(port.gids[1].gid), "192.0.2.1");
  EXPECT_EQ(port.gids[1].interface, "");
  EXPECT_EQ(verbs::address_text(port.gids[2].gid), "fd00::1");
  EXPECT_EQ(port.gids[3].interface, "lo");
}

TEST(FabricConfig, TheModeOfIpIsThatOfTheNodeOrOfTheFabric) {
  std::string reason;
  const auto config = parse_fabric_config(R"(
ipoib_mode = "connected"
[[node]]
name = "a"
ipoib_mode = "datagram"
[[node]]
name = "b"
addresses = ["192.0.2.1"]
)",
                                          "/etc", reason);
  ASSERT_TRUE(config) << reason;
  EXPECT_EQ(ipoib_mode_of_node(*config, "a"), IpoibMode::Datagram);
  EXPECT_EQ(ipoib_mode_of_node(*config, "b"), IpoibMode::Connected);
  EXPECT_EQ(ipoib_mode_of_node(*config, "c"), IpoibMode::Connected);
  EXPECT_EQ(ipoib_mode_of_node({}, "a"), IpoibMode::Datagram);
  // Its default addresses stay.
  fabric::Shape shape;
  shape.nodes = {"a", "b"};
  auto fabric = fabric::Fabric::create(shape);
  ASSERT_TRUE(fabric);
  ASSERT_EQ(apply_addresses(*config, *fabric, reason), Status::Ok) << reason;
  EXPECT_EQ(fabric->nodes()[0].address_source, fabric::AddressSource::Default);
  EXPECT_EQ(complaint("ipoib_mode = 'cm'"),
            "1:14: top level: \"ipoib_mode\" must be datagram or connected");
  EXPECT_EQ(complaint("[[node]]\nname = 'a'\nipoib_mode = ''"),
            "3:14: [[node]]: \"ipoib_mode\" must be datagram or connected");
}

TEST(FabricConfig, SaysWhatDoesNotFitTheFabric) {
  EXPECT_EQ(misfit("[[hca]]\nlink_layer = 'token ring'"),
            "2:14: [[hca]]: \"link_layer\" must be infiniband or ethernet");
  EXPECT_EQ(misfit("[[hca]]\nname = 'softib0'"), "1:1: [[hca]]: \"link_layer\" is missing");
  EXPECT_EQ(misfit("[[hca]]\nname = 'mlx5_0'\nlink_layer = 'ethernet'"),
            "1:1: [[hca]]: no HCA is called \"mlx5_0\"; nodes have softib0 to softib1 (--hcas)");
  EXPECT_EQ(misfit("[[hca]]\nnode = 'c'\nlink_layer = 'ethernet'"),
            "1:1: [[hca]]: the fabric has no node \"c\", it has 2 nodes");
  EXPECT_EQ(misfit("[[node]]\nname = 'c'\naddresses = ['192.0.2.1']"),
            "1:1: [[node]]: the fabric has no node \"c\", it has 2 nodes");
  EXPECT_EQ(misfit("[[node]]\nname = 'a'\naddresses = ['192.0.2.300']"),
            "3:13: [[node]]: \"addresses\" has \"192.0.2.300\", which is no IPv4 or IPv6 address "
            "of a machine");
  EXPECT_EQ(misfit("[[node]]\nname = 'a'\naddresses = ['192.0.2.1']\n"
                   "[[node]]\nname = 'b'\naddresses = ['192.0.2.1']"),
            "4:1: [[node]]: one of the addresses of b is there twice");
  EXPECT_EQ(
      misfit("[[node]]\nname = 'a'"),
      "1:1: [[node]]: \"addresses\" is missing; [[node]] gives a node of --nodes its addresses");
  std::string many = "[[node]]\nname = 'a'\naddresses = [";
  for (int i = 1; i <= 16; ++i) many += "'192.0.2." + std::to_string(i) + "', ";
  EXPECT_EQ(misfit(many + "]"), "1:1: [[node]]: a has more addresses than a port has GIDs (15)");
}

TEST(FabricConfig, CablesJoinTwoPorts) {
  std::string reason;
  const auto config = parse_fabric_config(R"(
[[link]]
ports = ["a/softib1/2", "b/softib0/1"]
)",
                                          "/etc", reason);
  ASSERT_TRUE(config) << reason;
  auto fabric =
      fabric::Fabric::create({.nodes = {"a", "b"}, .hcas_per_node = 2, .ports_per_hca = 2});
  ASSERT_TRUE(fabric);
  ASSERT_EQ(apply_cables(*config, *fabric, reason), Status::Ok) << reason;
  const fabric::Port& end = fabric->nodes()[0].hcas[1].ports[1];
  EXPECT_EQ(fabric->graph().peer_of(end), &fabric->nodes()[1].hcas[0].ports[0]);
  EXPECT_EQ(fabric->graph().peer_of(fabric->nodes()[0].hcas[0].ports[0]), nullptr);
}

TEST(FabricConfig, SaysWhatIsWrongWithACable) {
  const auto of = [](const std::string& ports, const std::string& more = "") {
    return misfit(more + "[[link]]\nports = [" + ports + "]");
  };
  EXPECT_EQ(of("'a/softib0/1', 'b/softib1/1'"), "none");
  EXPECT_EQ(misfit("[[link]]"), "1:1: [[link]]: \"ports\" is missing");
  EXPECT_EQ(misfit("[[link]]\nports = 'a/softib0/1'"),
            "2:9: [[link]]: \"ports\" must be a list of texts");
  EXPECT_EQ(misfit("[[link]]\nports = ['a/softib0/1', 'b/softib0/1']\nlength = 3"),
            "3:1: [[link]]: \"length\" is not known; known are ports");
  EXPECT_EQ(of("'a/softib0/1'"), "2:9: [[link]]: \"ports\" has 1 entries; a cable has two ends");
  for (const std::string wrong : {"softib0/1", "a/softib0", "a/softib0/", "a/softib0/1x", "a//1",
                                  "/softib0/1", "a/softib0/-1", "a/softib0/1/1"}) {
    EXPECT_EQ(of("'a/softib0/1', '" + wrong + "'"), "2:25: [[link]]: \"ports\" has \"" + wrong +
                                                        "\", which names no port: node0/softib0/1");
  }
  EXPECT_EQ(of("'a/softib0/1', 'c/softib0/1'"),
            "1:1: [[link]]: the fabric has no node \"c\", it has 2 nodes");
  EXPECT_EQ(of("'a/softib0/1', 'b/mlx5_0/1'"),
            "1:1: [[link]]: node b has no HCA \"mlx5_0\", it has softib0 to softib1 (--hcas)");
  EXPECT_EQ(of("'a/softib0/2', 'b/softib0/1'"),
            "1:1: [[link]]: there is no port a/softib0/2: HCAs have 1 (--ports)");
  EXPECT_EQ(of("'a/softib0/1', 'a/softib0/1'"), "1:1: [[link]]: both ends are a/softib0/1");
  EXPECT_EQ(
      of("'b/softib0/1', 'a/softib1/1'", "[[link]]\nports = ['a/softib0/1', 'b/softib0/1']\n"),
      "3:1: [[link]]: b/softib0/1 has a cable already");
  EXPECT_EQ(
      of("'a/softib0/1', 'b/softib1/1'", "[[hca]]\nname = 'softib1'\nlink_layer = 'ethernet'\n"),
      "4:1: [[link]]: a/softib0/1 is infiniband and b/softib1/1 is ethernet: no cable joins "
      "two link layers");
}

TEST(FabricConfig, AFileThatIsNoFileIsRefusedAtOnce) {
  const std::string path = "/tmp/softib-config-test-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string reason;
  const auto config = read_fabric_config(path, reason);
  ::unlink(path.c_str());
  EXPECT_EQ(config.error(), Status::InvalidParameter);
  EXPECT_EQ(reason, "configuration " + path + " is no regular file");
}

TEST(DriverStore, ReadsManifestsAndLeavesBadOnesOut) {
  const std::string folder = "/tmp/softib-store-test-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/b.json")
      << R"({"name": "b", "kind": "filter", "hardware_ids": ["X"], "module": "libb.so"})";
  std::ofstream(folder + "/a.json")
      << R"({"name": "a", "kind": "function", "hardware_ids": ["Y"], "depends": ["b"], "module": "liba.so"})";
  std::ofstream(folder + "/c.json") << "{";
  std::ofstream(folder + "/liba.so") << "not looked at";
  std::vector<std::string> complaints;
  std::string reason;
  const auto drivers = read_driver_store(folder, complaints, reason);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(drivers) << reason;
  ASSERT_EQ((*drivers).size(), 2u);
  EXPECT_EQ((*drivers)[0].name, "a");
  EXPECT_EQ((*drivers)[0].depends, std::vector<std::string>{"b"});
  EXPECT_EQ((*drivers)[1].kind, io::DriverKind::Filter);
  EXPECT_EQ((*drivers)[1].module, folder + "/libb.so");
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_NE(complaints[0].find("c.json: it is no JSON object"), std::string::npos);
  EXPECT_EQ(read_driver_store("/nowhere", complaints, reason).error(), Status::NotFound);
}

TEST(DriverStore, SaysWhatIsWrongWithAManifest) {
  const auto wrong = [](const char* text) {
    std::string reason;
    EXPECT_EQ(parse_manifest(text, "/d", reason).error(), Status::Malformed);
    return reason;
  };
  EXPECT_EQ(wrong("[]"), "it is no JSON object");
  EXPECT_EQ(wrong(R"({"kind": "filter"})"), "\"name\" must be a text");
  EXPECT_EQ(wrong(R"({"name": "x", "kind": "bus"})"),
            "\"kind\" must be \"function\" or \"filter\"");
  EXPECT_EQ(wrong(R"({"name": "x", "kind": "filter", "hardware_ids": [1]})"),
            "\"hardware_ids\" must be a list of texts that is not empty");
}

}  // namespace
}  // namespace ib::softib
