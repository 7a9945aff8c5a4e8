// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// REQ, request for communication [IBA1 12.6.5, table 106].
#pragma once

#include "cm/messages/format.h"
#include "cm/messages/path_format.h"

#include <optional>

namespace ib::cm {

struct ReqWire {
  Be32 local_comm_id;
  std::uint8_t reserved1 = 0;
  Be24 vendor_id;
  Be64 service_id;
  Be64 local_ca_guid;
  Be32 reserved2;
  Be32 local_qkey;
  Be24 local_qpn;
  std::uint8_t responder_resources = 0;
  Be24 local_eecn;
  std::uint8_t initiator_depth = 0;
  Be24 remote_eecn;
  std::uint8_t remote_timeout_transport = 0;  // timeout (5), transport (2), flow control (1)
  Be24 starting_psn;
  std::uint8_t local_timeout_retry = 0;  // timeout (5), retry count (3)
  Be16 pkey;
  std::uint8_t mtu_rnr = 0;      // path MTU (4), RDC exists (1), RNR retry count (3)
  std::uint8_t retries_srq = 0;  // max CM retries (4), SRQ (1), extended transport (3)
  ReqPathWire primary;
  ReqPathWire alternate;
  std::array<std::uint8_t, kReqPrivateBytes> private_data{};
};
static_assert(MessageWire<ReqWire>);
static_assert(offsetof(ReqWire, vendor_id) == 5 && offsetof(ReqWire, service_id) == 8);
static_assert(offsetof(ReqWire, local_ca_guid) == 16 && offsetof(ReqWire, local_qkey) == 28);
static_assert(offsetof(ReqWire, local_qpn) == 32 && offsetof(ReqWire, responder_resources) == 35);
static_assert(offsetof(ReqWire, local_eecn) == 36 && offsetof(ReqWire, initiator_depth) == 39);
static_assert(offsetof(ReqWire, remote_eecn) == 40 && offsetof(ReqWire, starting_psn) == 44);
static_assert(offsetof(ReqWire, remote_timeout_transport) == 43);
static_assert(offsetof(ReqWire, local_timeout_retry) == 47 && offsetof(ReqWire, pkey) == 48);
static_assert(offsetof(ReqWire, mtu_rnr) == 50 && offsetof(ReqWire, retries_srq) == 51);
static_assert(offsetof(ReqWire, primary) == 52 && offsetof(ReqWire, alternate) == 96);
static_assert(offsetof(ReqWire, private_data) == 140);

// Values of 4 or 2 bits that have gaps stay numbers: they are checked by the receiver, which has a
// reason to reject for each.
struct Req {
  std::uint64_t transaction_id = 0;
  std::uint32_t local_comm_id = 0;
  VendorOptions vendor;
  std::uint64_t service_id = 0;
  std::uint64_t ca_guid = 0;
  std::uint32_t qkey = 0;
  std::uint32_t qpn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t remote_cm_response_timeout = 0;
  std::uint8_t transport = 0;           // 0 RC, 1 UC, 2 RD, 3: as `extended_transport` says
  std::uint8_t extended_transport = 0;  // 1 XRC
  bool flow_control = false;
  std::uint32_t starting_psn = 0;
  std::uint8_t local_cm_response_timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint16_t pkey = 0;
  std::uint8_t path_mtu = 0;
  bool rdc_exists = false;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t max_cm_retries = 0;
  bool srq = false;
  Path primary;  // as the sender has them
  std::optional<Path> alternate;
  Bytes<kReqPrivateBytes> private_data;
};

mad::Mad encode(const Req& req);
Req decode_req(const mad::Mad& mad);

}  // namespace ib::cm
