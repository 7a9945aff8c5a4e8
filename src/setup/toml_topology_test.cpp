// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/toml_topology.h"

#include "fabric/addresses.h"
#include "fabric/model.h"
#include "fabric/topology/node_names.h"
#include "fabric/topology/presets.h"
#include "fabric/topology/snapshot.h"
#include "fabric/topology_toml.h"

#include <gmock/gmock.h>

namespace ib::softib {
namespace {

using fabric::Topology;
using testing::ElementsAre;
using testing::HasSubstr;

// docs/cli.md has this example.
constexpr const char* kSmall = R"(# two hosts, one with two ports
[[switch]]
name = "leaf"
ports = 36

[[hca]]
name = "alpha"
ports = 2

[[hca]]
name = "beta/softib0"
guid = 0x0002c90200001234

[[cable]]
ends = ["leaf:1", "alpha:1"]

[[cable]]
ends = ["leaf:2", "alpha:2"]
width = "1x"
speed = "SDR"
state = "down"

[[cable]]
ends = ["beta/softib0:1", "leaf:36"]
)";

Topology parsed(std::string_view text) {
  std::string reason;
  auto topology = parse_toml_topology(text, reason);
  EXPECT_TRUE(topology) << reason;
  return topology ? *std::move(topology) : Topology{};
}

std::string refusal(std::string_view text) {
  std::string reason;
  EXPECT_FALSE(parse_toml_topology(text, reason));
  return reason;
}

// The small file with another text in one place.
std::string changed(std::string_view from, std::string_view to) {
  std::string text = kSmall;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TomlTopology, ElementsAndCablesHaveWhatTheFileSays) {
  const Topology topology = parsed(kSmall);
  ASSERT_EQ(topology.elements.size(), 3u);
  EXPECT_TRUE(topology.elements[0].is_switch());
  EXPECT_EQ(topology.elements[0].description, "leaf");
  EXPECT_EQ(topology.elements[0].ports, 36u);
  EXPECT_EQ(topology.elements[0].node_guid, fabric::position_guid(fabric::kFirstSwitch, 0, 0));
  EXPECT_EQ(topology.elements[1].description, "alpha softib0");
  EXPECT_EQ(topology.elements[1].ports, 2u);
  EXPECT_EQ(topology.elements[2].node_guid, 0x0002c90200001234u);
  EXPECT_EQ(topology.elements[2].ports, 1u);
  EXPECT_THAT(fabric::nodes_of(topology), ElementsAre("alpha", "beta"));
  ASSERT_EQ(topology.cables.size(), 3u);
  EXPECT_EQ(topology.cables[0], (fabric::TopologyCable{{0, 1}, {1, 1}, 2, 32, true}));
  EXPECT_EQ(topology.cables[1], (fabric::TopologyCable{{0, 2}, {1, 2}, 1, 1, false}));
  EXPECT_EQ(topology.cables[2], (fabric::TopologyCable{{2, 1}, {0, 36}, 2, 32, true}));
}

TEST(TomlTopology, EveryValueCanBeGiven) {
  const Topology topology = parsed(R"(
[[switch]]
name = "s"
description = "a \"switch\""
ports = 3
guid = "0xfe80000000000001"
system_image_guid = 0x77
port_guids = [0x78]
lids = [9]
lmc = 2
vendor = 0x2c9
device = 4113
enhanced_port0 = true
[[hca]]
name = "r"
router = true
lids = [12]
)");
  const fabric::TopologyElement& s = topology.elements[0];
  EXPECT_EQ(s.description, "a \"switch\"");
  EXPECT_EQ(s.node_guid, 0xfe80000000000001u);
  EXPECT_EQ(s.system_image_guid, 0x77u);
  EXPECT_THAT(s.port_guids, ElementsAre(0x78u));
  EXPECT_THAT(s.lids, ElementsAre(9));
  EXPECT_EQ(s.lmc, 2);
  EXPECT_EQ(s.vendor, 0x2c9u);
  EXPECT_EQ(s.device, 4113u);
  EXPECT_TRUE(s.enhanced_port0);
  EXPECT_TRUE(topology.elements[1].is_router);
  const std::string written = fabric::write_toml_topology(topology);
  EXPECT_EQ(fabric::sorted(parsed(written)), fabric::sorted(topology));
}

TEST(TomlTopology, WhatIsWrittenIsReadAgain) {
  for (const char* preset : {"back-to-back", "star:5", "fat-tree:levels=3,ports=4",
                             "torus:3x3,hosts=2", "random:nodes=20,switches=9,ports=12,seed=4"}) {
    SCOPED_TRACE(preset);
    std::string reason;
    const Topology wanted = *fabric::preset_topology(preset, reason);
    EXPECT_EQ(fabric::sorted(parsed(fabric::write_toml_topology(wanted))), fabric::sorted(wanted));
    fabric::Shape shape;
    shape.nodes = fabric::nodes_of(wanted);
    shape.topology = wanted;
    const std::string is = fabric::write_toml_topology(snapshot_of(*fabric::Fabric::create(shape)));
    EXPECT_EQ(fabric::write_toml_topology(parsed(is)).size(), is.size()) << "order apart";
  }
  const Topology small = parsed(kSmall);
  EXPECT_EQ(fabric::sorted(parsed(fabric::write_toml_topology(small))), fabric::sorted(small));
}

TEST(TomlTopology, OddDescriptionsAreText) {
  Topology topology = parsed(kSmall);
  topology.elements[0].description = "quote \" slash \\ umlaut \xc3\xa4 broken \xc3( end \xe2\x82";
  topology.elements[1].description = topology.elements[2].description = "the same";
  const Topology again = parsed(fabric::write_toml_topology(topology));
  EXPECT_EQ(again.elements[0].description, "quote \" slash \\ umlaut \xc3\xa4 broken ?( end ??");
  EXPECT_EQ(again.elements[2].description, "the same");
  EXPECT_EQ(again.cables, topology.cables);
}

TEST(TomlTopology, AMistakeHasALineAColumnAndWhatWouldBeRight) {
  const auto expect = [](const std::string& text, const char* wanted) {
    EXPECT_THAT(refusal(text), testing::StartsWith(wanted));
  };
  expect(changed("ports = 36", "ports = "), "4:9: ");
  expect(changed("ports = 36", "ports = 1000000"),
         "4:9: [[switch]]: \"ports\" is 1000000; a switch has 1 to 254");
  expect(changed("ports = 36", "ports = 0"), "4:9: [[switch]]: \"ports\" is 0; a switch has 1 to");
  expect(changed("ports = 2", "ports = \"2\""), "8:9: [[hca]]: \"ports\" must be a number from 0");
  expect(changed("ports = 36\n", ""), "2:1: [[switch]]: \"ports\" is missing");
  expect(changed("name = \"leaf\"\n", ""), "2:1: [[switch]]: \"name\" is missing");
  expect(changed("ports = 36", "port = 36"), "2:1: [[switch]]: \"ports\" is missing");
  expect(changed("ports = 2", "prots = 2"), "8:1: [[hca]]: \"prots\" is not known; known are ");
  expect(changed("[[cable]]", "[[cabel]]"), "14:3: top level: \"cabel\" is not known");
  expect(changed("\"beta/softib0\"", "\"alpha\""),
         "11:8: [[hca]]: \"name\" is \"alpha\", as in line 6; each needs its own");
  expect(changed("\"leaf\"", "\"\""), "3:8: [[switch]]: \"name\" is empty");
  expect(changed("0x0002c90200001234", "0x0253460000000000"),
         "12:8: [[hca]]: \"guid\" gives it 0x0253460000000000, which the element of line 6 has");
  expect(changed("0x0002c90200001234", "0x0253460000000001"),
         "12:8: [[hca]]: \"guid\" gives it 0x0253460000000002, which the element of line 6 has");
  expect(changed("0x0002c90200001234", "\"0xfg\""), "12:8: [[hca]]: \"guid\" must be a GUID");
  expect(changed("0x0002c90200001234", "0"), "12:8: [[hca]]: \"guid\" must be a GUID");
  expect(changed("\"alpha:1\"]", "\"gamma:1\"]"),
         "15:19: [[cable]]: \"ends\" has \"gamma:1\"; no [[switch]] or [[hca]] has the name");
  expect(changed("\"alpha:1\"]", "\"alpha:3\"]"),
         "15:19: [[cable]]: \"ends\" has \"alpha:3\"; \"alpha\" has ports 1 to 2");
  expect(changed("\"alpha:1\"]", "\"alpha:0\"]"), "15:19: ");
  expect(changed("\"alpha:1\"]", "\"alpha\"]"),
         "15:19: [[cable]]: \"ends\" has \"alpha\"; an end is \"NAME:PORT\"");
  expect(changed("\"alpha:1\"]", "\"alpha:1x\"]"), "15:19: ");
  expect(changed(", \"alpha:1\"]", "]"),
         "15:8: [[cable]]: \"ends\" has 1 entries; a cable has two");
  expect(
      changed("\"leaf:36\"]", "\"leaf:1\"]"),
      "24:27: [[cable]]: \"ends\" has \"leaf:1\", where the cable of line 15 is; a port takes one");
  expect(changed("\"leaf:36\"]", "\"beta/softib0:1\"]"), "24:27: ");
  expect(changed("\"1x\"", "\"3x\""),
         "19:9: [[cable]]: \"width\" is \"3x\"; widths are 1x, 4x, 8x");
  expect(changed("\"SDR\"", "\"fast\""), "20:9: [[cable]]: \"speed\" is \"fast\"; speeds are SDR,");
  expect(changed("\"down\"", "\"off\""), "21:9: [[cable]]: \"state\" is \"off\"; it is up or down");
}

TEST(TomlTopology, ASubnetThatCannotExistIsRefused) {
  EXPECT_THAT(refusal("# nothing\n"), HasSubstr("the topology has no element"));
  EXPECT_THAT(refusal("[[hca]]\nname = \"a\"\nports = 2\nlids = [1]\n"),
              HasSubstr("it has 2 ports with GUIDs, and needs one each or none"));
  EXPECT_THAT(refusal("[[hca]]\nname = \"a\"\nlids = [7]\n[[hca]]\nname = \"b\"\nlids = [7]\n"),
              HasSubstr("have the same LID, 0x7"));
}

}  // namespace
}  // namespace ib::softib
