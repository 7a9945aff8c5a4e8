// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MADs of subnet administration [IBA1 15.2.1]: the header behind the RMPP header, methods,
// attributes and statuses.
#pragma once

#include "mad/header.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::sa {

inline constexpr std::uint8_t kMgmtClass = 0x03;
inline constexpr std::uint8_t kClassVersion = 2;

inline constexpr std::size_t kRmppHeaderSize = 12;
inline constexpr std::size_t kDataOffset = 56;  // of the attribute in a MAD
inline constexpr std::size_t kDataSize = mad::kMadSize - kDataOffset;

// Behind MAD header and RMPP header; in a message of several segments each has one.
struct SaHeader {
  Be64 sm_key;
  Be16 attribute_offset;  // of records, in units of 8 bytes
  Be16 reserved;
  Be64 component_mask;
};
static_assert(sizeof(SaHeader) == 20 && alignof(SaHeader) == 1);
static_assert(sizeof(mad::MadHeader) + kRmppHeaderSize + sizeof(SaHeader) == kDataOffset);

// A MAD that is whole in one segment.
struct SaMad {
  mad::MadHeader header;
  std::array<std::uint8_t, kRmppHeaderSize> rmpp{};
  SaHeader sa;
  std::array<std::byte, kDataSize> data{};
};
static_assert(sizeof(SaMad) == mad::kMadSize && offsetof(SaMad, data) == kDataOffset);

// Records follow each other at this distance, a multiple of 8 bytes.
constexpr std::size_t stride_of(std::size_t record_size) {
  return (record_size + 7) / 8 * 8;
}

namespace method {  // [15.2.2]
inline constexpr std::uint8_t kGet = 0x01;
inline constexpr std::uint8_t kSet = 0x02;
inline constexpr std::uint8_t kReport = 0x06;
inline constexpr std::uint8_t kGetTable = 0x12;
inline constexpr std::uint8_t kGetTraceTable = 0x13;
inline constexpr std::uint8_t kGetMulti = 0x14;
inline constexpr std::uint8_t kDelete = 0x15;
inline constexpr std::uint8_t kGetResp = 0x81;
inline constexpr std::uint8_t kReportResp = 0x86;
inline constexpr std::uint8_t kGetTableResp = 0x92;
inline constexpr std::uint8_t kGetMultiResp = 0x94;
inline constexpr std::uint8_t kDeleteResp = 0x95;
}  // namespace method

namespace attribute {  // [15.2.5]
inline constexpr std::uint16_t kClassPortInfo = 0x0001;
inline constexpr std::uint16_t kNotice = 0x0002;
inline constexpr std::uint16_t kInformInfo = 0x0003;
inline constexpr std::uint16_t kNodeRecord = 0x0011;
inline constexpr std::uint16_t kPortInfoRecord = 0x0012;
inline constexpr std::uint16_t kSlToVlRecord = 0x0013;
inline constexpr std::uint16_t kSwitchInfoRecord = 0x0014;
inline constexpr std::uint16_t kLinearForwardingRecord = 0x0015;
inline constexpr std::uint16_t kMulticastForwardingRecord = 0x0017;
inline constexpr std::uint16_t kSmInfoRecord = 0x0018;
inline constexpr std::uint16_t kLinkRecord = 0x0020;
inline constexpr std::uint16_t kGuidInfoRecord = 0x0030;
inline constexpr std::uint16_t kServiceRecord = 0x0031;
inline constexpr std::uint16_t kPkeyTableRecord = 0x0033;
inline constexpr std::uint16_t kPathRecord = 0x0035;
inline constexpr std::uint16_t kVlArbitrationRecord = 0x0036;
inline constexpr std::uint16_t kMcMemberRecord = 0x0038;
inline constexpr std::uint16_t kMultiPathRecord = 0x003a;
inline constexpr std::uint16_t kInformInfoRecord = 0x00f3;
}  // namespace attribute

// The status of a MAD: its lower half is that of every class (mad::mad_status).
namespace sa_status {  // [15.2.3]
inline constexpr std::uint16_t kOk = 0;
inline constexpr std::uint16_t kNoResources = 0x0100;
inline constexpr std::uint16_t kRequestInvalid = 0x0200;
inline constexpr std::uint16_t kNoRecords = 0x0300;
inline constexpr std::uint16_t kTooManyRecords = 0x0400;
inline constexpr std::uint16_t kInvalidGid = 0x0500;
inline constexpr std::uint16_t kInsufficientComponents = 0x0600;
inline constexpr std::uint16_t kRequestDenied = 0x0700;
}  // namespace sa_status

}  // namespace ib::sa
