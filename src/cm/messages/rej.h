// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// REJ, reject [IBA1 12.6.7, table 108], and MRA, message receipt acknowledgement [IBA1 12.6.6,
// table 107].
#pragma once

#include "base/result.h"
#include "cm/messages/format.h"

namespace ib::cm {

struct RejWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  std::uint8_t message_rejected = 0;  // (2)
  std::uint8_t info_length = 0;       // (7)
  Be16 reason;
  std::array<std::uint8_t, kAdditionalInfoBytes> info{};
  std::array<std::uint8_t, kRejPrivateBytes> private_data{};
};
static_assert(MessageWire<RejWire>);
static_assert(offsetof(RejWire, message_rejected) == 8 && offsetof(RejWire, info_length) == 9);
static_assert(offsetof(RejWire, reason) == 10 && offsetof(RejWire, info) == 12);
static_assert(offsetof(RejWire, private_data) == 84);

struct Rej {
  Ids ids;
  std::uint8_t message = 0;  // 0 REQ, 1 REP, 2 no message
  std::uint16_t reason = 0;
  AdditionalInfo info;
  Bytes<kRejPrivateBytes> private_data;
};

struct MraWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  std::uint8_t message = 0;          // (2)
  std::uint8_t service_timeout = 0;  // (5)
  std::array<std::uint8_t, kMraPrivateBytes> private_data{};
};
static_assert(MessageWire<MraWire>);
static_assert(offsetof(MraWire, message) == 8 && offsetof(MraWire, service_timeout) == 9);
static_assert(offsetof(MraWire, private_data) == 10);

struct Mra {
  Ids ids;
  std::uint8_t message = 0;  // 0 REQ, 1 REP, 2 LAP
  std::uint8_t service_timeout = 0;
  Bytes<kMraPrivateBytes> private_data;
};

mad::Mad encode(const Rej& rej);
// Malformed if the information is longer than its field.
Result<Rej> decode_rej(const mad::Mad& mad);
mad::Mad encode(const Mra& mra);
Mra decode_mra(const mad::Mad& mad);

}  // namespace ib::cm
