// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The classes of general management [IBA1 13.4.4, table 103], and where the parts of their MADs
// are.
#pragma once

#include "mad/header.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ib::mad {

// The subnet's own are in header.h: those go by queue pair 0.
namespace mgmt_class {
inline constexpr std::uint8_t kSubnAdm = 0x03;
inline constexpr std::uint8_t kPerf = 0x04;
inline constexpr std::uint8_t kBm = 0x05;      // baseboard
inline constexpr std::uint8_t kDevMgt = 0x06;  // I/O devices
inline constexpr std::uint8_t kComMgt = 0x07;  // communication
inline constexpr std::uint8_t kSnmp = 0x08;
inline constexpr std::uint8_t kVendorLow = 0x09;  // to kVendorLowEnd
inline constexpr std::uint8_t kVendorLowEnd = 0x0f;
inline constexpr std::uint8_t kDevAdm = 0x10;
inline constexpr std::uint8_t kBootMgt = 0x11;
inline constexpr std::uint8_t kBis = 0x12;
inline constexpr std::uint8_t kCongestion = 0x21;
inline constexpr std::uint8_t kVendorHigh = 0x30;  // to kVendorHighEnd: with an OUI, and RMPP
inline constexpr std::uint8_t kVendorHighEnd = 0x4f;
}  // namespace mgmt_class

// Class numbers of general management: queue pair 1. The numbers 2, 0x50 to 0x80, and all from 0x82
// are reserved.
constexpr bool is_general_class(std::uint8_t mgmt_class) {
  return mgmt_class > 2 && mgmt_class <= mgmt_class::kVendorHighEnd;
}
constexpr bool has_oui(std::uint8_t mgmt_class) {
  return mgmt_class >= mgmt_class::kVendorHigh && mgmt_class <= mgmt_class::kVendorHighEnd;
}
// Its MADs have an RMPP header behind the common one [13.6.2].
constexpr bool has_rmpp(std::uint8_t mgmt_class) {
  return mgmt_class == mgmt_class::kSubnAdm || mgmt_class == mgmt_class::kDevMgt ||
         mgmt_class == mgmt_class::kDevAdm || mgmt_class == mgmt_class::kBis || has_oui(mgmt_class);
}

inline constexpr std::size_t kRmppOffset = 24;  // of the RMPP header
inline constexpr std::size_t kRmppDataOffset = 36;
inline constexpr std::size_t kOuiOffset = 37;  // behind a reserved byte

// The bytes before the data that a message of several packets consists of; each of its packets has
// them.
constexpr std::size_t header_size(std::uint8_t mgmt_class) {
  if (mgmt_class == mgmt_class::kSubnAdm) return 56;
  if (has_oui(mgmt_class)) return 40;
  return has_rmpp(mgmt_class) ? 64 : 24;
}

// Where the attribute of a MAD is.
constexpr std::size_t attribute_offset(std::uint8_t mgmt_class) {
  const bool has_key = mgmt_class == mgmt_class::kPerf || mgmt_class == mgmt_class::kBm ||
                       mgmt_class == mgmt_class::kCongestion;
  return has_key ? 64 : header_size(mgmt_class);
}

// Of a class that has one; the MAD is whole.
inline std::uint32_t oui_of(std::span<const std::byte> mad) {
  const auto at = [&](std::size_t i) {
    return std::to_integer<std::uint32_t>(mad[kOuiOffset + i]);
  };
  return at(0) << 16 | at(1) << 8 | at(2);
}

}  // namespace ib::mad
