// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests of any kind; records of nodes and ports.
#include "mad/class_port_info.h"
#include "sa/test/server_fixture_test.h"

#include <cstring>

namespace ib::sa {
namespace {

using ServerTest = SaTest;

TEST_F(ServerTest, MethodsAndAttributesThatAreNotThereAreRefused) {
  const auto status_of = [&](std::uint8_t method, std::uint16_t attribute) {
    return ask(1, method, attribute, 0, PathRecord{}).status;
  };
  EXPECT_EQ(status_of(method::kGetMulti, attribute::kPathRecord),
            mad::mad_status::kAttributeNotSupported);
  EXPECT_EQ(status_of(method::kGet, attribute::kMultiPathRecord),
            mad::mad_status::kAttributeNotSupported);
  EXPECT_EQ(status_of(method::kSet, attribute::kGuidInfoRecord),
            mad::mad_status::kAttributeNotSupported);
  EXPECT_EQ(status_of(method::kGetTraceTable, attribute::kPathRecord),
            mad::mad_status::kMethodNotSupported);
  EXPECT_EQ(status_of(method::kGet, 0x0016), mad::mad_status::kAttributeNotSupported);
  EXPECT_EQ(status_of(method::kSet, attribute::kPathRecord),
            mad::mad_status::kAttributeNotSupported);
  EXPECT_EQ(status_of(method::kDelete, attribute::kNodeRecord),
            mad::mad_status::kAttributeNotSupported);
  EXPECT_EQ(status_of(method::kGet, attribute::kInformInfo),
            mad::mad_status::kAttributeNotSupported);
}

TEST_F(ServerTest, ResponsesAndReportsAndWrongKeysGetNoAnswer) {
  Request request;
  request.lid = subnet.ports[1].lid;
  request.attribute = attribute::kNodeRecord;
  for (const std::uint8_t method : {method::kGetResp, method::kReport, method::kReportResp}) {
    request.method = method;
    EXPECT_FALSE(server.handle(request, now).has_value());
  }
  request.method = method::kGetTable;
  request.sm_key = kSmKey + 1;
  EXPECT_FALSE(server.handle(request, now).has_value());
  request.sm_key = kSmKey;
  EXPECT_TRUE(server.handle(request, now).has_value());
}

TEST_F(ServerTest, EachMethodHasItsResponse) {
  const std::pair<std::uint8_t, std::uint8_t> kMethods[] = {
      {method::kGet, method::kGetResp},
      {method::kSet, method::kGetResp},
      {method::kGetTable, method::kGetTableResp},
      {method::kGetTraceTable, method::kGetTableResp},
      {method::kGetMulti, mad::method::kGetMultiResp},
      {method::kDelete, method::kDeleteResp}};
  for (const auto& [method, response] : kMethods) {
    Request request;
    request.lid = subnet.ports[1].lid;
    request.method = method;
    for (const std::uint16_t attribute : {attribute::kServiceRecord, attribute::kMcMemberRecord,
                                          attribute::kPathRecord, attribute::kInformInfo}) {
      request.attribute = attribute;
      EXPECT_EQ(server.handle(request, now)->method, response) << attribute;
    }
  }
}

TEST_F(ServerTest, ARequestFromAnUnknownPortIsDenied) {
  Request request;
  request.lid = 999;
  request.method = method::kGetTable;
  request.attribute = attribute::kNodeRecord;
  EXPECT_EQ(server.handle(request, now)->status, sa_status::kRequestDenied);
  request.gid = gid(2);
  EXPECT_EQ(server.handle(request, now)->status, sa_status::kOk);
}

TEST_F(ServerTest, ClassPortInfoTellsVersionAndAbilities) {
  const Answer answer = ask(1, method::kGet, attribute::kClassPortInfo, 0, PathRecord{});
  ASSERT_EQ(answer.bytes.size(), sizeof(mad::ClassPortInfo));
  mad::ClassPortInfo info;
  std::memcpy(&info, answer.bytes.data(), sizeof info);
  EXPECT_EQ(info.class_version, kClassVersion);
  EXPECT_EQ(info.capability_mask, 0x2600);
  EXPECT_EQ(info.capability_mask2_response_time, 0x14c8u << 5 | 18u);
}

TEST_F(ServerTest, NodesAreFoundByLidAndGuid) {
  NodeRecord wanted;
  wanted.lid = subnet.ports[2].lid;
  Answer answer = ask(0, method::kGet, attribute::kNodeRecord, node_component::kLid, wanted);
  EXPECT_EQ(records<NodeRecord>(answer).at(0).info.node_guid, 0x102u);
  wanted.info.port_guid = 0x103;
  answer = ask(0, method::kGetTable, attribute::kNodeRecord, node_component::kPortGuid, wanted);
  ASSERT_EQ(answer.count, 1u);
  EXPECT_EQ(answer.stride, 112);
  EXPECT_EQ(records<NodeRecord>(answer).at(0).lid, subnet.ports[3].lid);
  EXPECT_EQ(ask(0, method::kGetTable, attribute::kNodeRecord, 0, wanted).count, 4u);
  EXPECT_EQ(ask(0, method::kGet, attribute::kNodeRecord, 0, wanted).status,
            sa_status::kTooManyRecords);
  wanted.lid = 999;
  EXPECT_EQ(ask(0, method::kGet, attribute::kNodeRecord, node_component::kLid, wanted).status,
            sa_status::kNoRecords);
  answer = ask(0, method::kGetTable, attribute::kNodeRecord, node_component::kLid, wanted);
  EXPECT_EQ(answer.status, sa_status::kOk);
  EXPECT_EQ(answer.count, 0u);
}

TEST_F(ServerTest, NodesOfOtherPartitionsAreNotShown) {
  subnet.ports[1].pkeys = {0x8001};
  subnet.ports[2].pkeys = {0x0001};
  EXPECT_EQ(ask(2, method::kGetTable, attribute::kNodeRecord, 0, NodeRecord{}).count, 2u);
  EXPECT_EQ(ask(0, method::kGetTable, attribute::kNodeRecord, 0, NodeRecord{}).count, 2u);
  EXPECT_EQ(ask(0, method::kGetTable, attribute::kNodeRecord, 0, NodeRecord{}, kSmKey).count, 4u);
}

TEST_F(ServerTest, AnyLidOfAPortNamesIt) {
  subnet.ports[2].lmc = 2;
  NodeRecord wanted;
  wanted.lid = static_cast<std::uint16_t>(subnet.ports[2].lid + 3);
  EXPECT_EQ(ask(0, method::kGet, attribute::kNodeRecord, node_component::kLid, wanted).status,
            sa_status::kOk);
}

TEST_F(ServerTest, PortInfoShowsItsManagementKeyToTheTrustedOnly) {
  PortInfoRecord wanted;
  wanted.lid = subnet.ports[2].lid;
  const auto key_for = [&](std::uint64_t sm_key) -> std::uint64_t {
    const Answer answer =
        ask(1, method::kGet, attribute::kPortInfoRecord, port_info_component::kLid, wanted, sm_key);
    return records<PortInfoRecord>(answer).at(0).info.m_key;
  };
  EXPECT_EQ(key_for(0), 0u);
  EXPECT_EQ(key_for(kSmKey), 0x1234u);
}

TEST_F(ServerTest, CapabilitiesAreComparedAsAWholeOrBitByBit) {
  PortInfoRecord wanted;
  wanted.info.capability_mask = 0x2;  // IsSM
  const auto bytes = encode(wanted);
  Request request;
  request.lid = subnet.ports[1].lid;
  request.method = method::kGetTable;
  request.attribute = attribute::kPortInfoRecord;
  request.components = port_info_component::kCapabilityMask;
  request.record = bytes;
  EXPECT_EQ(server.handle(request, now)->count, 0u);
  request.modifier = 1u << 31;
  EXPECT_EQ(server.handle(request, now)->count, 1u);

  wanted.info.capability_mask2 = 0x2;
  const auto second = encode(wanted);
  request.record = second;
  request.components = port_info_component::kCapabilityMask2;
  EXPECT_EQ(server.handle(request, now)->count, 1u);
  request.modifier = 0;
  EXPECT_EQ(server.handle(request, now)->count, 0u);
}

TEST_F(ServerTest, AShortRecordIsZeroAtItsEnd) {
  Request request;
  request.lid = subnet.ports[1].lid;
  request.method = method::kGetTable;
  request.attribute = attribute::kServiceRecord;
  EXPECT_EQ(server.handle(request, now)->status, sa_status::kOk);
}

}  // namespace
}  // namespace ib::sa
