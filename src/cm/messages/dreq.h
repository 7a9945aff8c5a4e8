// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DREQ, request for communication release [IBA1 12.6.10, table 112], and DREP, its reply
// [IBA1 12.6.11, table 113].
#pragma once

#include "cm/messages/format.h"

namespace ib::cm {

struct DreqWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  Be24 remote_qpn;
  std::uint8_t reserved = 0;
  std::array<std::uint8_t, kDreqPrivateBytes> private_data{};
};
static_assert(MessageWire<DreqWire>);
static_assert(offsetof(DreqWire, remote_qpn) == 8 && offsetof(DreqWire, private_data) == 12);

struct Dreq {
  Ids ids;
  std::uint32_t remote_qpn = 0;  // of the message's receiver
  Bytes<kDreqPrivateBytes> private_data;
};

struct DrepWire {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  std::array<std::uint8_t, kDrepPrivateBytes> private_data{};
};
static_assert(MessageWire<DrepWire> && offsetof(DrepWire, private_data) == 8);

struct Drep {
  Ids ids;
  Bytes<kDrepPrivateBytes> private_data;
};

mad::Mad encode(const Dreq& dreq);
Dreq decode_dreq(const mad::Mad& mad);
mad::Mad encode(const Drep& drep);
Drep decode_drep(const mad::Mad& mad);

}  // namespace ib::cm
