// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/test/server_fixture_test.h"

namespace ib::sa {
namespace {

namespace component = path_component;

class PathsTest : public SaTest {
 protected:
  static constexpr std::uint64_t kByGid = component::kSgid | component::kDgid;
  PathRecord between(std::size_t from, std::size_t to) const {
    PathRecord path;
    path.sgid = gid(from);
    path.dgid = gid(to);
    path.slid = subnet.ports[from].lid;
    path.dlid = subnet.ports[to].lid;
    return path;
  }
};

TEST_F(PathsTest, APathByGidHasLidsPkeyAndWhatTheRouteCanDo) {
  subnet.ports[0].sl = 3;
  subnet.ports[1].mtu = 4;
  subnet.ports[1].rate = 3;
  const Answer answer = get_path(0, kByGid, between(0, 1));
  ASSERT_EQ(answer.status, sa_status::kOk);
  EXPECT_EQ(answer.method, method::kGetResp);
  const PathRecord path = records<PathRecord>(answer).at(0);
  EXPECT_EQ(path.slid, 10);
  EXPECT_EQ(path.dlid, 20);
  EXPECT_EQ(path.pkey, 0xffff);
  EXPECT_EQ(path.sl, 3);
  EXPECT_EQ(path.mtu, 4);
  EXPECT_EQ(path.rate, 3);
  EXPECT_EQ(path.life, 10);
  EXPECT_EQ(path.mtu_selector, Selector::Exactly);
  EXPECT_TRUE(path.reversible);
}

TEST_F(PathsTest, APathByLidHasTheGidsOfThePorts) {
  const Answer answer = get_path(0, component::kSlid | component::kDlid, between(2, 1));
  const PathRecord path = records<PathRecord>(answer).at(0);
  EXPECT_EQ(path.sgid, gid(2));
  EXPECT_EQ(path.dgid, gid(1));
}

TEST_F(PathsTest, GidsAndLidsOfDifferentPortsHaveNoPath) {
  PathRecord wanted = between(0, 1);
  wanted.dlid = subnet.ports[2].lid;
  EXPECT_EQ(get_path(0, kByGid | component::kDlid, wanted).status, sa_status::kNoRecords);
}

TEST_F(PathsTest, AnUnknownEndIsSaidToBeWrong) {
  PathRecord wanted = between(0, 1);
  wanted.dgid = verbs::make_gid(kPrefix, 0x999);
  EXPECT_EQ(get_path(0, kByGid, wanted).status, sa_status::kInvalidGid);
  wanted = between(0, 1);
  wanted.dlid = 999;
  EXPECT_EQ(get_path(0, component::kSgid | component::kDlid, wanted).status, sa_status::kNoRecords);
  EXPECT_EQ(get_path(0, component::kNumbPath | kByGid, between(0, 1)).status,
            sa_status::kRequestInvalid);
  EXPECT_EQ(get_path(0, component::kPkey, between(0, 1)).status,
            sa_status::kInsufficientComponents);
}

TEST_F(PathsTest, APortThatIsDownHasNoPaths) {
  take_down(1);
  EXPECT_EQ(get_path(0, kByGid, between(0, 1)).status, sa_status::kInvalidGid);
  bring_up(1);
  EXPECT_EQ(get_path(0, kByGid, between(0, 1)).status, sa_status::kOk);
}

TEST_F(PathsTest, ATableFromOnePortHasEveryPortThatItReaches) {
  subnet.ports[3].island = 1;
  const auto paths = path_table(0, component::kSgid, between(0, 0));
  ASSERT_EQ(paths.size(), 3u);  // also to itself
  EXPECT_EQ(paths[0].dgid, gid(0));
  EXPECT_EQ(paths[2].dgid, gid(2));
  EXPECT_EQ(path_table(0, component::kDgid, between(0, 1)).size(), 3u);
  EXPECT_EQ(get_path(0, component::kSgid, between(0, 0)).status, sa_status::kTooManyRecords);
}

TEST_F(PathsTest, PartitionsDecideWhoReachesWhom) {
  subnet.ports[0].pkeys = {0x8001, 0x0002};
  subnet.ports[1].pkeys = {0x8002, 0x0001};
  subnet.ports[2].pkeys = {0x0002};
  const auto pkey_to = [&](std::size_t to, std::uint64_t components, std::uint16_t pkey) {
    PathRecord wanted = between(0, to);
    wanted.pkey = pkey;
    const Answer answer = get_path(0, kByGid | components, wanted);
    return answer.status == sa_status::kOk ? records<PathRecord>(answer).at(0).pkey
                                           : std::uint16_t{0};
  };
  EXPECT_EQ(pkey_to(1, 0, 0), 0x8001);
  EXPECT_EQ(pkey_to(1, component::kPkey, 0x8002), 0x8002);
  EXPECT_EQ(pkey_to(1, component::kPkey, 0x8003), 0);
  EXPECT_EQ(pkey_to(1, component::kPkey, 0x8000), 0);  // no partition
  EXPECT_EQ(pkey_to(2, 0, 0), 0) << "limited members do not reach each other";
}

TEST_F(PathsTest, AThirdPortSeesOnlyPathsOfItsPartitions) {
  subnet.ports[0].pkeys = {0x8001};
  subnet.ports[1].pkeys = {0x8001, 0x8002};
  subnet.ports[2].pkeys = {0x8002};
  EXPECT_EQ(get_path(2, kByGid, between(0, 1)).status, sa_status::kNoRecords);
  const Answer trusted =
      ask(2, method::kGet, attribute::kPathRecord, kByGid, between(0, 1), kSmKey);
  EXPECT_EQ(trusted.status, sa_status::kOk);
}

TEST_F(PathsTest, SelectorsChooseFromWhatTheRouteCanDo) {
  const auto mtu_for = [&](Selector selector, std::uint8_t mtu) {
    PathRecord wanted = between(0, 1);
    wanted.mtu_selector = selector;
    wanted.mtu = mtu;
    const Answer answer = get_path(0, kByGid | component::kMtu | component::kMtuSelector, wanted);
    return answer.status == sa_status::kOk ? records<PathRecord>(answer).at(0).mtu
                                           : std::uint8_t{0};
  };
  EXPECT_EQ(mtu_for(Selector::Exactly, 4), 4);
  EXPECT_EQ(mtu_for(Selector::Less, 4), 3);
  EXPECT_EQ(mtu_for(Selector::Greater, 3), 5);
  EXPECT_EQ(mtu_for(Selector::Greater, 5), 0);
  EXPECT_EQ(mtu_for(Selector::Best, 1), 5);
}

TEST_F(PathsTest, TheServiceLevelHasToBeThatOfTheRoute) {
  subnet.ports[0].sl = 2;
  PathRecord wanted = between(0, 1);
  wanted.sl = 2;
  EXPECT_EQ(get_path(0, kByGid | component::kSl, wanted).status, sa_status::kOk);
  wanted.sl = 1;
  EXPECT_EQ(get_path(0, kByGid | component::kSl, wanted).status, sa_status::kNoRecords);
}

TEST_F(PathsTest, ReversibleIsAskedForOrNot) {
  subnet.ports[0].reversible = false;
  PathRecord wanted = between(0, 1);
  wanted.reversible = true;
  EXPECT_EQ(get_path(0, kByGid | component::kReversible, wanted).status, sa_status::kNoRecords);
  wanted.reversible = false;
  EXPECT_EQ(get_path(0, kByGid | component::kReversible, wanted).status, sa_status::kOk);
  EXPECT_EQ(get_path(1, kByGid | component::kReversible, between(1, 0)).status, sa_status::kOk);
}

TEST_F(PathsTest, RawTrafficHasNoPaths) {
  PathRecord wanted = between(0, 1);
  wanted.raw_traffic = true;
  EXPECT_EQ(get_path(0, kByGid | component::kRawTraffic, wanted).status, sa_status::kNoRecords);
}

TEST_F(PathsTest, WhatTheFabricDoesNotDecideIsReturnedAsAsked) {
  PathRecord wanted = between(0, 1);
  wanted.service_id = 0x1060007;
  wanted.traffic_class = 8;
  wanted.flow_label = 77;
  wanted.qos_class = 9;
  const Answer answer = get_path(
      0, kByGid | component::kServiceId | component::kTrafficClass | component::kQosClass, wanted);
  const PathRecord path = records<PathRecord>(answer).at(0);
  EXPECT_EQ(path.service_id, 0x1060007u);
  EXPECT_EQ(path.traffic_class, 8);
  EXPECT_EQ(path.qos_class, 9);
  EXPECT_EQ(path.flow_label, 0u) << "was not selected";
}

TEST_F(PathsTest, PortsWithSeveralLidsHaveSeveralPaths) {
  subnet.ports[0].lmc = 1;
  subnet.ports[1].lmc = 2;
  const auto all = path_table(0, kByGid, between(0, 1));
  ASSERT_EQ(all.size(), 8u);
  // First those that differ at both ends.
  EXPECT_EQ(std::pair(all[1].slid, all[1].dlid), std::pair(std::uint16_t{11}, std::uint16_t{21}));
  EXPECT_EQ(all[1].preference, 0);
  EXPECT_EQ(std::pair(all[2].slid, all[2].dlid), std::pair(std::uint16_t{10}, std::uint16_t{21}));
  EXPECT_EQ(all[2].preference, 2);
  PathRecord wanted = between(0, 1);
  wanted.numb_path = 2;
  const auto two = path_table(0, kByGid | component::kNumbPath, wanted);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].slid, 11);
  EXPECT_EQ(two[1].dlid, 21);
  wanted.dlid = 23;
  wanted.slid = 11;
  const auto one = path_table(0, component::kSlid | component::kDlid, wanted);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].dgid, gid(1));
  EXPECT_EQ(get_path(0, kByGid, between(0, 1)).status, sa_status::kOk) << "Get has one path";
}

TEST_F(PathsTest, ADestinationMayBeNamedByItsService) {
  ServiceRecord service;
  service.id = 0x77;
  service.gid = gid(2);
  service.pkey = 0xffff;
  ASSERT_EQ(
      ask(2, method::kSet, attribute::kServiceRecord, service_component::kNames, service).status,
      sa_status::kOk);
  PathRecord wanted = between(0, 0);
  wanted.service_id = 0x77;
  const Answer answer = get_path(0, component::kSgid | component::kServiceId, wanted);
  ASSERT_EQ(answer.status, sa_status::kOk);
  EXPECT_EQ(records<PathRecord>(answer).at(0).dgid, gid(2));
  wanted.service_id = 0x78;
  EXPECT_EQ(get_path(0, component::kSgid | component::kServiceId, wanted).status,
            sa_status::kNoRecords);
}

TEST_F(PathsTest, ThePathToAGroupHasItsMlidAndAttributes) {
  ASSERT_EQ(create(1, mgid(1)).status, sa_status::kOk);
  PathRecord wanted = between(0, 1);
  wanted.dgid = mgid(1);
  const Answer answer = get_path(0, kByGid, wanted);
  ASSERT_EQ(answer.status, sa_status::kOk);
  EXPECT_EQ(records<PathRecord>(answer).at(0).dlid, kFirstMulticastLid);
  wanted.dgid = mgid(2);
  EXPECT_EQ(get_path(0, kByGid, wanted).status, sa_status::kNoRecords);
}

TEST_F(PathsTest, ATableOfAllPathsIsGivenIfAnAnswerHoldsIt) {
  EXPECT_EQ(path_table(0, 0, PathRecord{}).size(), 16u);
  subnet.ports[3].pkeys = {0x8001};
  EXPECT_EQ(path_table(0, 0, PathRecord{}).size(), 9u);
}

TEST_F(PathsTest, NoMoreThan127PathsOfAPairAreReported) {
  subnet.ports[2].lid = 0x100;
  subnet.ports[3].lid = 0x200;
  subnet.ports[2].lmc = subnet.ports[3].lmc = 4;
  EXPECT_EQ(path_table(0, kByGid, between(2, 3)).size(), 127u);
}

class SmallAnswersTest : public SaTest {
 protected:
  SmallAnswersTest() : SaTest({.answer_bytes = 2 * PathRecord::kSize}) {}
};
TEST_F(SmallAnswersTest, ATableThatIsTooLongIsRefused) {
  PathRecord wanted;
  wanted.sgid = gid(0);
  EXPECT_EQ(ask(0, method::kGetTable, attribute::kPathRecord, component::kSgid, wanted).status,
            sa_status::kNoResources);
  // Of a table of all pairs it is said before anything is looked at.
  EXPECT_EQ(ask(0, method::kGetTable, attribute::kPathRecord, 0, wanted).status,
            sa_status::kInsufficientComponents);
}

}  // namespace
}  // namespace ib::sa
