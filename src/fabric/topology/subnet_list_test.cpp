// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/subnet_list.h"

#include "fabric/topology/ibnetdiscover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ib::fabric {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kHost =
    "{ CA-SM Ports:02 SystemGUID:0002c90000000013 NodeGUID:0002c90000000010 "
    "PortGUID:0002c90000000012 VenID:000002C9 DevID:5A440000 Rev:000000A1 {H-1 MT23108} LID:0010 "
    "PN:02 }";
const std::string kLeaf =
    "{ SW Ports:18 SystemGUID:0002c90000000020 NodeGUID:0002c90000000020 "
    "PortGUID:0002c90000000020 VenID:000002C9 DevID:B924 Rev:000000A1 {leaf} LID:0011 PN:0A }";
const std::string kLink = " PHY=12x LOG=ACT SPD=5\n";

Topology parsed(std::string_view text) {
  std::string reason;
  auto topology = parse_subnet_list(text, reason);
  EXPECT_TRUE(topology) << reason;
  return topology ? *std::move(topology) : Topology{};
}

std::string refusal(std::string_view text) {
  std::string reason;
  EXPECT_FALSE(parse_subnet_list(text, reason));
  return reason;
}

std::string changed(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(SubnetList, ACableHasALineForEachEnd) {
  const Topology topology = parsed(kHost + " " + kLeaf + kLink + kLeaf + " " + kHost + kLink);
  ASSERT_EQ(topology.elements.size(), 2u);
  const TopologyElement& host = topology.elements[0];
  EXPECT_EQ(host.ports, 2u);
  EXPECT_EQ(host.node_guid, 0x2c90000000010u);
  EXPECT_EQ(host.system_image_guid, 0x2c90000000013u);
  EXPECT_EQ(host.description, "H-1 MT23108");
  EXPECT_EQ(host.vendor, 0x2c9u);
  EXPECT_EQ(host.device, 0x5a44u);
  EXPECT_EQ(host.lids, (std::vector<std::uint16_t>{0, 16}));
  EXPECT_TRUE(host.port_guids.empty());
  const TopologyElement& leaf = topology.elements[1];
  EXPECT_TRUE(leaf.is_switch());
  EXPECT_EQ(leaf.ports, 24u);
  EXPECT_EQ(leaf.device, 0xb924u);
  EXPECT_EQ(leaf.lids, std::vector<std::uint16_t>{17});
  EXPECT_EQ(topology.cables, (std::vector<TopologyCable>{{{0, 2}, {1, 10}, 8, 2, true}}));
  EXPECT_EQ(parsed(kHost + " " + kLeaf + kLink), topology) << "one line is enough";
}

TEST(SubnetList, StateAndSpeedMayBeMissing) {
  EXPECT_EQ(parsed("# comment\n\n" + kHost + kLeaf).cables,
            (std::vector<TopologyCable>{{{0, 2}, {1, 10}, 2, 1, true}}));
  EXPECT_FALSE(parsed(kHost + kLeaf + " LOG=DWN SPD=FDR10").cables[0].is_up);
}

TEST(SubnetList, AnAdapterWithOneGuidForAllPortsIsASwitch) {
  const std::string leaf = changed(kLeaf, "SW", "CA");
  std::string other = changed(changed(kHost, "00000010", "00000040"), "00000012", "00000042");
  other = changed(other, "LID:0010", "LID:0012");
  const Topology topology = parsed(kHost + leaf + "\n" + other + changed(leaf, "PN:0A", "PN:0B"));
  ASSERT_EQ(topology.elements.size(), 3u);
  EXPECT_TRUE(topology.elements[1].is_switch());
  EXPECT_FALSE(topology.elements[0].is_switch());
}

TEST(SubnetList, AMistakeHasALineAColumnAndWhatWasExpected) {
  EXPECT_THAT(refusal("\nx"), StartsWith("line 2, column 1: expected { before an end of a cable"));
  EXPECT_THAT(refusal(kHost + "\n"),
              HasSubstr("expected { before an end of a cable, found the end"));
  EXPECT_THAT(refusal(changed(kHost, "CA-SM", "XX") + kLeaf),
              StartsWith("line 1, column 3: expected CA, SW or RT, found 'XX "));
  EXPECT_THAT(refusal(changed(kHost, "NodeGUID", "Node") + kLeaf),
              HasSubstr("expected Ports:, SystemGUID:, NodeGUID:"));
  EXPECT_THAT(refusal(changed(kHost, "NodeGUID:", "NodeGUID:x") + kLeaf),
              HasSubstr("expected a hexadecimal number, found 'x0002c9"));
  EXPECT_THAT(refusal(changed(kHost, "Ports:02", "Ports:F4240") + kLeaf),
              StartsWith("line 1, column 1: expected Ports: from 1 to ff and PN: from 1 to Ports:, "
                         "found f4240 and 2"));
  EXPECT_THAT(refusal(changed(kHost, "PN:02", "PN:03") + kLeaf), HasSubstr("found 2 and 3"));
  EXPECT_THAT(refusal(changed(kHost, "H-1 MT23108}", "H-1") + changed(kLeaf, "{leaf}", "")),
              HasSubstr("expected a description of at most 64 letters and }"));
  EXPECT_THAT(refusal(kHost + kLeaf + " PHY=3x"), HasSubstr("expected PHY=1x, 2x, 4x"));
  EXPECT_THAT(refusal(kHost + kLeaf + " SPD=7"), HasSubstr("SPD=2.5, 5, 10"));
  EXPECT_THAT(refusal(kHost + kLeaf + " X=1"), HasSubstr("expected PHY=, LOG= or SPD=, found"));
}

TEST(SubnetList, LinesThatContradictEachOtherAreRefused) {
  const std::string other = changed(kLeaf, "PN:0A", "PN:0B");
  EXPECT_EQ(refusal(kHost + kLeaf + "\n" + kHost + other),
            "line 2, column 1: port 2 of channel adapter \"H-1 MT23108\" (0x0002c90000000010) has "
            "another cable in line 1; a port has one");
  EXPECT_THAT(refusal(kHost + kLeaf + "\n" + changed(kHost, "PN:02", "PN:01") + kLeaf),
              HasSubstr("port 10 of switch \"leaf\""));
  EXPECT_THAT(refusal(kHost + kLeaf + "\n" + kHost + changed(kLeaf, "Ports:18", "Ports:24")),
              HasSubstr("had 24 ports in a line before"));
  EXPECT_THAT(refusal(kHost + kHost), HasSubstr("to the same port"));
}

TEST(SubnetList, GuidsAreThereOnce) {
  const std::string twin = changed(kHost, "NodeGUID:0002c90000000010", "NodeGUID:0002c90000000050");
  EXPECT_THAT(refusal(kHost + kLeaf + "\n" + twin + changed(kLeaf, "PN:0A", "PN:0B")),
              HasSubstr("have the same port GUID, 0x2c90000000011; each needs its own"));
}

TEST(SubnetList, ItIsKnownByItsFirstLine) {
  EXPECT_TRUE(is_subnet_list("# x\n\n " + kHost));
  EXPECT_FALSE(is_subnet_list("Switch 8 \"S\"\n"));
  EXPECT_FALSE(is_subnet_list(""));
}

// Those of Debian's libibdm1, where it is installed or unpacked.
TEST(SubnetList, FilesOfDebianAreReadAndComeBack) {
  const char* wanted = std::getenv("SOFTIB_TOPOLOGIES");
  const std::filesystem::path folder =
      wanted != nullptr ? wanted : "/usr/lib/x86_64-linux-gnu/ibdm1.5.7/ibnl";
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".lst") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    ASSERT_TRUE(is_subnet_list(text.str())) << entry.path();
    const Topology topology = parsed(text.str());
    // Two lines for each cable.
    const std::string all = text.str();
    EXPECT_EQ(2 * topology.cables.size(),
              static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n')));
    std::string reason;
    const auto again = parse_ibnetdiscover(write_ibnetdiscover(topology), reason);
    ASSERT_TRUE(again) << entry.path() << ": " << reason;
    EXPECT_EQ(sorted(*again), sorted(topology)) << entry.path();
    ++count;
  }
  if (count == 0) GTEST_SKIP() << "no .lst files in " << folder << " (package libibdm1)";
}

}  // namespace
}  // namespace ib::fabric
