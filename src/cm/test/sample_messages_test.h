// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One message of each kind, in which every field has a value of its own and the widest ones have
// all bits.
#pragma once

#include "cm/messages/dreq.h"
#include "cm/messages/lap.h"
#include "cm/messages/rej.h"
#include "cm/messages/rep.h"
#include "cm/messages/req.h"
#include "cm/messages/sidr.h"

#include <numeric>

namespace ib::cm::test {

inline constexpr std::uint64_t kTransaction = 0x0102'0304'0506'0708;

template <std::size_t N>
Bytes<N> counted(std::uint8_t first, std::size_t size = N) {
  std::array<std::uint8_t, N> bytes;
  std::iota(bytes.begin(), bytes.end(), first);
  return Bytes<N>(std::span(bytes).first(size));
}

inline Gid sample_gid(std::uint8_t last) {
  return verbs::make_gid(0xfe80'0000'0000'0000, 0x0253'46ff'fe00'0000 + last);
}

inline Path sample_path(std::uint8_t n) {
  Path path;
  path.slid = static_cast<std::uint16_t>(0x1000 + n);
  path.dlid = static_cast<std::uint16_t>(0x2000 + n);
  path.sgid = sample_gid(n);
  path.dgid = sample_gid(static_cast<std::uint8_t>(n + 1));
  path.flow_label = 0xabcd0u + n;
  path.rate = 0x3f;
  path.traffic_class = 0x71;
  path.hop_limit = 0x40;
  path.sl = 0xb;
  path.subnet_local = true;
  path.ack_timeout = 0x13;
  path.packet_lifetime = 0x12;
  path.pkey = 0x8001;
  return path;
}

inline Req sample_req() {
  Req req;
  req.transaction_id = kTransaction;
  req.local_comm_id = 0x1111'2222;
  req.vendor = {0xaabbcc, 0x0000'00ff};
  req.service_id = 0x1000'ce00'1234'5678;
  req.ca_guid = 0x0253'4600'0001'0000;
  req.qkey = 0x8877'6655;
  req.qpn = 0xfedcba;
  req.responder_resources = 0x21;
  req.initiator_depth = 0x43;
  req.remote_cm_response_timeout = 0x1b;
  req.transport = 1;
  req.extended_transport = 5;
  req.flow_control = true;
  req.starting_psn = 0xabcdef;
  req.local_cm_response_timeout = 0x15;
  req.retry_count = 6;
  req.pkey = 0x8001;
  req.path_mtu = 4;
  req.rdc_exists = true;
  req.rnr_retry_count = 5;
  req.max_cm_retries = 0xe;
  req.srq = true;
  req.primary = sample_path(1);
  req.alternate = sample_path(5);
  req.private_data = counted<kReqPrivateBytes>(0x80);
  return req;
}

inline Rep sample_rep() {
  Rep rep;
  rep.ids = {kTransaction, 0x3333'4444, 0x1111'2222};
  rep.qkey = 0x8877'6655;
  rep.qpn = 0xfedcba;
  rep.eecn = 0x123456;
  rep.vendor = {0xaabbcc, 0x0000'00ff};
  rep.starting_psn = 0xabcdef;
  rep.responder_resources = 0x21;
  rep.initiator_depth = 0x43;
  rep.target_ack_delay = 0x15;
  rep.failover = 2;
  rep.flow_control = true;
  rep.rnr_retry_count = 5;
  rep.srq = true;
  rep.ca_guid = 0x0253'4600'0001'0000;
  rep.private_data = counted<kRepPrivateBytes>(0x10);
  return rep;
}

inline Ids sample_ids() {
  return {kTransaction, 0x3333'4444, 0x1111'2222};
}
inline Rtu sample_rtu() {
  return {sample_ids(), counted<kRtuPrivateBytes>(1)};
}
inline Rej sample_rej() {
  return {sample_ids(), 1, 28, counted<kAdditionalInfoBytes>(3, 72),
          counted<kRejPrivateBytes>(0x40)};
}
inline Mra sample_mra() {
  return {sample_ids(), 2, 0x15, counted<kMraPrivateBytes>(4)};
}
inline Dreq sample_dreq() {
  return {sample_ids(), 0xfedcba, counted<kDreqPrivateBytes>(5)};
}
inline Drep sample_drep() {
  return {sample_ids(), counted<kDrepPrivateBytes>(6)};
}
inline Lap sample_lap() {
  return {sample_ids(), 0xfedcba, 0x15, sample_path(3), counted<kLapPrivateBytes>(7)};
}
inline Apr sample_apr() {
  return {sample_ids(), 13, counted<kAdditionalInfoBytes>(8, 50), counted<kAprPrivateBytes>(9)};
}
inline SidrReq sample_sidr_req() {
  return {kTransaction, 0x5555'6666, 0x8001, 0x1000'ce00'1234'5678,
          counted<kSidrReqPrivateBytes>(10)};
}
inline SidrRep sample_sidr_rep() {
  SidrRep rep;
  rep.transaction_id = kTransaction;
  rep.request_id = 0x5555'6666;
  rep.status = 4;
  rep.qpn = 0xfedcba;
  rep.service_id = 0x1000'ce00'1234'5678;
  rep.qkey = 0x8877'6655;
  rep.vendor = {0xaabbcc, 0x0000'00ff};
  rep.info = counted<kAdditionalInfoBytes>(11, 71);
  rep.private_data = counted<kSidrRepPrivateBytes>(12);
  return rep;
}

}  // namespace ib::cm::test
