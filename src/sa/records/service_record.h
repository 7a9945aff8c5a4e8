// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServiceRecord [IBA1 15.2.5.14]: a service that a port offers. Service id, GID and P_Key name it.
#pragma once

#include "sa/records/field.h"

namespace ib::sa {

inline constexpr std::uint32_t kLeaseWithoutEnd = 0xffffffff;

struct ServiceRecord {
  static constexpr std::size_t kSize = 176;

  std::uint64_t id = 0;
  verbs::Gid gid{};
  std::uint16_t pkey = 0;
  std::uint32_t lease_seconds = 0;
  std::array<std::uint8_t, 16> key{};
  std::array<std::uint8_t, 64> name{};  // UTF-8
  std::array<std::uint8_t, 16> data8{};
  std::array<std::uint16_t, 8> data16{};
  std::array<std::uint32_t, 4> data32{};
  std::array<std::uint64_t, 2> data64{};

  bool operator==(const ServiceRecord&) const = default;
};

namespace service_field {
inline constexpr Field kId{0, 0, 64};
inline constexpr Field kGid{8, 0, 128};
inline constexpr Field kPkey{24, 0, 16};
inline constexpr Field kLease{28, 0, 32};
inline constexpr Field kKey{32, 0, 128};
inline constexpr Field kName{48, 0, 512};
inline constexpr Field kData8{112, 0, 128};
inline constexpr Field kData16{128, 0, 128};
inline constexpr Field kData32{144, 0, 128};
inline constexpr Field kData64{160, 0, 128};
}  // namespace service_field

template <RecordOf<ServiceRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  namespace field = service_field;
  visit(field::kId, record.id);
  visit(field::kGid, record.gid);
  visit(field::kPkey, record.pkey);
  visit(field::kLease, record.lease_seconds);
  visit(field::kKey, record.key);
  visit(field::kName, record.name);
  visit(field::kData8, record.data8);
  visit(field::kData16, record.data16);
  visit(field::kData32, record.data32);
  visit(field::kData64, record.data64);
}

// Bits of the component mask; each datum has one of its own.
namespace service_component {
inline constexpr std::uint64_t kId = 1u << 0;
inline constexpr std::uint64_t kGid = 1u << 1;
inline constexpr std::uint64_t kPkey = 1u << 2;
inline constexpr std::uint64_t kLease = 1u << 4;
inline constexpr std::uint64_t kKey = 1u << 5;
inline constexpr std::uint64_t kName = 1u << 6;
inline constexpr std::uint64_t kData8 = 0xffffull << 7;
inline constexpr std::uint64_t kData16 = 0xffull << 23;
inline constexpr std::uint64_t kData32 = 0xfull << 31;
inline constexpr std::uint64_t kData64 = 0x3ull << 35;
inline constexpr std::uint64_t kNames = kId | kGid | kPkey;  // a record
}  // namespace service_component

}  // namespace ib::sa
