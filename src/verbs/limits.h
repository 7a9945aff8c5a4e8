// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The abilities and limits of an HCA [IBA1 11.2.1.2]: the numbers that query-HCA reports and that
// create and modify enforce. Counts are per HCA; the tables in device memory are shared by all HCAs
// of a fabric and may be full earlier.
#pragma once

#include <cstdint>

namespace ib::verbs::limits {

inline constexpr std::uint32_t kMaxQp = 65536;
inline constexpr std::uint32_t kMaxQpWr = 16384;
inline constexpr std::uint32_t kMaxSge = 30;
inline constexpr std::uint32_t kMaxInline = 1024;
inline constexpr std::uint32_t kMaxCq = 65536;
inline constexpr std::uint32_t kMaxCqe = 4194303;
inline constexpr std::uint32_t kMaxSrq = 16384;
inline constexpr std::uint32_t kMaxSrqWr = 16384;
inline constexpr std::uint32_t kMaxSrqSge = 30;
inline constexpr std::uint32_t kMaxMr = 131072;
inline constexpr std::uint32_t kMaxMw = 131072;
inline constexpr std::uint32_t kMaxPd = 65536;
inline constexpr std::uint32_t kMaxAh = 1048576;
inline constexpr std::uint32_t kMaxXrcd = 8192;
inline constexpr std::uint32_t kMaxDm = 1024;
inline constexpr std::uint64_t kMaxDmSize = 256ull << 20;  // of one allocation
inline constexpr std::uint32_t kMaxDmLogAlign = 21;
inline constexpr std::uint32_t kMaxReadAtomic = 16;  // outstanding, as requester and as responder
inline constexpr std::uint32_t kMaxMcastGroups = 4096;
inline constexpr std::uint32_t kMaxMcastAttachPerGroup = 4096;
inline constexpr std::uint32_t kMaxMcastAttach = 4096;  // in all
inline constexpr std::uint64_t kMaxMrSize = 1ull << 47;
inline constexpr std::uint32_t kMaxRanges = 256;        // of a physical registration
inline constexpr std::uint32_t kMaxPkeys = 32;          // of a port
inline constexpr std::uint32_t kMaxMessage = 1u << 31;  // [IBA1 9.7.2]
// Payload of a datagram between queue pairs with control::qp_flag::kTakesLarge: the longest IP
// packet and the headers of a tunnel.
inline constexpr std::uint32_t kMaxLargeDatagram = (64u << 10) + 128;
inline constexpr std::uint64_t kPageSizes = ~std::uint64_t{4095};  // every power of two from 4 KiB
inline constexpr std::uint32_t kGidTableLength = 16;               // of a port
inline constexpr std::uint32_t kLocalAckDelay = 0;

inline constexpr std::uint32_t kVendorId =
    0x025346;  // first bytes of our GUIDs: locally administered
inline constexpr std::uint32_t kVendorPartId = 1;
inline constexpr std::uint32_t kHwVersion = 1;

// The share of one process in so many objects: the rest stays for others.
constexpr std::uint32_t quota_of_one(std::uint32_t limit) {
  return limit - limit / 4;
}

// Numbers of ibv_device_cap_flags.
namespace device_cap {
inline constexpr std::uint32_t kAutoPathMigration = 1u << 4;
inline constexpr std::uint32_t kUdAvPortEnforce = 1u << 6;
inline constexpr std::uint32_t kCurrentQpStateModify = 1u << 7;
inline constexpr std::uint32_t kShutdownPort = 1u << 8;
inline constexpr std::uint32_t kPortActiveEvent = 1u << 10;
inline constexpr std::uint32_t kSystemImageGuid = 1u << 11;
inline constexpr std::uint32_t kRcRnrNakGeneration = 1u << 12;
inline constexpr std::uint32_t kMemoryWindow = 1u << 17;
inline constexpr std::uint32_t kXrc = 1u << 20;
inline constexpr std::uint32_t kMemoryManagementExtensions = 1u << 21;
inline constexpr std::uint32_t kMemoryWindowType2b = 1u << 24;
}  // namespace device_cap
// Not in it, because not implemented: bad P_Key counters, SRQ resize, notification after N
// completions, window type 2A, init type.
inline constexpr std::uint32_t kDeviceCaps =
    device_cap::kAutoPathMigration | device_cap::kUdAvPortEnforce |
    device_cap::kCurrentQpStateModify | device_cap::kShutdownPort | device_cap::kPortActiveEvent |
    device_cap::kSystemImageGuid | device_cap::kRcRnrNakGeneration | device_cap::kMemoryWindow |
    device_cap::kXrc | device_cap::kMemoryManagementExtensions | device_cap::kMemoryWindowType2b;

}  // namespace ib::verbs::limits
