// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records of the subnet [IBA1 15.2.5]: LinkRecord, one end of a link and the other one;
// SwitchInfoRecord; SMInfoRecord, a subnet manager.
#pragma once

#include "mad/smp.h"
#include "sa/records/node_record.h"

namespace ib::sa {

struct LinkRecord {
  static constexpr std::size_t kSize = 6;

  std::uint16_t from_lid = 0;
  std::uint8_t from_port = 0;
  std::uint8_t to_port = 0;
  std::uint16_t to_lid = 0;

  bool operator==(const LinkRecord&) const = default;
};

struct SwitchInfoRecord {
  static constexpr std::size_t kSize = 24;

  std::uint16_t lid = 0;
  mad::SwitchInfo info;
};

struct SmInfoRecord {
  static constexpr std::size_t kSize = 25;

  std::uint16_t lid = 0;
  std::uint64_t guid = 0;  // of its port
  std::uint64_t sm_key = 0;
  std::uint32_t activity = 0;
  std::uint8_t priority = 0;  // 4 bits
  std::uint8_t state = 0;     // 4 bits; 3: master [IBA1 14.2.5.13]

  bool operator==(const SmInfoRecord&) const = default;
};
inline constexpr std::uint8_t kMasterState = 3;

namespace link_field {
inline constexpr Field kFromLid{0, 0, 16};
inline constexpr Field kFromPort{2, 0, 8};
inline constexpr Field kToPort{3, 0, 8};
inline constexpr Field kToLid{4, 0, 16};
}  // namespace link_field

template <RecordOf<LinkRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(link_field::kFromLid, record.from_lid);
  visit(link_field::kFromPort, record.from_port);
  visit(link_field::kToPort, record.to_port);
  visit(link_field::kToLid, record.to_lid);
}

template <RecordOf<SwitchInfoRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(Field{0, 0, 16}, record.lid);
  visit(whole(4, sizeof record.info), as_bytes_of(record.info));
}

namespace sm_info_field {
inline constexpr Field kLid{0, 0, 16};
inline constexpr Field kGuid{4, 0, 64};
inline constexpr Field kSmKey{12, 0, 64};
inline constexpr Field kActivity{20, 0, 32};
inline constexpr Field kPriority{24, 0, 4};
inline constexpr Field kState{24, 4, 4};
}  // namespace sm_info_field

template <RecordOf<SmInfoRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  namespace field = sm_info_field;
  visit(field::kLid, record.lid);
  visit(field::kGuid, record.guid);
  visit(field::kSmKey, record.sm_key);
  visit(field::kActivity, record.activity);
  visit(field::kPriority, record.priority);
  visit(field::kState, record.state);
}

// Bits of the component masks that choose what is looked at at all.
namespace link_component {
inline constexpr std::uint64_t kFromLid = 1u << 0;
inline constexpr std::uint64_t kFromPort = 1u << 1;
inline constexpr std::uint64_t kToPort = 1u << 2;
inline constexpr std::uint64_t kToLid = 1u << 3;
}  // namespace link_component
namespace switch_info_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kLinearTop = 1u << 5;
}  // namespace switch_info_component
namespace sm_info_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kGuid = 1u << 2;
inline constexpr std::uint64_t kPriority = 1u << 5;
inline constexpr std::uint64_t kState = 1u << 6;
}  // namespace sm_info_component

}  // namespace ib::sa
