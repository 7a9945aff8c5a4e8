// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SIDR_REQ, service ID resolution request [IBA1 12.11.1, table 119], and SIDR_REP, its response
// [IBA1 12.11.2, table 120].
#pragma once

#include "base/result.h"
#include "cm/messages/format.h"

namespace ib::cm {

struct SidrReqWire {
  Be32 request_id;
  Be16 pkey;
  Be16 reserved;
  Be64 service_id;
  std::array<std::uint8_t, kSidrReqPrivateBytes> private_data{};
};
static_assert(MessageWire<SidrReqWire>);
static_assert(offsetof(SidrReqWire, pkey) == 4 && offsetof(SidrReqWire, service_id) == 8);
static_assert(offsetof(SidrReqWire, private_data) == 16);

struct SidrReq {
  std::uint64_t transaction_id = 0;
  std::uint32_t request_id = 0;
  std::uint16_t pkey = 0;
  std::uint64_t service_id = 0;
  Bytes<kSidrReqPrivateBytes> private_data;
};

struct SidrRepWire {
  Be32 request_id;
  std::uint8_t status = 0;
  std::uint8_t info_length = 0;
  Be16 vendor_id_high;
  Be24 qpn;
  std::uint8_t vendor_id_low = 0;
  Be64 service_id;
  Be32 qkey;
  std::array<std::uint8_t, kAdditionalInfoBytes> info{};
  std::array<std::uint8_t, kSidrRepPrivateBytes> private_data{};
};
static_assert(MessageWire<SidrRepWire>);
static_assert(offsetof(SidrRepWire, status) == 4 && offsetof(SidrRepWire, info_length) == 5);
static_assert(offsetof(SidrRepWire, vendor_id_high) == 6 && offsetof(SidrRepWire, qpn) == 8);
static_assert(offsetof(SidrRepWire, vendor_id_low) == 11 &&
              offsetof(SidrRepWire, service_id) == 12);
static_assert(offsetof(SidrRepWire, qkey) == 20 && offsetof(SidrRepWire, info) == 24);
static_assert(offsetof(SidrRepWire, private_data) == 96);

struct SidrRep {
  std::uint64_t transaction_id = 0;
  std::uint32_t request_id = 0;
  std::uint8_t status = 0;
  std::uint32_t qpn = 0;
  std::uint64_t service_id = 0;
  std::uint32_t qkey = 0;
  VendorOptions vendor;
  AdditionalInfo info;
  Bytes<kSidrRepPrivateBytes> private_data;
};

mad::Mad encode(const SidrReq& req);
SidrReq decode_sidr_req(const mad::Mad& mad);
mad::Mad encode(const SidrRep& rep);
// Malformed if the information is longer than its field.
Result<SidrRep> decode_sidr_rep(const mad::Mad& mad);

}  // namespace ib::cm
