// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LAP, load alternate path [IBA1 12.8.1, table 115], and APR, alternate path response
// [IBA1 12.8.2, table 116].
#pragma once

#include "base/result.h"
#include "cm/messages/format.h"
#include "cm/messages/path_format.h"

namespace ib::cm {

struct LapWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  Be32 reserved1;
  Be24 remote_qpn;
  std::uint8_t remote_timeout = 0;  // remote CM response timeout (5)
  Be32 reserved2;
  LapPathWire alternate;
  std::array<std::uint8_t, kLapPrivateBytes> private_data{};
};
static_assert(MessageWire<LapWire>);
static_assert(offsetof(LapWire, remote_qpn) == 12 && offsetof(LapWire, remote_timeout) == 15);
static_assert(offsetof(LapWire, alternate) == 20 && offsetof(LapWire, private_data) == 64);

struct Lap {
  Ids ids;
  std::uint32_t remote_qpn = 0;  // of the message's receiver
  std::uint8_t remote_cm_response_timeout = 0;
  Path alternate;  // as the sender has it
  Bytes<kLapPrivateBytes> private_data;
};

struct AprWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  std::uint8_t info_length = 0;
  std::uint8_t status = 0;
  Be16 reserved;
  std::array<std::uint8_t, kAdditionalInfoBytes> info{};
  std::array<std::uint8_t, kAprPrivateBytes> private_data{};
};
static_assert(MessageWire<AprWire>);
static_assert(offsetof(AprWire, info_length) == 8 && offsetof(AprWire, status) == 9);
static_assert(offsetof(AprWire, info) == 12 && offsetof(AprWire, private_data) == 84);

struct Apr {
  Ids ids;
  std::uint8_t status = 0;
  AdditionalInfo info;
  Bytes<kAprPrivateBytes> private_data;
};

mad::Mad encode(const Lap& lap);
Lap decode_lap(const mad::Mad& mad);
mad::Mad encode(const Apr& apr);
// Malformed if the information is longer than its field.
Result<Apr> decode_apr(const mad::Mad& mad);

}  // namespace ib::cm
