// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/command/ucma_command.h"

#include <gtest/gtest.h>
#include <infiniband/ib.h>
#include <rdma/rdma_user_cm.h>

#include <cstring>
#include <vector>

namespace ib::services::rdma_cm {
namespace {

using Written = std::vector<std::uint8_t>;

template <class Body>
Written write(ucma::Code code, const Body& body, std::uint16_t out = 512) {
  const ucma::Header header{static_cast<std::uint32_t>(code), sizeof body, out};
  Written bytes(sizeof header + sizeof body);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
  return bytes;
}
ParsedCommand parse(const Written& bytes) {
  return parse_command(std::span(bytes).first(std::min(bytes.size(), kMaxCommand)), bytes.size());
}

#define SAME_FIELD(ours, our_field, theirs, their_field)                            \
  static_assert(offsetof(ucma::ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ucma::ours::our_field) == sizeof(theirs::their_field))
static_assert(sizeof(ucma::EventOut) == sizeof(rdma_ucm_event_resp));
static_assert(sizeof(ucma::QueryRouteOut) == sizeof(rdma_ucm_query_route_resp));
static_assert(sizeof(ucma::QueryAddrOut) == sizeof(rdma_ucm_query_addr_resp));
static_assert(sizeof(ucma::QpAttrOut) == sizeof(ib_uverbs_qp_attr));
static_assert(sizeof(ucma::ResolveAddr) == sizeof(rdma_ucm_resolve_addr));
static_assert(sizeof(ucma::PathRecData) == sizeof(ib_path_rec_data));
SAME_FIELD(EventOut, param, rdma_ucm_event_resp, param);
SAME_FIELD(EventOut, ece, rdma_ucm_event_resp, ece);
SAME_FIELD(UdParam, ah_attr, rdma_ucm_ud_param, ah_attr);
SAME_FIELD(UdParam, private_data_len, rdma_ucm_ud_param, private_data_len);
SAME_FIELD(ConnParam, valid, rdma_ucm_conn_param, valid);
SAME_FIELD(Accept, id, rdma_ucm_accept, id);
SAME_FIELD(JoinMcast, addr, rdma_ucm_join_mcast, addr);
SAME_FIELD(QueryRouteOut, num_paths, rdma_ucm_query_route_resp, num_paths);
SAME_FIELD(QueryRouteOut, ibdev_index, rdma_ucm_query_route_resp, ibdev_index);
SAME_FIELD(QueryAddrOut, dst_addr, rdma_ucm_query_addr_resp, dst_addr);
SAME_FIELD(PathRec, pkey, ib_user_path_rec, pkey);
SAME_FIELD(PathRec, preference, ib_user_path_rec, preference);
SAME_FIELD(QpAttrOut, alt_ah_attr, ib_uverbs_qp_attr, alt_ah_attr);
SAME_FIELD(QpAttrOut, timeout, ib_uverbs_qp_attr, timeout);
SAME_FIELD(AhAttr, dlid, ib_uverbs_ah_attr, dlid);
SAME_FIELD(SetOption, optlen, rdma_ucm_set_option, optlen);
static_assert(static_cast<int>(ucma::Code::JoinMcast) == RDMA_USER_CM_CMD_JOIN_MCAST);
static_assert(static_cast<int>(ucma::Code::SetOption) == RDMA_USER_CM_CMD_SET_OPTION);

TEST(UcmaCommand, ACommandIsReadWithItsResponseAndRoom) {
  ucma::CreateId in;
  in.uid = 7;
  in.response = 0x1000;
  in.ps = RDMA_PS_TCP;
  const ParsedCommand parsed = parse(write(ucma::Code::CreateId, in, 4));
  ASSERT_EQ(parsed.error, Error::None);
  EXPECT_EQ(parsed.command.response, 0x1000u);
  EXPECT_EQ(parsed.command.room, 4);
  EXPECT_EQ(std::get<ucma::CreateId>(parsed.command.body).uid, 7u);
}

TEST(UcmaCommand, HeadersThatDoNotFitAreInvalid) {
  Written bytes = write(ucma::Code::Disconnect, ucma::Disconnect{1});
  EXPECT_EQ(parse(bytes).error, Error::None);
  EXPECT_EQ(parse(Written(bytes.begin(), bytes.begin() + 7)).error, Error::Invalid);
  EXPECT_EQ(parse(Written(bytes.begin(), bytes.end() - 1)).error, Error::Invalid);
  bytes[0] = ucma::kCodes;
  EXPECT_EQ(parse(bytes).error, Error::Invalid);
  bytes[0] = static_cast<std::uint8_t>(ucma::Code::ResolveIbService);
  EXPECT_EQ(parse(bytes).error, Error::NotImplemented);
  bytes[0] = static_cast<std::uint8_t>(ucma::Code::GetOption);
  EXPECT_EQ(parse(bytes).error, Error::NotImplemented);
  EXPECT_EQ(parse_command({}, 0).error, Error::Invalid);
}

TEST(UcmaCommand, WhatIsBehindTheCommandDoesNotMatter) {
  Written bytes = write(ucma::Code::Disconnect, ucma::Disconnect{1});
  bytes.resize(4096, 0xff);
  EXPECT_EQ(parse(bytes).error, Error::None);
}

TEST(UcmaCommand, AnAnswerWithoutRoomIsRefused) {
  EXPECT_EQ(parse(write(ucma::Code::CreateId, ucma::CreateId{}, 3)).error, Error::NoSpace);
  EXPECT_EQ(parse(write(ucma::Code::GetEvent, ucma::GetEvent{}, 323)).error, Error::NoSpace);
  EXPECT_EQ(parse(write(ucma::Code::GetEvent, ucma::GetEvent{}, 324)).error, Error::None);
  EXPECT_EQ(parse(write(ucma::Code::InitQpAttr, ucma::InitQpAttr{}, 143)).error, Error::NoSpace);
}

TEST(UcmaCommand, AfIbAddressesAreReadAndWritten) {
  sockaddr_ib sib{};
  sib.sib_family = AF_IB;
  sib.sib_pkey = htobe16(0x8001);
  sib.sib_flowinfo = htobe32(0x12345);
  sib.sib_addr.sib_raw[0] = 0xfe;
  sib.sib_addr.sib_raw[15] = 9;
  sib.sib_sid = htobe64(0x1061d2f);
  sib.sib_sid_mask = htobe64(~std::uint64_t{0});
  sib.sib_scope_id = 3;
  ucma::Bind in;
  in.addr_size = sizeof sib;
  std::memcpy(in.addr.data(), &sib, sizeof sib);
  const ParsedCommand parsed = parse(write(ucma::Code::Bind, in));
  ASSERT_EQ(parsed.error, Error::None);
  const EndpointAddress& address = std::get<command::Bind>(parsed.command.body).address;
  EXPECT_EQ(address.family, Family::Ib);
  EXPECT_EQ(address.port, 0x1d2f);
  EXPECT_EQ(address.pkey, 0x8001);
  EXPECT_EQ(address.service_id, 0x1061d2f);
  EXPECT_EQ(address.service_mask, ~std::uint64_t{0});
  EXPECT_EQ(address.ip[15], 9);
  std::array<std::uint8_t, sizeof sib> bytes{};
  write_address(address, bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), &sib, sizeof sib), 0);
}

TEST(UcmaCommand, APortOutsideOfTheMaskIsNotOne) {
  ucma::Bind in;
  in.addr_size = 48;
  write_address(ib_address({}, 0xffff, 0x1061d2f), in.addr);
  std::fill_n(in.addr.begin() + 38, 2, std::uint8_t{0});  // the last bytes of the mask
  const ParsedCommand parsed = parse(write(ucma::Code::Bind, in));
  EXPECT_EQ(std::get<command::Bind>(parsed.command.body).address.port, 0);
}

TEST(UcmaCommand, AnAddressHasTheSizeOfItsFamily) {
  ucma::Bind in;
  in.addr_size = 48;
  in.addr[0] = 27;
  EXPECT_EQ(parse(write(ucma::Code::Bind, in)).error, Error::None);
  ucma::BindIp old;
  old.addr[0] = 27;
  EXPECT_EQ(parse(write(ucma::Code::BindIp, old)).error, Error::Invalid) << "no room for it";
  in.addr_size = 47;
  EXPECT_EQ(parse(write(ucma::Code::Bind, in)).error, Error::Invalid);
  in.addr[0] = 1;
  EXPECT_EQ(parse(write(ucma::Code::Bind, in)).error, Error::Invalid);
}

TEST(UcmaCommand, TheSourceOfResolveIpMayBeMissing) {
  ucma::ResolveIp in;
  in.dst_addr[0] = 2;
  const ParsedCommand parsed = parse(write(ucma::Code::ResolveIp, in));
  ASSERT_EQ(parsed.error, Error::None);
  EXPECT_FALSE(std::get<command::ResolveAddress>(parsed.command.body).source);
  in.src_addr[0] = 1;
  EXPECT_EQ(parse(write(ucma::Code::ResolveIp, in)).error, Error::Invalid);
}

TEST(UcmaCommand, ConnectNeedsParametersAndAcceptDoesNot) {
  ucma::Connect connect;
  EXPECT_EQ(parse(write(ucma::Code::Connect, connect)).error, Error::Invalid);
  connect.conn_param.valid = 1;
  EXPECT_EQ(parse(write(ucma::Code::Connect, connect)).error, Error::None);
  EXPECT_EQ(parse(write(ucma::Code::Accept, ucma::Accept{})).error, Error::None);
  EXPECT_EQ(parse(write(ucma::Code::Accept, ucma::Listen{})).error, Error::Invalid) << "too short";
}

TEST(UcmaCommand, ARejectionHasOneOfTwoReasons) {
  ucma::Reject in;
  EXPECT_EQ(std::get<ucma::Reject>(parse(write(ucma::Code::Reject, in)).command.body).reason, 28);
  in.reason = 35;
  EXPECT_EQ(parse(write(ucma::Code::Reject, in)).error, Error::None);
  in.reason = 8;
  EXPECT_EQ(parse(write(ucma::Code::Reject, in)).error, Error::Invalid);
}

}  // namespace
}  // namespace ib::services::rdma_cm
