// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/fabric_shape.h"

#include "setup/cli_error.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

using Names = std::vector<std::string>;

template <class Call>
std::pair<int, std::string> failure_of(Call call) {
  try {
    call();
  } catch (const CliError& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
  return {0, "no error"};
}

TEST(FabricShape, NodesAreANumberOrNames) {
  EXPECT_EQ(parse_nodes("1"), Names{"node0"});
  EXPECT_EQ(parse_nodes("3"), (Names{"node0", "node1", "node2"}));
  EXPECT_EQ(parse_nodes("server,client-1"), (Names{"server", "client-1"}));
  EXPECT_EQ(parse_nodes("32768").size(), 32768u);
}

TEST(FabricShape, BadNodesAreAUsageErrorThatSaysWhich) {
  for (const char* text : {"0", "32769", "99999999999999999999", "", ",", "a,", "a,,b", "a,a",
                           "a b", "-x", "7,8", "a/b"}) {
    EXPECT_EQ(failure_of([&] { parse_nodes(text); }).first, 2) << '"' << text << '"';
  }
  EXPECT_EQ(failure_of([&] { parse_nodes(std::string(64, 'x')); }).first, 2);
  EXPECT_NE(failure_of([] { parse_nodes("a,b c"); }).second.find("\"b c\""), std::string::npos);
}

TEST(FabricShape, SizesHaveUnitsAndBounds) {
  EXPECT_EQ(parse_memory_size("512M"), std::uint64_t{512} << 20);
  EXPECT_EQ(parse_memory_size("4g"), std::uint64_t{4} << 30);
  EXPECT_EQ(parse_memory_size("1GiB"), std::uint64_t{1} << 30);
  EXPECT_EQ(parse_memory_size("64mb"), std::uint64_t{64} << 20);
  EXPECT_EQ(parse_memory_size("33554432"), 33554432u);
  for (const char* text : {"", "-5", "0", "1", "1K", "1X", "1.5G", "G", "4G4", "4 G", "999999T",
                           "99999999999999999999", "1iB", "0x10000000"}) {
    const auto [code, said] = failure_of([&] { parse_memory_size(text); });
    EXPECT_EQ(code, 2) << text;
    EXPECT_NE(said.find("512M or 4G"), std::string::npos) << said;
  }
}

TEST(FabricShape, ANodeIsFoundByNumberOrName) {
  const Names nodes{"alice", "bob"};
  EXPECT_EQ(find_node(nodes, "", "f"), "alice");
  EXPECT_EQ(find_node(nodes, "1", "f"), "bob");
  EXPECT_EQ(find_node(nodes, "bob", "f"), "bob");
}

TEST(FabricShape, TheDigestOfNamesIsThatOfNamesInTheirOrder) {
  const std::string digest = names_digest({"alice", "bob"});
  EXPECT_EQ(names_digest({"alice", "bob"}), digest);
  EXPECT_NE(names_digest({"bob", "alice"}), digest);
  EXPECT_NE(names_digest({"alic", "ebob"}), digest);
  EXPECT_NE(names_digest({"alice"}), digest);
}

TEST(FabricShape, AnUnknownNodeIsAnErrorThatListsTheOthers) {
  const Names nodes{"alice", "bob"};
  for (const char* wanted : {"2", "carol", "-1", "99999999999"}) {
    const auto [code, text] = failure_of([&] { find_node(nodes, wanted, "lab"); });
    EXPECT_EQ(code, 3) << wanted;
    EXPECT_NE(text.find("alice, bob"), std::string::npos) << text;
    EXPECT_NE(text.find("lab"), std::string::npos) << text;
  }
  const auto many = failure_of([] { find_node(parse_nodes("100"), "x", "f"); });
  EXPECT_NE(many.second.find("100: node0"), std::string::npos) << many.second;
  EXPECT_EQ(many.second.find("node50"), std::string::npos) << "not all hundred";
}

}  // namespace
}  // namespace ib::softib
