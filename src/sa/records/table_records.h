// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records of tables of ports and switches [IBA1 15.2.5]: which table, and one block of it as an SMP
// carries it (mad/smp.h). GUIDInfoRecord, P_KeyTableRecord, SLtoVLMappingTableRecord,
// VLArbitrationTableRecord, LinearForwardingTableRecord, MulticastForwardingTableRecord.
#pragma once

#include "mad/agent.h"
#include "sa/records/field.h"

namespace ib::sa {

struct GuidInfoRecord {
  static constexpr std::size_t kSize = 72;

  std::uint16_t lid = 0;
  std::uint8_t block = 0;
  mad::SmpData guids{};
};

struct PkeyTableRecord {
  static constexpr std::size_t kSize = 72;

  std::uint16_t lid = 0;
  std::uint16_t block = 0;
  std::uint8_t port = 0;
  mad::SmpData pkeys{};
};

struct SlToVlRecord {
  static constexpr std::size_t kSize = 16;

  std::uint16_t lid = 0;
  std::uint8_t in = 0;  // both are 0 of a channel adapter
  std::uint8_t out = 0;
  std::array<std::uint8_t, 8> lanes{};  // half a byte for each level
};

struct VlArbitrationRecord {
  static constexpr std::size_t kSize = 72;

  std::uint16_t lid = 0;
  std::uint8_t port = 0;
  std::uint8_t block = 0;  // 1, 2: low priority; 3, 4: high
  mad::SmpData lanes{};
};

struct LinearForwardingRecord {
  static constexpr std::size_t kSize = 72;

  std::uint16_t lid = 0;
  std::uint16_t block = 0;
  mad::SmpData ports{};
};

struct MulticastForwardingRecord {
  static constexpr std::size_t kSize = 72;

  std::uint16_t lid = 0;
  std::uint8_t position = 0;  // 4 bits: which 16 ports
  std::uint16_t block = 0;    // 9 bits
  mad::SmpData masks{};
};

namespace table_field {
inline constexpr Field kLid{0, 0, 16};
inline constexpr Field kGuidBlock{2, 0, 8};
inline constexpr Field kPkeyBlock{2, 0, 16};
inline constexpr Field kPkeyPort{4, 0, 8};
inline constexpr Field kSlToVlIn{2, 0, 8};
inline constexpr Field kSlToVlOut{3, 0, 8};
inline constexpr Field kArbitrationPort{2, 0, 8};
inline constexpr Field kArbitrationBlock{3, 0, 8};
inline constexpr Field kLinearBlock{2, 0, 16};
inline constexpr Field kMulticastPosition{2, 0, 4};
inline constexpr Field kMulticastBlock{2, 7, 9};
inline constexpr Field kBlock{8, 0, 512};
inline constexpr Field kLanes{8, 0, 64};
}  // namespace table_field

template <RecordOf<GuidInfoRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(table_field::kLid, record.lid);
  visit(table_field::kGuidBlock, record.block);
  visit(table_field::kBlock, record.guids);
}

template <RecordOf<PkeyTableRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(table_field::kLid, record.lid);
  visit(table_field::kPkeyBlock, record.block);
  visit(table_field::kPkeyPort, record.port);
  visit(table_field::kBlock, record.pkeys);
}

template <RecordOf<SlToVlRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(table_field::kLid, record.lid);
  visit(table_field::kSlToVlIn, record.in);
  visit(table_field::kSlToVlOut, record.out);
  visit(table_field::kLanes, record.lanes);
}

template <RecordOf<VlArbitrationRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(table_field::kLid, record.lid);
  visit(table_field::kArbitrationPort, record.port);
  visit(table_field::kArbitrationBlock, record.block);
  visit(table_field::kBlock, record.lanes);
}

template <RecordOf<LinearForwardingRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(table_field::kLid, record.lid);
  visit(table_field::kLinearBlock, record.block);
  visit(table_field::kBlock, record.ports);
}

template <RecordOf<MulticastForwardingRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(table_field::kLid, record.lid);
  visit(table_field::kMulticastPosition, record.position);
  visit(table_field::kMulticastBlock, record.block);
  visit(table_field::kBlock, record.masks);
}

// Bits of the component masks that choose what is looked at at all.
namespace guid_info_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kBlock = 1u << 1;
}  // namespace guid_info_component
namespace pkey_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kBlock = 1u << 1;
inline constexpr std::uint64_t kPort = 1u << 2;
}  // namespace pkey_component
namespace sl_to_vl_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kIn = 1u << 1;
inline constexpr std::uint64_t kOut = 1u << 2;
}  // namespace sl_to_vl_component
namespace arbitration_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kPort = 1u << 1;
inline constexpr std::uint64_t kBlock = 1u << 2;
}  // namespace arbitration_component
namespace linear_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kBlock = 1u << 1;
}  // namespace linear_component
namespace multicast_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kPosition = 1u << 1;
inline constexpr std::uint64_t kBlock = 1u << 3;
}  // namespace multicast_component

}  // namespace ib::sa
