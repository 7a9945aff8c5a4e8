// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The common header of management datagrams [IBA1 13.4.2].
#pragma once

#include "base/big_endian.h"
#include "verbs/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
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

// [IBA1 13.4.4, table 103]
namespace mgmt_class {
inline constexpr std::uint8_t kSubnLid = 0x01;       // SMPs with LIDs
inline constexpr std::uint8_t kSubnDirected = 0x81;  // SMPs with a directed route
}  // namespace mgmt_class

// [IBA1 13.4.5, table 104]
namespace method {
inline constexpr std::uint8_t kGet = 0x01;
inline constexpr std::uint8_t kSet = 0x02;
inline constexpr std::uint8_t kGetResp = 0x81;
inline constexpr std::uint8_t kResponseBit = 0x80;
}  // namespace method

// [IBA1 13.4.7, table 105]
namespace mad_status {
inline constexpr std::uint16_t kOk = 0;
inline constexpr std::uint16_t kBadVersion = 1 << 2;
inline constexpr std::uint16_t kMethodNotSupported = 2 << 2;
inline constexpr std::uint16_t kAttributeNotSupported = 3 << 2;  // or not with this method
inline constexpr std::uint16_t kBadField = 7 << 2;               // of the attribute or its modifier
}  // namespace mad_status

}  // namespace ib::mad
