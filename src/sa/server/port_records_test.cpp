// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records of ports: of adapters and of all ports of switches.
#include "sa/records/node_record.h"
#include "sa/records/table_records.h"
#include "sa/test/switch_fixture_test.h"

namespace ib::sa {
namespace {

using PortRecordsTest = SwitchTest;

TEST_F(PortRecordsTest, EachEndPortHasANodeRecord) {
  const auto nodes = all<NodeRecord>(attribute::kNodeRecord, 0, {});
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[2].info.node_type, 2);
  EXPECT_EQ(nodes[2].description[1], '2');
  NodeRecord wanted;
  wanted.info.node_type = 2;
  EXPECT_EQ(all(attribute::kNodeRecord, node_component::kNodeType, wanted).size(), 2u);
}

TEST_F(PortRecordsTest, PortInfoIsOfAllPortsOfASwitch) {
  EXPECT_EQ(all<PortInfoRecord>(attribute::kPortInfoRecord, 0, {}).size(), 2u + 4 + 18);
  PortInfoRecord wanted;
  wanted.lid = lid(kSwitch);
  const auto ports = all(attribute::kPortInfoRecord, port_info_component::kLid, wanted);
  ASSERT_EQ(ports.size(), 4u);
  EXPECT_EQ(ports[0].info.lid, lid(kSwitch));
  EXPECT_EQ(ports[3].port, 3);
  EXPECT_EQ(ports[3].lid, lid(kSwitch)) << "by which its switch is addressed";
  EXPECT_EQ(ports[3].info.lid, 0) << "it has none itself";
  wanted.port = 2;
  constexpr auto kBoth = port_info_component::kLid | port_info_component::kPort;
  EXPECT_EQ(all(attribute::kPortInfoRecord, kBoth, wanted).size(), 1u);
  wanted.port = 4;
  EXPECT_EQ(all(attribute::kPortInfoRecord, kBoth, wanted).size(), 0u);
  EXPECT_EQ(all(attribute::kPortInfoRecord, port_info_component::kPort, wanted).size(), 1u)
      << "of the other switch";
}

TEST_F(PortRecordsTest, APortOfASwitchIsSeenInItsOwnPartitions) {
  subnet.ports[0].pkeys = {0x8001};
  subnet.ports[kSwitch].other_pkeys[0] = {0x8001};
  subnet.ports[kSwitch].other_pkeys[1] = {};
  const auto ports = all<PortInfoRecord>(attribute::kPortInfoRecord, 0, {});
  ASSERT_EQ(ports.size(), 3u);
  EXPECT_EQ(ports[0].lid, lid(0));
  EXPECT_EQ(ports[1].port, 1);
  EXPECT_EQ(ports[2].port, 2) << "one without a table lets all pass";
  EXPECT_EQ(all<PortInfoRecord>(attribute::kPortInfoRecord, 0, {}, kSmKey).size(), 24u);
}

TEST_F(PortRecordsTest, GuidsAreOfEndPortsInBlocks) {
  const auto blocks = all<GuidInfoRecord>(attribute::kGuidInfoRecord, 0, {});
  ASSERT_EQ(blocks.size(), 8u);
  EXPECT_EQ(blocks[5].lid, lid(kSwitch));
  EXPECT_EQ(blocks[5].block, 1);
  EXPECT_EQ(blocks[5].guids[0], 1);
  GuidInfoRecord wanted = blocks[5];
  constexpr auto kBoth = guid_info_component::kLid | guid_info_component::kBlock;
  EXPECT_EQ(all(attribute::kGuidInfoRecord, kBoth, wanted).size(), 1u);
  wanted.block = 2;
  EXPECT_EQ(all(attribute::kGuidInfoRecord, kBoth, wanted).size(), 0u);
  subnet.ports[0].pkeys = {0x8001};
  EXPECT_EQ(all<GuidInfoRecord>(attribute::kGuidInfoRecord, 0, {}).size(), 2u);
}

TEST_F(PortRecordsTest, PartitionTablesAreShownToTheTrustedOnly) {
  EXPECT_EQ(table(attribute::kPkeyTableRecord, 0, PkeyTableRecord{}).status,
            sa_status::kRequestInvalid);
  const auto blocks = all<PkeyTableRecord>(attribute::kPkeyTableRecord, 0, {}, kSmKey);
  ASSERT_EQ(blocks.size(), 2u * 24);
  PkeyTableRecord wanted;
  wanted.lid = lid(kSwitch);
  wanted.port = 3;
  wanted.block = 1;
  constexpr auto kOne = pkey_component::kLid | pkey_component::kPort | pkey_component::kBlock;
  const auto one = all(attribute::kPkeyTableRecord, kOne, wanted, kSmKey);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].pkeys[0], 1);
  EXPECT_EQ(one[0].pkeys[1], 3);
  wanted.lid = lid(0);
  EXPECT_EQ(all(attribute::kPkeyTableRecord, kOne, wanted, kSmKey).size(), 1u)
      << "the LID names the port of an adapter";
}

TEST_F(PortRecordsTest, ASwitchHasALaneTableForEachPairOfPorts) {
  EXPECT_EQ(all<SlToVlRecord>(attribute::kSlToVlRecord, 0, {}).size(), 2u + 4 * 4 + 18 * 18);
  SlToVlRecord wanted;
  wanted.lid = lid(kSwitch);
  wanted.in = 2;
  wanted.out = 3;
  constexpr auto kIn = sl_to_vl_component::kLid | sl_to_vl_component::kIn;
  EXPECT_EQ(all(attribute::kSlToVlRecord, kIn, wanted).size(), 4u);
  const auto one = all(attribute::kSlToVlRecord, kIn | sl_to_vl_component::kOut, wanted);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].lanes[0], 2);
  EXPECT_EQ(one[0].lanes[1], 3);
  wanted.lid = lid(0);
  EXPECT_EQ(all(attribute::kSlToVlRecord, kIn, wanted).size(), 1u) << "an adapter has one table";
  wanted.lid = lid(kSwitch);
  wanted.in = 4;
  EXPECT_EQ(all(attribute::kSlToVlRecord, kIn, wanted).size(), 0u);
}

TEST_F(PortRecordsTest, ArbitrationHasFourPartsOfEachPort) {
  EXPECT_EQ(all<VlArbitrationRecord>(attribute::kVlArbitrationRecord, 0, {}).size(), 4u * 24);
  VlArbitrationRecord wanted;
  wanted.lid = lid(kSwitch);
  wanted.port = 1;
  wanted.block = 3;
  constexpr auto kPort = arbitration_component::kLid | arbitration_component::kPort;
  EXPECT_EQ(all(attribute::kVlArbitrationRecord, kPort, wanted).size(), 4u);
  const auto one =
      all(attribute::kVlArbitrationRecord, kPort | arbitration_component::kBlock, wanted);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].lanes[0], 3);
  wanted.lid = lid(0);
  wanted.port = 0;
  EXPECT_EQ(all(attribute::kVlArbitrationRecord, kPort, wanted).size(), 4u)
      << "the LID names the port of an adapter";
  wanted.lid = lid(kSwitch);
  wanted.port = 4;
  EXPECT_EQ(all(attribute::kVlArbitrationRecord, kPort, wanted).size(), 0u);
}

class SmallTablesTest : public SaTest {
 protected:
  SmallTablesTest() : SaTest({.answer_bytes = 10 * stride_of(PortInfoRecord::kSize)}) {}
};
TEST_F(SmallTablesTest, WhatDoesNotFitIsRefusedAndNotCutOff) {
  subnet.make_switch(3, 6);
  EXPECT_EQ(ask(0, method::kGetTable, attribute::kPortInfoRecord, 0, PortInfoRecord{}).count, 10u);
  subnet.make_switch(3, 7);
  const Answer answer = ask(0, method::kGetTable, attribute::kPortInfoRecord, 0, PortInfoRecord{});
  EXPECT_EQ(answer.status, sa_status::kNoResources);
  EXPECT_EQ(answer.count, 0u);
}

class LargeSubnetTest : public SaTest {
 protected:
  // 41,000 ports: 160 switches of 255 others each.
  LargeSubnetTest() {
    subnet.ports.assign(160, subnet.ports[0]);
    for (std::size_t i = 0; i < subnet.ports.size(); ++i) {
      subnet.ports[i].lid = static_cast<std::uint16_t>(i + 1);
      subnet.ports[i].gids[0] = verbs::make_gid(kPrefix, i + 1);
      subnet.make_switch(i, 255);
    }
  }
};
TEST_F(LargeSubnetTest, AllPortsOfALargeSubnetAreInOneAnswer) {
  EXPECT_EQ(ask(0, method::kGetTable, attribute::kPortInfoRecord, 0, PortInfoRecord{}).count,
            160u * 256);
  EXPECT_EQ(
      ask(0, method::kGetTable, attribute::kVlArbitrationRecord, 0, VlArbitrationRecord{}).count,
      160u * 256 * 4);
}

}  // namespace
}  // namespace ib::sa
