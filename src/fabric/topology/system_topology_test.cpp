// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/system_topology.h"

#include "fabric/topology/ibnetdiscover.h"
#include "fabric/topology/presets.h"

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

// A box of two leaf boards, the second of which may be a faster kind, and a spine chip.
constexpr const char* kBox = R"(# a box
SYSTEM LEAF,LEAF:slow

NODE SW 4 CHIP U1
  1 -> P1
  2 -> P2
  3 -> UP

SYSTEM LEAF:fast

NODE SW 4 CHIP U1
  1 -12x-10G-> P1
  3 -> UP

TOPSYSTEM Box, BX-2

main/U1=isChaBma

NODE SW 2 CHIP spine
  1 -4x-5G-> leaf1 UP
  2 -4x-5G-> leaf2 UP

SUBSYSTEM LEAF leaf1
  P1 -> L1/P1
  P2 -> L1/P2
  UP -4x-5G-> spine 1

SUBSYSTEM LEAF leaf2
  P1 -> L2/P1
  UP -> spine 2
)";
constexpr const char* kAdapter = "TOPSYSTEM Card,C1\n\nNODE CA 2 CHIP U1\n 1 -> P1\n 2 -> P2\n";

SystemLibrary library() {
  SystemLibrary result;
  std::string reason;
  EXPECT_EQ(result.add(kBox, "Box.ibnl", reason), Status::Ok) << reason;
  EXPECT_EQ(result.add(kAdapter, "Card.ibnl", reason), Status::Ok) << reason;
  return result;
}

Topology parsed(std::string_view text) {
  std::string reason;
  auto topology = parse_system_topology(text, library(), reason);
  EXPECT_TRUE(topology) << reason;
  return topology ? *std::move(topology) : Topology{};
}

std::string refusal(std::string_view text) {
  std::string reason;
  EXPECT_FALSE(parse_system_topology(text, library(), reason));
  return reason;
}

std::string bad_library(std::string_view text) {
  SystemLibrary result;
  std::string reason;
  EXPECT_EQ(result.add(text, "x.ibnl", reason), Status::Malformed);
  return reason;
}

TEST(SystemTopology, ProductsBecomeTheirChips) {
  const Topology topology = parsed("Box B\n  L1/P2 -> Card H1 P1\n  L2/P1 -12x-> C1 H1 P2\n");
  std::vector<std::string> names;
  for (const TopologyElement& element : topology.elements) names.push_back(element.description);
  EXPECT_EQ(names, (std::vector<std::string>{"B/spine", "B/leaf1/U1", "B/leaf2/U1", "H1"}));
  EXPECT_EQ(topology.elements[0].node_guid, switch_guid(0));
  EXPECT_EQ(topology.elements[3].node_guid, 0x0253460000000000u);
  const std::vector<TopologyCable> expected{{{0, 1}, {1, 3}, 2, 2, true},
                                            {{0, 2}, {2, 3}, 2, 2, true},
                                            {{1, 2}, {3, 1}, 2, 1, true},
                                            {{2, 1}, {3, 2}, 8, 1, true}};
  EXPECT_EQ(topology.cables, expected);
}

TEST(SystemTopology, BoardsAreLeftOutOrOfAnotherKind) {
  const Topology topology =
      parsed("Card H1\n P1 -> BX-2 B L2/P1\n\nBX-2 B CFG: leaf1=R, leaf2=fast\n");
  ASSERT_EQ(topology.elements.size(), 3u);
  EXPECT_EQ(topology.elements[2].description, "B/leaf2/U1");
  EXPECT_EQ(topology.cables.size(), 2u);
  EXPECT_THAT(refusal("Box B CFG: leaf1=R\n L1/P1 -> Card H P1\n"),
              StartsWith("line 2, column 2: expected a connector of \"B\""));
  EXPECT_EQ(refusal("Box B CFG: leaf1=8x\n"),
            "\"B/leaf1\" is to be a board LEAF:8x; its IBNL file has none of this name");
  EXPECT_EQ(refusal("Box B CFG: leaf3=R\n"), "\"B\" has no board leaf3, of which its CFG: says R");
  EXPECT_THAT(refusal("Box B CFG: spine=R\n"), HasSubstr("\"B\" has no board spine"));
  EXPECT_THAT(refusal("Box B CFG: leaf2=fast\n L2/P2 -> Card H P1\n"),
              HasSubstr("expected a connector of \"B\""));
}

TEST(SystemTopology, ACableMayHaveALineAtEachEnd) {
  const Topology topology = parsed("Box B\n L1/P1 -> Card H P2\n\nCard H\n P2 -> Box B L1/P1\n");
  EXPECT_EQ(topology.cables.size(), 3u);
  EXPECT_THAT(refusal("Box B\n L1/P1 -> Card H P2\n L1/P2 -> Card H P2\n"),
              StartsWith("line 3, column 2: one of the two ports has another cable"));
  EXPECT_THAT(refusal("Box B\n L1/P1 -> Card H P2\n L1/P1 -> Card H P1\n"),
              StartsWith("line 3, column 2: one of the two ports has another cable"));
}

TEST(SystemTopology, AMistakeHasALineAColumnAndWhatWasExpected) {
  EXPECT_EQ(refusal("Bax B\n"),
            "line 1, column 1: expected the type of a product that an IBNL "
            "file has, found 'Bax B'");
  EXPECT_THAT(refusal("Box\n"), StartsWith("line 1, column 4: expected the name of the product"));
  EXPECT_THAT(refusal("Box B X\n"), StartsWith("line 1, column 7: expected CFG: or the end of"));
  EXPECT_THAT(refusal("Box B CFG: leaf1\n"), StartsWith("line 1, column 12: expected BOARD=R"));
  EXPECT_THAT(refusal(" P1 -> Card H P1\n"), StartsWith("line 1, column 2: expected a product"));
  EXPECT_THAT(
      refusal("Box B\n P1 -3x-> Card H P1\n"),
      StartsWith("line 2, column 5: expected an arrow, as in ->, -4x-> or -12x-10G->, found "
                 "'-3x-> Card"));
  EXPECT_THAT(refusal("Box B\n P1 -4x-7G-> Card H P1\n"), HasSubstr("expected an arrow"));
  EXPECT_THAT(refusal("Box B\n L1/P1 -> Card H P3\n"),
              StartsWith("line 2, column 18: expected a connector of \"H\""));
  EXPECT_THAT(refusal("Box B\n L1/P1 -> Card B P1\n"), HasSubstr("\"B\" is of type Box"));
  EXPECT_THAT(refusal(""), HasSubstr("has no element"));
}

TEST(SystemTopology, AMistakeInALibraryHasItsFile) {
  EXPECT_THAT(bad_library("NODE SW 4 X U1\n"),
              StartsWith("x.ibnl, line 1, column 1: expected TOPSYSTEM or SYSTEM and names"));
  EXPECT_THAT(bad_library("SYSTEM A\nNODE XX 4 X U1\n"), HasSubstr("expected SW or CA, found 'XX"));
  EXPECT_THAT(bad_library("SYSTEM A\nNODE SW 1000000 X U1\n"),
              StartsWith("x.ibnl, line 2, column 9: expected a number of ports from 1 to 254"));
  EXPECT_THAT(bad_library("SYSTEM A\nNODE SW 4 X\n"), HasSubstr("expected the name of the part"));
  EXPECT_THAT(bad_library("SYSTEM A\n1 -> P1\n"), HasSubstr("expected TOPSYSTEM, SYSTEM, NODE"));
  EXPECT_THAT(bad_library("SYSTEM A\nx\n"), HasSubstr("expected TOPSYSTEM, SYSTEM, NODE"));
  EXPECT_THAT(bad_library("SYSTEM A\nNODE SW 4 X U\n1 ->\n"), HasSubstr("expected a connector"));
}

TEST(SystemTopology, BoardsOnThemselvesHaveAnEnd) {
  SystemLibrary recursive;
  std::string reason;
  std::string text = "SYSTEM B\nSUBSYSTEM B a\nSUBSYSTEM B b\nTOPSYSTEM T\nSUBSYSTEM B c\n";
  ASSERT_EQ(recursive.add(text, "x", reason), Status::Ok) << reason;
  EXPECT_EQ(parse_system_topology("T t\n", recursive, reason).error(), Status::LimitExceeded);
  EXPECT_THAT(reason, HasSubstr("makes the subnet too large"));
}

// Those of Debian's libibdm1, where it is installed or unpacked.
TEST(SystemTopology, FilesOfDebianAreReadAndComeBack) {
  const char* wanted = std::getenv("SOFTIB_TOPOLOGIES");
  const std::filesystem::path folder =
      wanted != nullptr ? wanted : "/usr/lib/x86_64-linux-gnu/ibdm1.5.7/ibnl";
  std::error_code error;
  std::vector<std::filesystem::path> files;
  SystemLibrary all;
  std::string reason;
  const auto read = [](const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.path().extension() == ".topo") files.push_back(entry.path());
    if (entry.path().extension() != ".ibnl") continue;
    EXPECT_EQ(all.add(read(entry.path()), entry.path().filename().string(), reason), Status::Ok)
        << reason;
  }
  if (files.empty()) GTEST_SKIP() << "no .topo files in " << folder << " (package libibdm1)";
  for (const auto& file : files) {
    const auto topology = parse_system_topology(read(file), all, reason);
    ASSERT_TRUE(topology) << file << ": " << reason;
    const auto again = parse_ibnetdiscover(write_ibnetdiscover(*topology), reason);
    ASSERT_TRUE(again) << file << ": " << reason;
    EXPECT_EQ(sorted(*again), sorted(*topology)) << file;
    if (file.filename() != "RhinoBased512.topo") continue;
    // As many as in its RhinoBased512.lst.
    EXPECT_EQ(topology->elements.size(), 728u);
    EXPECT_EQ(topology->cables.size(), 2752u);
  }
}

}  // namespace
}  // namespace ib::fabric
