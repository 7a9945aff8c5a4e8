// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records of links, switches and managers.
#include "sa/records/table_records.h"
#include "sa/test/switch_fixture_test.h"

namespace ib::sa {
namespace {

using SubnetRecordsTest = SwitchTest;

TEST_F(SubnetRecordsTest, EachLinkIsThereFromBothEnds) {
  const auto links = all<LinkRecord>(attribute::kLinkRecord, 0, {});
  ASSERT_EQ(links.size(), 8u);
  EXPECT_EQ(links[0], (LinkRecord{lid(0), 1, 1, lid(2)}));
  EXPECT_EQ(links[2], (LinkRecord{lid(2), 1, 1, lid(0)}));
}

TEST_F(SubnetRecordsTest, LinksAreChosenByEitherEnd) {
  LinkRecord wanted{lid(2), 2, 2, lid(3)};
  EXPECT_EQ(all(attribute::kLinkRecord, link_component::kFromLid, wanted).size(), 3u);
  EXPECT_EQ(all(attribute::kLinkRecord, link_component::kToLid, wanted).size(), 3u);
  constexpr auto kBothLids = link_component::kFromLid | link_component::kToLid;
  EXPECT_EQ(all(attribute::kLinkRecord, kBothLids, wanted).size(), 2u);
  const auto one = all(attribute::kLinkRecord, kBothLids | link_component::kToPort, wanted);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0], wanted);
  EXPECT_EQ(all(attribute::kLinkRecord, link_component::kFromPort, wanted).size(), 2u);
  wanted.to_lid = 999;
  EXPECT_EQ(all(attribute::kLinkRecord, kBothLids, wanted).size(), 0u);
}

TEST_F(SubnetRecordsTest, AnyLidOfAPortNamesItsLinks) {
  subnet.ports[0].lmc = 1;
  const auto one = all(attribute::kLinkRecord, link_component::kFromLid,
                       LinkRecord{static_cast<std::uint16_t>(lid(0) + 1), 0, 0, 0});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].from_lid, lid(0) + 1);
}

TEST_F(SubnetRecordsTest, ALinkIsSeenIfBothItsEndsAre) {
  subnet.ports[2].other_pkeys[1] = {0x8002};
  EXPECT_EQ(all<LinkRecord>(attribute::kLinkRecord, 0, {}).size(), 6u);
  subnet.ports[3].other_pkeys[1] = {0x8002};
  EXPECT_EQ(all<LinkRecord>(attribute::kLinkRecord, 0, {}).size(), 6u);
  EXPECT_EQ(all<LinkRecord>(attribute::kLinkRecord, 0, {}, kSmKey).size(), 8u);
  // The requester sees one of these ends only, though they are in one partition.
  subnet.ports[2].other_pkeys[1] = {0xffff, 0x8002};
  EXPECT_EQ(all<LinkRecord>(attribute::kLinkRecord, 0, {}).size(), 6u);
  subnet.ports[1].is_up = false;
  EXPECT_EQ(all<LinkRecord>(attribute::kLinkRecord, 0, {}, kSmKey).size(), 6u);
}

TEST_F(SubnetRecordsTest, SwitchInfoIsOfSwitches) {
  const auto switches = all<SwitchInfoRecord>(attribute::kSwitchInfoRecord, 0, {});
  ASSERT_EQ(switches.size(), 2u);
  EXPECT_EQ(switches[0].lid, lid(kSwitch));
  EXPECT_EQ(switches[0].info.linear_cap, 0xc000);
  const auto one =
      all(attribute::kSwitchInfoRecord, switch_info_component::kLinearTop, switches[0]);
  EXPECT_EQ(one.size(), 1u);
  subnet.ports[0].pkeys = {0x8001};
  EXPECT_EQ(all<SwitchInfoRecord>(attribute::kSwitchInfoRecord, 0, {}).size(), 0u);
}

TEST_F(SubnetRecordsTest, LinearTablesHaveTheBlocksInUse) {
  EXPECT_EQ(all<LinearForwardingRecord>(attribute::kLinearForwardingRecord, 0, {}).size(), 3u);
  LinearForwardingRecord wanted;
  wanted.lid = lid(kSwitch);
  wanted.block = 1;
  constexpr auto kBlock = linear_component::kLid | linear_component::kBlock;
  const auto one = all(attribute::kLinearForwardingRecord, kBlock, wanted);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].ports[0], 1);
  wanted.block = 2;
  EXPECT_EQ(all(attribute::kLinearForwardingRecord, kBlock, wanted).size(), 0u);
  wanted.block = 0xffff;
  EXPECT_EQ(all(attribute::kLinearForwardingRecord, linear_component::kBlock, wanted).size(), 0u);
  wanted.lid = lid(0);
  EXPECT_EQ(all(attribute::kLinearForwardingRecord, linear_component::kLid, wanted).size(), 0u)
      << "an adapter has none";
}

TEST_F(SubnetRecordsTest, MulticastTablesHaveTheBlocksInUse) {
  EXPECT_EQ(all<MulticastForwardingRecord>(attribute::kMulticastForwardingRecord, 0, {}).size(),
            0u);
  subnet.ports[3].multicast[1u << 28 | 2] = {0, 1};
  const auto blocks = all<MulticastForwardingRecord>(attribute::kMulticastForwardingRecord, 0, {});
  ASSERT_EQ(blocks.size(), 6u) << "three blocks of two positions";
  EXPECT_EQ(blocks[5].position, 1);
  EXPECT_EQ(blocks[5].block, 2);
  EXPECT_EQ(blocks[5].masks[1], 1);
  using namespace multicast_component;
  EXPECT_EQ(all(attribute::kMulticastForwardingRecord, kLid | kPosition, blocks[5]).size(), 3u);
  EXPECT_EQ(all(attribute::kMulticastForwardingRecord, kPosition | kBlock, blocks[5]).size(), 1u);
}

TEST_F(SubnetRecordsTest, AManagerIsShownWithoutItsKey) {
  const auto managers = all<SmInfoRecord>(attribute::kSmInfoRecord, 0, {}, kSmKey);
  ASSERT_EQ(managers.size(), 1u);
  EXPECT_EQ(managers[0], (SmInfoRecord{lid(0), 0x100, 0, 9, 5, kMasterState}));
  EXPECT_EQ(all(attribute::kSmInfoRecord, sm_info_component::kState, managers[0]).size(), 1u);
  SmInfoRecord wanted;
  wanted.lid = lid(1);
  EXPECT_EQ(all(attribute::kSmInfoRecord, sm_info_component::kLid, wanted).size(), 0u);
  subnet.ports[0].pkeys = {0x8001};
  EXPECT_EQ(table(attribute::kSmInfoRecord, 0, SmInfoRecord{}, 0, 1).count, 0u);
}

}  // namespace
}  // namespace ib::sa
