// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/test/server_fixture_test.h"

namespace ib::sa {
namespace {

namespace component = mc_component;
using namespace join_state;  // its names say that they are of join states

class GroupsTest : public SaTest {
 protected:
  explicit GroupsTest(ServerLimits limits = {}) : SaTest(limits) {}
  McMemberRecord record_of(const Answer& answer) {
    return answer.count == 1 ? records<McMemberRecord>(answer).at(0) : McMemberRecord{};
  }
  Answer set(std::size_t from, std::uint64_t components, const McMemberRecord& record) {
    return ask(from, method::kSet, attribute::kMcMemberRecord, components, record);
  }
};

TEST_F(GroupsTest, TheFirstFullMemberCreatesTheGroup) {
  const McMemberRecord group = record_of(create(0, mgid(1)));
  EXPECT_EQ(group.mgid, mgid(1));
  EXPECT_EQ(group.port_gid, gid(0));
  EXPECT_EQ(group.mlid, kFirstMulticastLid);
  EXPECT_EQ(group.qkey, 0x0b1bu);
  EXPECT_EQ(group.mtu, 5);
  EXPECT_EQ(group.rate, 16);
  EXPECT_EQ(group.scope, 2);
  EXPECT_EQ(group.join_state, kFullMember);
  EXPECT_FALSE(group.proxy_join);
  EXPECT_EQ(server.groups().group_count(), 1u);
}

TEST_F(GroupsTest, ToCreateAGroupEveryAttributeIsNeeded) {
  for (const std::uint64_t missing : {component::kQkey, component::kTrafficClass, component::kPkey,
                                      component::kSl, component::kFlowLabel}) {
    EXPECT_EQ(set(0, component::kToCreate & ~missing, membership(0, mgid(1))).status,
              sa_status::kInsufficientComponents);
  }
  EXPECT_EQ(set(0, component::kMgid | component::kPortGid, membership(0, mgid(1))).status,
            sa_status::kInsufficientComponents);
  EXPECT_EQ(set(0, component::kToCreate, membership(0, mgid(1), kNonMember)).status,
            sa_status::kRequestInvalid);
  EXPECT_EQ(server.groups().group_count(), 0u);
}

TEST_F(GroupsTest, AMemberJoinsWithoutRepeatingTheAttributes) {
  create(0, mgid(1));
  const McMemberRecord member = record_of(join(1, mgid(1), kSendOnlyNonMember));
  EXPECT_EQ(member.mlid, kFirstMulticastLid);
  EXPECT_EQ(member.qkey, 0x0b1bu);
  EXPECT_EQ(member.join_state, kSendOnlyNonMember);
  EXPECT_EQ(record_of(join(1, mgid(1), kFullMember)).join_state, kSendOnlyNonMember | kFullMember);
  EXPECT_EQ(server.groups().membership_count(), 2u);
}

TEST_F(GroupsTest, AMemberThatWantsOtherAttributesIsRefused) {
  create(0, mgid(1));
  McMemberRecord wanted = membership(1, mgid(1));
  wanted.qkey = 1;
  EXPECT_EQ(set(1, component::kToJoin | component::kQkey, wanted).status,
            sa_status::kRequestInvalid);
  wanted.mtu_selector = Selector::Less;
  wanted.mtu = 5;
  EXPECT_EQ(set(1, component::kToJoin | component::kMtu | component::kMtuSelector, wanted).status,
            sa_status::kRequestInvalid);
  wanted.pkey = 0x7fff;  // the membership bit does not matter
  EXPECT_EQ(set(1, component::kToJoin | component::kPkey, wanted).status, sa_status::kOk);
}

TEST_F(GroupsTest, APortThatCannotTakeTheGroupsMtuOrRateIsRefused) {
  create(0, mgid(1));
  subnet.ports[1].mtu = 4;
  EXPECT_EQ(join(1, mgid(1), kFullMember).status, sa_status::kRequestInvalid);
  subnet.ports[1].mtu = 5;
  subnet.ports[1].rate = 3;
  EXPECT_EQ(join(1, mgid(1), kFullMember).status, sa_status::kRequestInvalid);
}

TEST_F(GroupsTest, TheCreatorChoosesMtuAndRateBySelector) {
  McMemberRecord wanted = membership(0, mgid(1));
  wanted.mtu_selector = Selector::Exactly;
  wanted.mtu = 4;
  wanted.rate_selector = Selector::Less;
  wanted.rate = 3;
  const McMemberRecord group =
      record_of(set(0,
                    component::kToCreate | component::kMtu | component::kMtuSelector |
                        component::kRate | component::kRateSelector,
                    wanted));
  EXPECT_EQ(group.mtu, 4);
  EXPECT_EQ(group.rate, 5);  // 5 Gb/s, the next below 10
}

TEST_F(GroupsTest, OnlyMembersOfThePartitionJoin) {
  subnet.ports[0].pkeys = {0x8001, 0xffff};
  McMemberRecord wanted = membership(0, mgid(1));
  wanted.pkey = 0x8001;
  ASSERT_EQ(set(0, component::kToCreate, wanted).status, sa_status::kOk);
  EXPECT_EQ(join(1, mgid(1), kFullMember).status, sa_status::kRequestDenied);
  subnet.ports[1].pkeys = {0x0001};
  EXPECT_EQ(join(1, mgid(1), kFullMember).status, sa_status::kOk);
  wanted = membership(1, mgid(2));
  wanted.pkey = 0x8005;
  EXPECT_EQ(set(1, component::kToCreate, wanted).status, sa_status::kRequestDenied);
}

TEST_F(GroupsTest, AGroupGoesWithItsLastFullMemberAndItsMlidIsFree) {
  create(0, mgid(1));
  join(1, mgid(1), kFullMember);
  join(2, mgid(1), kNonMember);
  EXPECT_EQ(record_of(leave(0, mgid(1), kFullMember)).join_state, 0);
  EXPECT_EQ(server.groups().group_count(), 1u);
  leave(1, mgid(1), kFullMember);
  EXPECT_EQ(server.groups().group_count(), 0u);
  EXPECT_EQ(server.groups().membership_count(), 0u);
  EXPECT_EQ(leave(2, mgid(1), kNonMember).status, sa_status::kRequestInvalid);
}

TEST_F(GroupsTest, OnlyWhatWasJoinedIsLeft) {
  create(0, mgid(1));
  EXPECT_EQ(leave(0, mgid(1), kNonMember).status, sa_status::kRequestInvalid);
  EXPECT_EQ(leave(0, mgid(1), 0).status, sa_status::kRequestInvalid);
  EXPECT_EQ(leave(1, mgid(1), kFullMember).status, sa_status::kRequestInvalid);
  join(0, mgid(1), kNonMember);
  EXPECT_EQ(record_of(leave(0, mgid(1), kNonMember)).join_state, kFullMember);
}

TEST_F(GroupsTest, APortMayBeJoinedByAnotherOneOfItsPartitions) {
  create(0, mgid(1));
  Answer answer =
      ask(1, method::kSet, attribute::kMcMemberRecord, component::kToJoin, membership(2, mgid(1)));
  EXPECT_TRUE(record_of(answer).proxy_join);
  // A membership of its own ends by its own hand only.
  answer = ask(1, method::kDelete, attribute::kMcMemberRecord, component::kToJoin,
               membership(0, mgid(1)));
  EXPECT_EQ(answer.status, sa_status::kRequestDenied);
  answer = ask(3, method::kDelete, attribute::kMcMemberRecord, component::kToJoin,
               membership(2, mgid(1)));
  EXPECT_EQ(answer.status, sa_status::kOk);
  subnet.ports[3].pkeys = {0x8009};
  answer =
      ask(3, method::kSet, attribute::kMcMemberRecord, component::kToJoin, membership(2, mgid(1)));
  EXPECT_EQ(answer.status, sa_status::kRequestDenied);
}

TEST_F(GroupsTest, AnMgidOfZeroIsChosenByTheServer) {
  McMemberRecord wanted = membership(0, {});
  wanted.scope = 5;
  const McMemberRecord first = record_of(set(0, component::kToCreate | component::kScope, wanted));
  const McMemberRecord second = record_of(set(0, component::kToCreate, wanted));
  EXPECT_EQ(first.mgid[0], 0xff);
  EXPECT_EQ(first.mgid[1], 0x15);
  EXPECT_EQ(second.mgid[1], 0x12);
  EXPECT_NE(first.mgid, second.mgid);
  EXPECT_NE(first.mlid, second.mlid);
  EXPECT_EQ(join(1, first.mgid, kFullMember).status, sa_status::kOk);
}

TEST_F(GroupsTest, BadMgidsAreRefused) {
  const auto status_of = [&](const verbs::Gid& group) { return create(0, group).status; };
  EXPECT_EQ(status_of(verbs::make_gid(kPrefix, 1)), sa_status::kRequestInvalid);
  EXPECT_EQ(status_of({0xff, 0x10, 0x40, 0x1b}), sa_status::kRequestInvalid);  // scope 0
  EXPECT_EQ(status_of({0xff, 0x92, 0x40, 0x1b}), sa_status::kRequestInvalid);  // flags
  EXPECT_EQ(status_of({0xff, 0x12, 0xa0, 0x1b}), sa_status::kRequestInvalid);  // the server's
  McMemberRecord wanted = membership(0, mgid(1));
  wanted.port_gid = verbs::make_gid(kPrefix, 0x999);
  EXPECT_EQ(set(0, component::kToCreate, wanted).status, sa_status::kInvalidGid);
  wanted = membership(0, {});
  for (const std::uint8_t scope : {std::uint8_t{0}, std::uint8_t{15}}) {
    wanted.scope = scope;
    EXPECT_EQ(set(0, component::kToCreate | component::kScope, wanted).status,
              sa_status::kRequestInvalid);
  }
}

TEST_F(GroupsTest, TheScopeOfAnMgidThatIsGivenIsInIt) {
  McMemberRecord wanted = membership(0, {0xff, 0x1f, 0xa0, 0x1c});
  wanted.scope = 2;
  for (int i = 0; i < 2; ++i) {  // creates it, joins again
    EXPECT_EQ(record_of(set(0, component::kToCreate | component::kScope, wanted)).scope, 15);
  }
}

TEST_F(GroupsTest, TheBroadcastGroupIsThereWithoutMembers) {
  McMemberRecord broadcast;
  broadcast.mgid = ipoib_broadcast_mgid(0x7fff);
  broadcast.pkey = 0xffff;
  broadcast.qkey = 0x0b1b;
  broadcast.mtu = 4;
  broadcast.rate = 3;
  server.add_permanent_group(broadcast);
  EXPECT_EQ(broadcast.mgid, (verbs::Gid{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff,
                                        0xff, 0xff, 0xff}));
  const Answer found =
      ask(2, method::kGet, attribute::kMcMemberRecord, component::kMgid, broadcast);
  EXPECT_EQ(record_of(found).mtu, 4);
  EXPECT_EQ(record_of(join(2, broadcast.mgid, kFullMember)).mtu, 4);
  leave(2, broadcast.mgid, kFullMember);
  EXPECT_EQ(server.groups().group_count(), 1u);
}

TEST_F(GroupsTest, OthersSeeGroupsAndNotTheirMembers) {
  create(0, mgid(1));
  join(1, mgid(1), kFullMember);
  McMemberRecord wanted;
  wanted.mgid = mgid(1);
  const auto seen_by = [&](std::uint64_t sm_key) {
    return records<McMemberRecord>(
        ask(3, method::kGetTable, attribute::kMcMemberRecord, component::kMgid, wanted, sm_key));
  };
  ASSERT_EQ(seen_by(0).size(), 1u);
  EXPECT_EQ(seen_by(0)[0].port_gid, verbs::Gid{});
  EXPECT_EQ(seen_by(0)[0].join_state, 0);
  EXPECT_EQ(seen_by(kSmKey).size(), 2u);
  const Answer own = ask(1, method::kGet, attribute::kMcMemberRecord,
                         component::kMgid | component::kPortGid, membership(1, mgid(1)));
  EXPECT_EQ(record_of(own).join_state, kFullMember);
  subnet.ports[3].pkeys = {0x8005};
  EXPECT_EQ(seen_by(0).size(), 0u);
}

TEST_F(GroupsTest, WhatAPortJoinedGoesWithIt) {
  create(0, mgid(1));
  create(0, mgid(2));
  join(1, mgid(2), kFullMember);
  take_down(0);
  EXPECT_EQ(server.groups().group_count(), 1u);
  EXPECT_EQ(server.groups().membership_count(), 1u);
}

class FewGroupsTest : public GroupsTest {
 protected:
  FewGroupsTest() : GroupsTest({.groups = {.groups = 3, .memberships_of_port = 2}}) {}
};
TEST_F(FewGroupsTest, APortAndAFabricHaveSoManyAndNoMore) {
  EXPECT_EQ(create(0, mgid(1)).status, sa_status::kOk);
  EXPECT_EQ(create(0, mgid(2)).status, sa_status::kOk);
  EXPECT_EQ(create(0, mgid(3)).status, sa_status::kNoResources) << "the port has its share";
  EXPECT_EQ(create(1, mgid(3)).status, sa_status::kOk);
  EXPECT_EQ(create(2, mgid(4)).status, sa_status::kNoResources) << "the fabric has its groups";
  EXPECT_EQ(join(0, mgid(1), kNonMember).status, sa_status::kOk) << "it is in there";
  leave(0, mgid(1), kFullMember | kNonMember);
  EXPECT_EQ(create(2, mgid(4)).status, sa_status::kOk);
}

}  // namespace
}  // namespace ib::sa
