// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The common header of management datagrams [IBA1 13.4.2].
#pragma once

#include "base/big_endian.h"
#include "verbs/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace ib::mad {

inline constexpr std::size_t kMadSize = verbs::kMadBytes;
using Mad = std::array<std::byte, kMadSize>;

struct MadHeader {
  std::uint8_t base_version = 0;
  std::uint8_t mgmt_class = 0;
  std::uint8_t class_version = 0;
  std::uint8_t method = 0;
  Be16 status;
  Be16 class_specific;
  Be64 transaction_id;
  Be16 attribute;
  Be16 reserved;
  Be32 modifier;
};
static_assert(sizeof(MadHeader) == 24 && alignof(MadHeader) == 1);

inline constexpr std::uint8_t kBaseVersion = 1;
inline constexpr std::uint8_t kClassVersion = 1;

// Of a MAD, of which at least the header is there.
inline MadHeader header_of(std::span<const std::byte> mad) {
  MadHeader header;
  std::memcpy(&header, mad.data(), sizeof header);
  return header;
}

// [IBA1 13.4.4, table 103]; mgmt_class.h has the others.
namespace mgmt_class {
inline constexpr std::uint8_t kSubnLid = 0x01;       // SMPs with LIDs
inline constexpr std::uint8_t kSubnDirected = 0x81;  // SMPs with a directed route
}  // namespace mgmt_class

// [IBA1 13.4.5, table 104]
namespace method {
inline constexpr std::uint8_t kGet = 0x01;
inline constexpr std::uint8_t kSet = 0x02;
inline constexpr std::uint8_t kSend = 0x03;
inline constexpr std::uint8_t kTrap = 0x05;
inline constexpr std::uint8_t kReport = 0x06;
inline constexpr std::uint8_t kTrapRepress = 0x07;
inline constexpr std::uint8_t kGetTable = 0x12;       // of classes with RMPP
inline constexpr std::uint8_t kGetTraceTable = 0x13;  // SA
inline constexpr std::uint8_t kGetMulti = 0x14;       // SA
inline constexpr std::uint8_t kDelete = 0x15;         // SA
inline constexpr std::uint8_t kGetResp = 0x81;
inline constexpr std::uint8_t kReportResp = 0x86;
inline constexpr std::uint8_t kGetTableResp = 0x92;
inline constexpr std::uint8_t kGetMultiResp = 0x94;
inline constexpr std::uint8_t kDeleteResp = 0x95;
inline constexpr std::uint8_t kResponseBit = 0x80;
}  // namespace method

// A TrapRepress ends something that its receiver sends; it answers no request of a transaction's.
constexpr bool is_response(std::uint8_t method) {
  return (method & method::kResponseBit) != 0;
}
// Get and Set are answered also by an interface without an agent for them [13.4.7].
constexpr bool wants_refusal(std::uint8_t method) {
  return method == method::kGet || method == method::kSet;
}

// [IBA1 13.4.7, table 105]
namespace mad_status {
inline constexpr std::uint16_t kOk = 0;
inline constexpr std::uint16_t kBusy = 1;
inline constexpr std::uint16_t kRedirect = 1 << 1;  // the attribute is a ClassPortInfo
inline constexpr std::uint16_t kBadVersion = 1 << 2;
inline constexpr std::uint16_t kMethodNotSupported = 2 << 2;
inline constexpr std::uint16_t kAttributeNotSupported = 3 << 2;  // or not with this method
inline constexpr std::uint16_t kBadField = 7 << 2;               // of the attribute or its modifier
}  // namespace mad_status

}  // namespace ib::mad
