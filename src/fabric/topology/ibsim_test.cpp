// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/ibsim.h"

#include "fabric/topology/ibnetdiscover.h"
#include "fabric/topology/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ib::fabric {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Two switches with two cables, one host at each.
constexpr const char* kSmall = R"(# comment
Switch	8 "S1"
[1]	"A"[1]
[3]	"S2"[3]	w=3
# between
[5]	"S2"[5]	w=2 s=3

Switch 8 "S2"	# the second one base port 0 lid 9 lmc 0
[1]	"B"
[3]	"S1"[3]	w=11
[5]	"S1"[5]	s=7

Hca	2 "A"
[1]	"S1"[1]

Ca	2 "B"	# "host B"
[1]	"S2"[1]
)";

Topology parsed(std::string_view text, const ReadIncluded& files = {}) {
  std::string reason;
  auto topology = parse_ibsim(text, files, reason);
  EXPECT_TRUE(topology) << reason;
  return topology ? *std::move(topology) : Topology{};
}

std::string refusal(std::string_view text, const ReadIncluded& files = {}) {
  std::string reason;
  EXPECT_FALSE(parse_ibsim(text, files, reason));
  return reason;
}

TEST(Ibsim, NamesAndNumbersAreThoseOfIbsim) {
  const Topology topology = parsed(kSmall);
  ASSERT_EQ(topology.elements.size(), 4u);
  EXPECT_EQ(topology.elements[0].description, "S1");
  EXPECT_EQ(topology.elements[0].node_guid, 0x200000u);
  EXPECT_EQ(topology.elements[1].description, "the second one");
  EXPECT_EQ(topology.elements[1].node_guid, 0x200001u);
  EXPECT_EQ(topology.elements[1].system_image_guid, 0x200001u);
  EXPECT_EQ(topology.elements[1].lids, std::vector<std::uint16_t>{9});
  EXPECT_EQ(topology.elements[2].node_guid, 0x100000u);
  EXPECT_EQ(topology.elements[3].node_guid, 0x100003u) << "after two ports";
  EXPECT_EQ(end_port_guid(topology.elements[3], 1), 0x100005u);
  EXPECT_EQ(topology.elements[3].description, "host B");
}

TEST(Ibsim, ACableIsWhatBothEndsCanBe) {
  const std::vector<TopologyCable> expected{{{0, 1}, {2, 1}, 2, 1, true},
                                            {{0, 3}, {1, 3}, 2, 1, true},
                                            {{0, 5}, {1, 5}, 2, 2, true},
                                            {{1, 1}, {3, 1}, 2, 1, true}};
  EXPECT_EQ(parsed(kSmall).cables, expected);
  EXPECT_THAT(refusal("Switch 2 \"S\"\n[1] \"S\"[2] w=1\n[2] \"S\"[1] w=2\n"),
              StartsWith("line 2, column 5: the two ends of the cable have no width or speed in"));
  const Topology fast =
      parsed("speed=7\nwidth = 0xb\nSwitch 2 \"S\"\n[1] \"S\"[2]\n[2] \"S\"[1]\n");
  EXPECT_EQ(fast.cables, (std::vector<TopologyCable>{{{0, 1}, {0, 2}, 8, 4, true}}));
  EXPECT_THAT(refusal("speed=8"), StartsWith("line 1, column 7: expected a mask from 1 to 7"));
  EXPECT_THAT(refusal("width=0"), StartsWith("line 1, column 7: expected a mask from 1 to 15"));
  EXPECT_THAT(refusal("Switch 2 \"S\"\n[1] \"S\"[2] w=16\n"),
              StartsWith("line 2, column 14: expected a mask from 1 to 15, found '16'"));
}

TEST(Ibsim, GuidsCanBeChosen) {
  const Topology topology = parsed(R"(
devid=0x10
vendid=0x2c9
sysimgguid=0x77
caguid=0x500
Hca 1 "A"
Hca 1 "B"
hcaguids+0x100
Hca 1 "C"
switchguid=0x900(980)
Switch 4 "S"
Switch 4 "T"
rtguid=0xa00
Rt 2 "R"
)");
  std::vector<std::uint64_t> guids;
  for (const TopologyElement& element : topology.elements) guids.push_back(element.node_guid);
  EXPECT_EQ(guids, (std::vector<std::uint64_t>{0x500, 0x502, 0x600, 0x900, 0x901, 0xa00}));
  EXPECT_EQ(topology.elements[0].system_image_guid, 0x77u);
  EXPECT_EQ(topology.elements[1].system_image_guid, 0x502u);
  EXPECT_EQ(topology.elements[0].vendor, 0x2c9u);
  EXPECT_EQ(topology.elements[1].vendor, 0u);
  EXPECT_EQ(topology.elements[5].device, 0x10u);
  EXPECT_EQ(topology.elements[3].port_guids, std::vector<std::uint64_t>{0x980});
  EXPECT_TRUE(topology.elements[4].port_guids.empty());
  EXPECT_TRUE(topology.elements[5].is_router);
  EXPECT_THAT(refusal("Rt 1 \"R\""), HasSubstr("expected a line with a GUID that is not 0"));
}

TEST(Ibsim, ModulesHaveNamesOfTheirOwn) {
  const ReadIncluded files = [](std::string_view name) -> std::optional<std::string> {
    if (name != "rack.net") return std::nullopt;
    return "Switch 4 \"leaf\"\n[1] \"H\"[1]\n@[4] \"up\"\n\nHca 1 \"H\"\n[1] \"leaf\"[1]\n";
  };
  const std::string text = R"(module="r1"
include "rack.net"
module="r2"
include "rack.net"
module=""
Switch 4 "spine"
[1] "r1@up"
[2] "r2@up" w=2
[3] "r2#leaf"[3]
)";
  const std::string good = text.substr(0, text.find("[3]"));
  const Topology topology = parsed(good, files);
  ASSERT_EQ(topology.elements.size(), 5u);
  EXPECT_EQ(topology.elements[2].description, "r2#leaf");
  ASSERT_EQ(topology.cables.size(), 4u);
  EXPECT_EQ(topology.cables[2].a, (TopologyEnd{4, 1}));
  EXPECT_EQ(topology.cables[2].b, (TopologyEnd{0, 4}));
  EXPECT_EQ(topology.cables[3].b, (TopologyEnd{2, 4}));
  EXPECT_EQ(refusal(text, files),
            "line 9, column 5: \"r2#leaf\" has no line for its port 3, which must lead back here");
  EXPECT_THAT(refusal(good + "[4] \"r1@up\"", files), HasSubstr("it must lead back here"));
  EXPECT_EQ(refusal("\ninclude \"none\"", files),
            "line 2, column 9: the file \"none\" cannot be read; put its lines here");
  EXPECT_THAT(refusal("include \"rack.net\""), HasSubstr("cannot be read"));
  EXPECT_EQ(
      refusal("include \"rack.net\"\ninclude \"rack.net\"", files),
      "rack.net, line 1, column 10: \"leaf\" stands in rack.net, line 1 already; each element "
      "has one place");
  const ReadIncluded itself = [](std::string_view) { return "include \"x\"\ninclude \"x\"\n"; };
  EXPECT_THAT(refusal("include \"x\"", itself), HasSubstr("9 deep"));
}

TEST(Ibsim, WhatIsWrittenIsReadAgain) {
  const Topology small = parsed(kSmall);
  EXPECT_EQ(parsed(write_ibsim(small)), small);
  for (const char* preset : {"star:9,speed=NDR,width=2x", "torus:3x3,hosts=2,speed=QDR,width=12x",
                             "fat-tree:hcas=40,ports=8", "dragonfly"}) {
    std::string reason;
    auto topology = preset_topology(preset, reason);
    ASSERT_TRUE(topology) << reason;
    topology->elements[0].port_guids = {0x42};
    topology->elements[0].lids = {7};
    topology->elements[1].system_image_guid = 0;
    topology->elements[2].description = "";
    const Topology again = parsed(write_ibsim(*topology));
    EXPECT_EQ(again.elements, topology->elements) << "in this order";
    EXPECT_EQ(sorted(again), sorted(*topology)) << preset;
    topology->elements[1].system_image_guid = topology->elements[1].node_guid;
    EXPECT_EQ(sorted(parsed(write_ibnetdiscover(*topology))), sorted(*topology))
        << "ibsim reads the files of ibnetdiscover";
  }
}

// ibsim takes the options of a port from all of its line, so that its comment may have no others.
TEST(Ibsim, AFastCableIsTheFastestThatIbsimHas) {
  std::string reason;
  const auto fast = preset_topology("star:1,speed=HDR", reason);
  ASSERT_TRUE(fast);
  EXPECT_THAT(write_ibsim(*fast), HasSubstr("[1]\t\"H-0253460000000000\"[1] w=2 s=4\t# 4xHDR\n"));
}

TEST(Ibsim, AMistakeHasALineAColumnAndWhatWasExpected) {
  EXPECT_THAT(
      refusal("Switch \"S\""),
      StartsWith("line 1, column 8: expected a number of ports from 1 to 254, found '\"S\"'"));
  EXPECT_THAT(refusal("Switch 8 S"),
              StartsWith("line 1, column 10: expected a name in quotation marks, found 'S'"));
  EXPECT_THAT(refusal("Switch 8 \"S\" x"),
              StartsWith("line 1, column 14: expected a comment that begins with #, found 'x'"));
  EXPECT_THAT(refusal("Switch 8 \"S#1\""),
              StartsWith("line 1, column 10: expected a name without # and @"));
  EXPECT_THAT(refusal("[1] \"S\"[1]"), StartsWith("line 1, column 1: expected a line that begins"));
  EXPECT_THAT(refusal("@[1] \"a\""), StartsWith("line 1, column 1: expected a line that begins"));
  EXPECT_THAT(refusal("Switch 8 \"S\"\n@[1] \"a\"\n@[2] \"a\""),
              HasSubstr("the alias \"@a\" stands in line 2 already"));
  EXPECT_THAT(refusal("Switch 8 \"S\"\n[1] \"S\"[2] x=1"),
              StartsWith("line 2, column 12: expected w=WIDTH, s=SPEED or a comment"));
  EXPECT_THAT(
      refusal("Switch 8 \"S\"\n[1] \"S\"[0]"),
      StartsWith("line 2, column 8: expected the number of a port, as in [1], found '[0]'"));
  EXPECT_THAT(refusal("do Unlink \"S\""), HasSubstr("a command of ibsim's console"));
  EXPECT_THAT(refusal("Switches 8 \"S\""), StartsWith("line 1, column 1: expected Switch, Ca,"));
  EXPECT_THAT(refusal("caguid 5"), StartsWith("line 1, column 8: expected = or +, found '5'"));
  EXPECT_THAT(refusal("caguid=-"), StartsWith("line 1, column 8: expected a number, as in 0x1"));
  EXPECT_THAT(refusal("module=x"), StartsWith("line 1, column 8: expected a name in quotation"));
  EXPECT_THAT(refusal("devid=0x10000"), StartsWith("line 1, column 7: expected a number of at"));
  EXPECT_THAT(refusal("Switch 8 \"S\"\n[1] \"T\"[1]"), HasSubstr("no element is named \"T\""));
  EXPECT_THAT(refusal(std::string("Switch 8 \"S\" # a\x01")),
              HasSubstr("a description of at most"));
}

TEST(Ibsim, WhatCannotBeIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal("Switch 1000000 \"S\""),
              StartsWith("line 1, column 8: expected a number of ports from 1 to 254, found "
                         "'1000000 "));
  EXPECT_THAT(refusal("Switch 8 \"S\"\n[9] \"S\"[1]"),
              StartsWith("line 2, column 2: expected a port from 1 to 8, found '9]"));
  EXPECT_THAT(refusal("Switch 8 \"S\"\n[1] \"S\"[9]"),
              StartsWith("line 2, column 5: \"S\" has no port 9; it has 1 to 8"));
  EXPECT_THAT(refusal("Switch 8 \"S\"\n[1] \"S\"[2]\n[1] \"S\"[3]"),
              StartsWith("line 3, column 1: port 1 stands in line 2 already"));
  EXPECT_THAT(refusal("Switch 8 \"S\"\nSwitch 8 \"S\""),
              StartsWith("line 2, column 10: \"S\" stands in line 1 already"));
  EXPECT_THAT(refusal("switchguid=0x5\nSwitch 8 \"A\"\nswitchguid=0x5\nSwitch 8 \"B\""),
              HasSubstr("switch \"B\" (0x0000000000000005) have the same node GUID, 0x5"));
}

// Topologies of Debian's packages, where they are installed or unpacked. A folder of its own:
// SOFTIB_TOPOLOGIES.
TEST(Ibsim, FilesOfDebianAreReadAndComeBack) {
  const char* wanted = std::getenv("SOFTIB_TOPOLOGIES");
  const std::filesystem::path folder =
      wanted != nullptr ? wanted : "/usr/share/doc/ibsim-utils/net-examples";
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || !name.starts_with("net")) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const Topology topology = parsed(text.str());
    EXPECT_EQ(parsed(write_ibsim(topology)), topology) << name;
    EXPECT_EQ(sorted(parsed(write_ibnetdiscover(topology))), sorted(topology)) << name;
    std::string reason;
    const auto discovered = parse_ibnetdiscover(write_ibnetdiscover(topology), reason);
    ASSERT_TRUE(discovered) << reason;
    EXPECT_EQ(sorted(*discovered), sorted(topology)) << name;
    ++count;
  }
  if (count == 0) GTEST_SKIP() << "no net files in " << folder << " (package ibsim-utils)";
}

}  // namespace
}  // namespace ib::fabric
