// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/ibnetdiscover.h"

#include "fabric/topology/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ib::fabric {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A switch, two adapters, one of them with two cables, and a router.
constexpr const char* kSmall = R"(#
# Topology file: generated on Tue Jun  5 14:15:10 2007
#
# Initiated from node 0002c90300000010 port 0002c90300000011

vendid=0x2c9
devid=0xc738
sysimgguid=0x2c90300000203
switchguid=0x2c90300000200(2c90300000200)
Switch	36 "S-0002c90300000200"		# "leaf 1 "east"" enhanced port 0 lid 2 lmc 0
[1]	"H-0002c90300000010"[1](2c90300000011) 		# "alpha HCA-1" lid 4 4xFDR
[2]	"H-0002c90300000010"[2](2c90300000012) 		# "alpha HCA-1" lid 5 4xFDR
[7]	"H-0002c90300000020"[1](2c90300000020) 		# "beta HCA-1" lid 6 1xSDR
[9]	"R-0002c90300000030"[1](2c90300000031) 		# "router" lid 65535 4xEDR
[35]	"S-0002c90300000200"[36]		# "leaf 1 "east"" lid 2 4xFDR10
[36]	"S-0002c90300000200"[35]		# "leaf 1 "east"" lid 2 4xFDR10

vendid=0x2c9
devid=0x1003
sysimgguid=0x2c90300000013
caguid=0x2c90300000010
Ca	2 "H-0002c90300000010"		# "alpha HCA-1"
[1](2c90300000011) 	"S-0002c90300000200"[1]		# lid 4 lmc 1 "leaf 1 "east"" lid 2 4xFDR
[2](2c90300000012) 	"S-0002c90300000200"[2]		# lid 5 lmc 1 "leaf 1 "east"" lid 2 4xFDR

vendid=0x2c9
devid=0x1013
caguid=0x2c90300000020
Ca	1 "H-0002c90300000020"		# "beta HCA-1"
[1](2c90300000020) 	"S-0002c90300000200"[7]		# lid 6 lmc 0 "leaf 1 "east"" lid 2 4xFDR

vendid=0x2c9
devid=0x1013
rtguid=0x2c90300000030
Rt	1 "R-0002c90300000030"		# "router"
[1](2c90300000031) 	"S-0002c90300000200"[9]		# lid 65535 lmc 0 "leaf 1 "east"" lid 2 4xEDR
)";

Topology parsed(std::string_view text) {
  std::string reason;
  auto topology = parse_ibnetdiscover(text, reason);
  EXPECT_TRUE(topology) << reason;
  return topology ? *std::move(topology) : Topology{};
}

std::string refusal(std::string_view text) {
  std::string reason;
  EXPECT_FALSE(parse_ibnetdiscover(text, reason));
  return reason;
}

// The small file with another text in one place.
std::string changed(std::string_view from, std::string_view to) {
  std::string text = kSmall;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Ibnetdiscover, ElementsHaveWhatTheFileSays) {
  const Topology topology = parsed(kSmall);
  ASSERT_EQ(topology.elements.size(), 4u);
  const TopologyElement& leaf = topology.elements[0];
  EXPECT_TRUE(leaf.is_switch());
  EXPECT_EQ(leaf.ports, 36u);
  EXPECT_EQ(leaf.node_guid, 0x2c90300000200u);
  EXPECT_EQ(leaf.system_image_guid, 0x2c90300000203u);
  EXPECT_EQ(leaf.description, "leaf 1 \"east\"");
  EXPECT_EQ(leaf.vendor, 0x2c9u);
  EXPECT_EQ(leaf.device, 0xc738u);
  EXPECT_TRUE(leaf.enhanced_port0);
  EXPECT_EQ(leaf.lids, std::vector<std::uint16_t>{2});
  EXPECT_TRUE(leaf.port_guids.empty()) << "that of the node";
  const TopologyElement& alpha = topology.elements[1];
  EXPECT_FALSE(alpha.is_switch());
  EXPECT_EQ(alpha.ports, 2u);
  EXPECT_EQ(alpha.lids, (std::vector<std::uint16_t>{4, 5}));
  EXPECT_EQ(alpha.lmc, 1);
  EXPECT_TRUE(alpha.port_guids.empty()) << "those that follow the node's";
  const TopologyElement& beta = topology.elements[2];
  EXPECT_EQ(beta.port_guids, std::vector<std::uint64_t>{0x2c90300000020});
  EXPECT_EQ(beta.system_image_guid, 0u);
  EXPECT_FALSE(beta.is_router);
  EXPECT_TRUE(topology.elements[3].is_router);
  EXPECT_TRUE(topology.elements[3].lids.empty()) << "65535 is none";
}

TEST(Ibnetdiscover, CablesAreThoseOnWhichBothEndsAgree) {
  const Topology topology = parsed(kSmall);
  const std::vector<TopologyCable> expected{{{0, 1}, {1, 1}, 2, 16, true},
                                            {{0, 2}, {1, 2}, 2, 16, true},
                                            {{0, 7}, {2, 1}, 1, 1, true},
                                            {{0, 9}, {3, 1}, 2, 32, true},
                                            {{0, 35}, {0, 36}, 2, 8, true}};
  EXPECT_EQ(topology.cables, expected) << "the worse of both: 1xSDR";
}

TEST(Ibnetdiscover, WhatIsWrittenIsReadAgain) {
  const Topology topology = parsed(kSmall);
  const std::string written = write_ibnetdiscover(topology);
  EXPECT_EQ(parsed(written), topology);
  EXPECT_EQ(write_ibnetdiscover(parsed(written)), written);
  EXPECT_TRUE(is_ibnetdiscover(written));
}

TEST(Ibnetdiscover, ItWritesWhatTheProgramWrites) {
  std::string written = write_ibnetdiscover(parsed(changed("lid 6 1xSDR", "lid 6 4xFDR")));
  std::string original = changed("lid 6 1xSDR", "lid 6 4xFDR");
  written = written.substr(written.find("vendid"));
  original = original.substr(original.find("vendid"));
  // The one LID that is none.
  for (std::size_t at = 0; (at = original.find("lid 65535")) != std::string::npos;) {
    original.replace(at, 9, "lid 0");
  }
  // It puts a blank after the GUID of an adapter's peer, and none before it on a switch.
  EXPECT_EQ(written, original);
}

TEST(Ibnetdiscover, PresetsComeBack) {
  for (const char* preset : {"back-to-back", "star:9,speed=NDR,width=12x", "torus:3x3,hosts=2",
                             "fat-tree:hcas=40,ports=8,speed=sdr,width=2x", "dragonfly",
                             "random:nodes=50,seed=3,width=8x,speed=QDR"}) {
    std::string reason;
    const auto topology = preset_topology(preset, reason);
    ASSERT_TRUE(topology) << reason;
    EXPECT_EQ(sorted(parsed(write_ibnetdiscover(*topology))), sorted(*topology)) << preset;
  }
}

TEST(Ibnetdiscover, ACableThatIsDownIsNotDiscovered) {
  Topology topology = parsed(kSmall);
  topology.cables[2].is_up = false;
  const Topology again = parsed(write_ibnetdiscover(topology));
  EXPECT_EQ(again.cables.size(), 4u);
  EXPECT_EQ(again.elements.size(), 4u);
}

TEST(Ibnetdiscover, GroupsAndFullInformationAreReadToo) {
  const std::string text = R"(
Chassis 1 (guid 0x8f10400400e2d)
Hostname: alpha

# Spine Nodes
vendid=0x8f1
devid=0x5a06
sysimgguid=0x8f10400400e30		# Chassis 1
switchguid=0x8f10400400e2d(8f10400400e2d)	# ISR9288 spine 1
Switch	24 "S-0008f10400400e2d"		# "ISR9288 Voltaire" base port 0 lid 3 lmc 0
[5][ext 3]	"H-0008f10400000010"[1](8f10400000011) 		# "MT23108" lid 4 4xSDR s=1 w=2 v=4

Non-Chassis Nodes

vendid=0x8f1
devid=0x5a44
caguid=0x8f10400000010
Ca	2 "H-0008f10400000010"		# "MT23108" (scp)
[1](8f10400000011) 	"S-0008f10400400e2d"[5][ext 3]		# lid 4 lmc 0 "ISR9288 Voltaire" lid 3 4xSDR s=1 w=2 v=4
)";
  const Topology topology = parsed(text);
  ASSERT_EQ(topology.elements.size(), 2u);
  EXPECT_EQ(topology.elements[0].system_image_guid, 0x8f10400400e30u);
  EXPECT_EQ(topology.elements[1].description, "MT23108");
  EXPECT_EQ(topology.cables, (std::vector<TopologyCable>{{{0, 5}, {1, 1}, 2, 1, true}}));
}

TEST(Ibnetdiscover, UnknownSpeedsAndLinesOfWindowsAreRead) {
  std::string text = changed("4xEDR\n", "?????\n");
  text.replace(text.rfind("4xEDR"), 5, "4x???");
  const Topology topology = parsed(text);
  EXPECT_EQ(topology.cables[3].width, 2);
  EXPECT_EQ(topology.cables[3].speed, TopologyCable{}.speed);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\r\n");
  }
  EXPECT_EQ(parsed(text), topology);
}

TEST(Ibnetdiscover, AMistakeHasALineAColumnAndWhatWasExpected) {
  EXPECT_EQ(refusal(changed("Switch\t36", "Switch\t1000000")),
            "line 10, column 8: expected a number of ports from 1 to 254, found '1000000 "
            "\"S-0002c90300000...'");
  EXPECT_EQ(refusal(changed("Switch\t36", "Swich\t36")),
            "line 10, column 1: expected Switch, Ca, Rt, a port as in [1], vendid=, devid=, "
            "sysimgguid=, switchguid=, caguid=, rtguid= or a comment that begins with #, found "
            "'Swich 36 \"S-0002c9030000...'");
  EXPECT_EQ(refusal(changed("\"H-0002c90300000020\"\t", "\"H-0002c90300000021\"\t")),
            "line 29, column 6: expected the GUID that stands above, 0002c90300000020, found "
            "'\"H-0002c90300000021\"  # ...'");
  EXPECT_THAT(refusal(changed("\"H-0002c90300000020\"\t", "\"S-0002c90300000020\"\t")),
              StartsWith("line 29, column 6: expected H- and a GUID of 16 hexadecimal digits"));
  EXPECT_THAT(refusal(changed("[7]\t", "[37]\t")),
              StartsWith("line 13, column 2: expected a port from 1 to 36, found '37]"));
  EXPECT_THAT(refusal(changed("[7]\t", "[0]\t")), StartsWith("line 13, column 2: expected a port"));
  EXPECT_THAT(refusal(changed("[7]\t", "[x]\t")),
              StartsWith("line 13, column 1: expected the number of a port, as in [1], found"));
  EXPECT_THAT(refusal(changed("[7]\t\"", "[7]\t")),
              StartsWith("line 13, column 5: expected the name of the other end in quotation"));
  EXPECT_THAT(refusal(changed("(2c90300000011) \t\"S", "(x) \t\"S")),
              StartsWith("line 23, column 5: expected a GUID in hexadecimal digits and ), found"));
  EXPECT_THAT(refusal(changed("0xc738", "0x1c738")),
              StartsWith("line 7, column 14: expected a hexadecimal number of at most 0xffff"));
  EXPECT_THAT(refusal(changed("lmc 0\n[1]", "lmc 0\n\n[1]")),
              StartsWith("line 12, column 1: expected a line that begins with Switch, Ca or Rt"));
  EXPECT_THAT(refusal(changed("alpha HCA-1\"\n[1]", std::string(65, 'x') + "\"\n[1]")),
              HasSubstr("expected a description of at most 64 letters"));
  EXPECT_EQ(refusal(""),
            "the topology has no element; it needs one channel adapter or switch at "
            "least");
}

TEST(Ibnetdiscover, CablesToNowhereAreRefused) {
  EXPECT_EQ(refusal(changed("\"H-0002c90300000020\"[1]", "\"H-0002c90300000099\"[1]")),
            "line 13, column 5: no element is named \"H-0002c90300000099\"; a cable leads to one "
            "that the file has");
  EXPECT_EQ(refusal(changed("\"H-0002c90300000020\"[1]", "\"H-0002c90300000020\"[2]")),
            "line 13, column 5: \"H-0002c90300000020\" has no port 2; it has 1 to 1");
  EXPECT_EQ(refusal(changed("\"H-0002c90300000020\"[1]", "\"H-0002c90300000010\"[1]")),
            "line 13, column 5: line 23 says that port 1 of \"H-0002c90300000010\" leads to port 1 "
            "of \"S-0002c90300000200\"; it must lead back here");
  EXPECT_EQ(refusal(changed("[7]\t", "[8]\t")),
            "line 13, column 5: line 30 says that port 1 of \"H-0002c90300000020\" leads to port 7 "
            "of \"S-0002c90300000200\"; it must lead back here");
  EXPECT_EQ(
      refusal(changed("[7]\t", "#[7]\t")),
      "line 30, column 21: \"S-0002c90300000200\" has no line for its port 7, which must lead "
      "back here");
  EXPECT_EQ(refusal(changed("[7]\t", "[2]\t")),
            "line 13, column 1: port 2 stands in line 12 already; a port has one cable");
  EXPECT_EQ(refusal(changed("\"S-0002c90300000200\"[36]", "\"S-0002c90300000200\"[35]")),
            "line 15, column 6: the cable leads to the port where it begins; it needs two ports");
}

TEST(Ibnetdiscover, GuidsAreThereOnce) {
  std::string text = kSmall;
  text += "\nCa 1 \"H-0002c90300000010\" # \"twice\"\n";
  EXPECT_EQ(refusal(text),
            "line 38, column 6: \"H-0002c90300000010\" stands in line 22 already; "
            "each element has one place");
  EXPECT_THAT(refusal(changed("[1](2c90300000031) \t\"S", "[1](2c90300000011) \t\"S")),
              HasSubstr("have the same port GUID, 0x2c90300000011"));
}

TEST(Ibnetdiscover, OtherFilesAreNot) {
  EXPECT_FALSE(is_ibnetdiscover("Switch 8 \"Switch1\"\n[1] \"Hca1\"[1]\n"));
  EXPECT_FALSE(is_ibnetdiscover("Switch 8 \"S-000000000000000g\"\n"));
  EXPECT_FALSE(is_ibnetdiscover("Switch 8 \"S-0000000000000000\"\n"));
  EXPECT_FALSE(is_ibnetdiscover("[fabric]\nnodes = 3\n"));
  EXPECT_FALSE(is_ibnetdiscover(""));
}

}  // namespace
}  // namespace ib::fabric
