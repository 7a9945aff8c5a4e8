// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/test/server_fixture_test.h"

namespace ib::sa {
namespace {

namespace component = service_component;
using std::chrono::seconds;

class ServicesTest : public SaTest {
 protected:
  explicit ServicesTest(ServerLimits limits = {}) : SaTest(limits) {}
  ServiceRecord of(std::size_t port, std::uint64_t id) const {
    ServiceRecord record;
    record.id = id;
    record.gid = gid(port);
    record.pkey = 0xffff;
    return record;
  }
  std::uint16_t set(std::size_t from, const ServiceRecord& record, std::uint64_t components = 0) {
    return ask(from, method::kSet, attribute::kServiceRecord, component::kNames | components,
               record)
        .status;
  }
  std::uint16_t remove(std::size_t from, const ServiceRecord& record,
                       std::uint64_t components = 0) {
    return ask(from, method::kDelete, attribute::kServiceRecord, component::kNames | components,
               record)
        .status;
  }
  std::vector<ServiceRecord> table(std::size_t from, std::uint64_t components,
                                   const ServiceRecord& wanted) {
    return records<ServiceRecord>(
        ask(from, method::kGetTable, attribute::kServiceRecord, components, wanted));
  }
};

TEST_F(ServicesTest, AServiceIsFoundByIdNameAndPort) {
  ServiceRecord record = of(1, 7);
  record.name[0] = 'x';
  record.data32[2] = 5;
  ASSERT_EQ(set(1, record, component::kName | component::kData32), sa_status::kOk);
  ASSERT_EQ(set(2, of(2, 7)), sa_status::kOk);
  ASSERT_EQ(set(2, of(2, 8)), sa_status::kOk);
  EXPECT_EQ(table(0, component::kId, of(0, 7)).size(), 2u);
  EXPECT_EQ(table(0, component::kGid, of(2, 0)).size(), 2u);
  const auto named = table(0, component::kName, record);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].data32[2], 5u);
  EXPECT_EQ(named[0].lease_seconds, kLeaseWithoutEnd);
  EXPECT_EQ(ask(0, method::kGet, attribute::kServiceRecord, component::kId, of(0, 7)).status,
            sa_status::kTooManyRecords);
}

TEST_F(ServicesTest, WhatTheMaskDoesNotSelectIsNotRegistered) {
  ServiceRecord record = of(1, 7);
  record.name[0] = 'x';
  record.data8 = {1, 2};
  ASSERT_EQ(set(1, record, std::uint64_t{1} << 8), sa_status::kOk);  // the second of data8
  const auto found = table(0, component::kId, record);
  EXPECT_EQ(found.at(0).name[0], 0);
  EXPECT_EQ(found.at(0).data8[0], 0);
  EXPECT_EQ(found.at(0).data8[1], 2);
}

TEST_F(ServicesTest, AServiceGoesWhenItsLeaseIsOver) {
  ServiceRecord record = of(1, 7);
  record.lease_seconds = 10;
  ASSERT_EQ(set(1, record, component::kLease), sa_status::kOk);
  EXPECT_EQ(server.deadline(), now + seconds(10));
  now += seconds(6);
  ASSERT_EQ(set(1, record, component::kLease), sa_status::kOk);  // renewed
  now += seconds(9);
  EXPECT_EQ(table(0, component::kId, record).size(), 1u);
  now += seconds(1);
  EXPECT_EQ(table(0, component::kId, record).size(), 0u);
  EXPECT_EQ(server.deadline(), std::nullopt);
  record.lease_seconds = 0;
  EXPECT_EQ(set(1, record, component::kLease), sa_status::kRequestInvalid);
}

TEST_F(ServicesTest, AKeyProtectsARecordAndNobodyIsShownIt) {
  ServiceRecord record = of(1, 7);
  record.key[0] = 9;
  ASSERT_EQ(set(1, record, component::kKey), sa_status::kOk);
  ServiceRecord other = record;
  other.key[0] = 8;
  EXPECT_EQ(set(1, other, component::kKey), sa_status::kRequestDenied);
  EXPECT_EQ(set(1, other), sa_status::kRequestDenied);
  EXPECT_EQ(remove(1, other, component::kKey), sa_status::kRequestDenied);
  EXPECT_EQ(table(0, component::kId, record).at(0).key[0], 0);
  EXPECT_EQ(table(0, component::kId | component::kKey, other).size(), 1u) << "is not compared";
  EXPECT_EQ(remove(1, record, component::kKey), sa_status::kOk);
  EXPECT_EQ(remove(1, record, component::kKey), sa_status::kNoRecords);
  const Answer answer =
      ask(1, method::kSet, attribute::kServiceRecord, component::kNames | component::kKey, record);
  EXPECT_EQ(records<ServiceRecord>(answer).at(0).key[0], 0);
  EXPECT_EQ(remove(2, record), sa_status::kRequestDenied);
  EXPECT_EQ(remove(1, record), sa_status::kOk) << "its own port, without a key";
}

TEST_F(ServicesTest, APortRegistersForItselfAndItsPartitions) {
  EXPECT_EQ(set(1, of(2, 7)), sa_status::kRequestDenied);
  ServiceRecord record = of(1, 7);
  record.pkey = 0x8005;
  EXPECT_EQ(set(1, record), sa_status::kRequestDenied);
  record.gid = verbs::make_gid(kPrefix, 0x999);
  EXPECT_EQ(set(1, record), sa_status::kInvalidGid);
  for (const std::uint64_t missing : {component::kId, component::kGid}) {
    EXPECT_EQ(
        ask(1, method::kSet, attribute::kServiceRecord, component::kNames & ~missing, of(1, 7))
            .status,
        sa_status::kInsufficientComponents);
  }
}

TEST_F(ServicesTest, AServiceWithoutAPartitionIsSeenByAll) {
  ServiceRecord record = of(1, 7);
  const auto set_without_pkey = [&](const ServiceRecord& wanted) {
    return ask(1, method::kSet, attribute::kServiceRecord, component::kId | component::kGid, wanted)
        .status;
  };
  ASSERT_EQ(set_without_pkey(record), sa_status::kOk);
  subnet.ports[0].pkeys = {0x8005};
  ASSERT_EQ(table(0, component::kId, record).size(), 1u);
  EXPECT_EQ(table(0, component::kId, record)[0].pkey, 0);
  EXPECT_EQ(set_without_pkey(of(2, 7)), sa_status::kRequestDenied);
  record.pkey = 0;
  EXPECT_EQ(set(1, record), sa_status::kRequestDenied) << "names a partition, of number 0";
}

TEST_F(ServicesTest, TheOneRecordThatTheComponentsSelectIsDeleted) {
  const auto remove_by = [&](std::size_t from, std::uint64_t components,
                             const ServiceRecord& wanted) {
    return ask(from, method::kDelete, attribute::kServiceRecord, components, wanted).status;
  };
  ServiceRecord record = of(1, 7);
  record.name[0] = 'x';
  ASSERT_EQ(set(1, record, component::kName), sa_status::kOk);
  ASSERT_EQ(set(1, of(1, 8), component::kName), sa_status::kOk);
  ServiceRecord same_name = of(2, 9);
  same_name.name[0] = 'x';
  ASSERT_EQ(set(2, same_name, component::kName), sa_status::kOk);
  EXPECT_EQ(remove_by(1, 0, record), sa_status::kInsufficientComponents);
  EXPECT_EQ(remove_by(1, component::kLease, record), sa_status::kInsufficientComponents);
  EXPECT_EQ(remove_by(1, component::kGid, record), sa_status::kTooManyRecords);
  EXPECT_EQ(remove_by(3, component::kName, record), sa_status::kRequestDenied);
  EXPECT_EQ(remove_by(1, component::kName, record), sa_status::kOk) << "that of port 2 stays";
  EXPECT_EQ(remove_by(1, component::kName, record), sa_status::kRequestDenied);
  EXPECT_EQ(remove_by(1, component::kId, record), sa_status::kNoRecords);
  record = of(2, 9);
  record.pkey = 0x7fff;  // the membership bit does not name another record
  EXPECT_EQ(remove(2, record), sa_status::kOk);
  EXPECT_EQ(server.services().count(), 1u);
}

TEST_F(ServicesTest, OtherPartitionsDoNotSeeAService) {
  subnet.ports[1].pkeys = {0x8005};
  ServiceRecord record = of(1, 7);
  record.pkey = 0x8005;
  ASSERT_EQ(set(1, record), sa_status::kOk);
  EXPECT_EQ(table(0, component::kId, record).size(), 0u);
  subnet.ports[0].pkeys = {0xffff, 0x0005};
  EXPECT_EQ(table(0, component::kId, record).size(), 1u);
}

TEST_F(ServicesTest, TheServicesOfAPortGoWithIt) {
  set(1, of(1, 7));
  set(2, of(2, 7));
  take_down(1);
  EXPECT_EQ(server.services().count(), 1u);
}

class FewServicesTest : public ServicesTest {
 protected:
  FewServicesTest() : ServicesTest({.services = {.services = 3, .services_of_port = 2}}) {}
};
TEST_F(FewServicesTest, APortAndAFabricHaveSoManyAndNoMore) {
  EXPECT_EQ(set(0, of(0, 1)), sa_status::kOk);
  EXPECT_EQ(set(0, of(0, 2)), sa_status::kOk);
  EXPECT_EQ(set(0, of(0, 3)), sa_status::kNoResources);
  EXPECT_EQ(set(1, of(1, 1)), sa_status::kOk);
  EXPECT_EQ(set(2, of(2, 1)), sa_status::kNoResources);
  EXPECT_EQ(set(0, of(0, 2)), sa_status::kOk) << "it is there already";
}

}  // namespace
}  // namespace ib::sa
