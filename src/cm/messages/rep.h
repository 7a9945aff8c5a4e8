// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// REP, reply to request for communication [IBA1 12.6.8, table 110], and RTU, ready to use
// [IBA1 12.6.9, table 111].
#pragma once

#include "cm/messages/format.h"

namespace ib::cm {

struct RepWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  Be32 local_qkey;
  Be24 local_qpn;
  std::uint8_t vendor_id_high = 0;
  Be24 local_eecn;
  std::uint8_t vendor_id_middle = 0;
  Be24 starting_psn;
  std::uint8_t vendor_id_low = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t delay_failover = 0;  // target ACK delay (5), failover accepted (2), flow control (1)
  std::uint8_t rnr_srq = 0;         // RNR retry count (3), SRQ (1)
  Be64 local_ca_guid;
  std::array<std::uint8_t, kRepPrivateBytes> private_data{};
};
static_assert(MessageWire<RepWire>);
static_assert(offsetof(RepWire, local_qkey) == 8 && offsetof(RepWire, local_qpn) == 12);
static_assert(offsetof(RepWire, local_eecn) == 16 && offsetof(RepWire, starting_psn) == 20);
static_assert(offsetof(RepWire, vendor_id_high) == 15 && offsetof(RepWire, vendor_id_middle) == 19);
static_assert(offsetof(RepWire, vendor_id_low) == 23);
static_assert(offsetof(RepWire, responder_resources) == 24);
static_assert(offsetof(RepWire, initiator_depth) == 25 && offsetof(RepWire, delay_failover) == 26);
static_assert(offsetof(RepWire, rnr_srq) == 27 && offsetof(RepWire, local_ca_guid) == 28);
static_assert(offsetof(RepWire, private_data) == 36);

struct Rep {
  Ids ids;
  std::uint32_t qkey = 0;
  std::uint32_t qpn = 0;
  std::uint32_t eecn = 0;  // with XRC: the QPN of the target queue pair [IBA1 annex A14]
  VendorOptions vendor;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t target_ack_delay = 0;
  std::uint8_t failover = 0;
  bool flow_control = false;
  std::uint8_t rnr_retry_count = 0;
  bool srq = false;
  std::uint64_t ca_guid = 0;
  Bytes<kRepPrivateBytes> private_data;
};

struct RtuWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  std::array<std::uint8_t, kRtuPrivateBytes> private_data{};
};
static_assert(MessageWire<RtuWire> && offsetof(RtuWire, private_data) == 8);

struct Rtu {
  Ids ids;
  Bytes<kRtuPrivateBytes> private_data;
};

mad::Mad encode(const Rep& rep);
Rep decode_rep(const mad::Mad& mad);
mad::Mad encode(const Rtu& rtu);
Rtu decode_rtu(const mad::Mad& mad);

}  // namespace ib::cm
