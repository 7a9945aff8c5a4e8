// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PathRecord [IBA1 15.2.5.16]: how a port reaches another one.
#pragma once

#include "sa/records/field.h"
#include "sa/records/selector.h"

namespace ib::sa {

struct PathRecord {
  static constexpr std::size_t kSize = 64;

  std::uint64_t service_id = 0;
  verbs::Gid dgid{};
  verbs::Gid sgid{};
  std::uint16_t dlid = 0;
  std::uint16_t slid = 0;
  bool raw_traffic = false;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  bool reversible = false;
  std::uint8_t numb_path = 0;  // 7 bits; of a request: how many paths at most
  std::uint16_t pkey = 0;
  std::uint16_t qos_class = 0;  // 12 bits
  std::uint8_t sl = 0;          // 4 bits
  Selector mtu_selector = Selector::Greater;
  std::uint8_t mtu = 0;  // verbs::Mtu
  Selector rate_selector = Selector::Greater;
  std::uint8_t rate = 0;  // selector.h
  Selector life_selector = Selector::Greater;
  std::uint8_t life = 0;        // PacketLifeTime: 4.096 us * 2^life
  std::uint8_t preference = 0;  // 0 is best

  bool operator==(const PathRecord&) const = default;
};

namespace path_field {
inline constexpr Field kServiceId{0, 0, 64};
inline constexpr Field kDgid{8, 0, 128};
inline constexpr Field kSgid{24, 0, 128};
inline constexpr Field kDlid{40, 0, 16};
inline constexpr Field kSlid{42, 0, 16};
inline constexpr Field kRawTraffic{44, 0, 1};
inline constexpr Field kFlowLabel{44, 4, 20};
inline constexpr Field kHopLimit{47, 0, 8};
inline constexpr Field kTrafficClass{48, 0, 8};
inline constexpr Field kReversible{49, 0, 1};
inline constexpr Field kNumbPath{49, 1, 7};
inline constexpr Field kPkey{50, 0, 16};
inline constexpr Field kQosClass{52, 0, 12};
inline constexpr Field kSl{53, 4, 4};
inline constexpr Field kMtuSelector{54, 0, 2};
inline constexpr Field kMtu{54, 2, 6};
inline constexpr Field kRateSelector{55, 0, 2};
inline constexpr Field kRate{55, 2, 6};
inline constexpr Field kLifeSelector{56, 0, 2};
inline constexpr Field kLife{56, 2, 6};
inline constexpr Field kPreference{57, 0, 8};
}  // namespace path_field

template <RecordOf<PathRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  namespace field = path_field;
  visit(field::kServiceId, record.service_id);
  visit(field::kDgid, record.dgid);
  visit(field::kSgid, record.sgid);
  visit(field::kDlid, record.dlid);
  visit(field::kSlid, record.slid);
  visit(field::kRawTraffic, record.raw_traffic);
  visit(field::kFlowLabel, record.flow_label);
  visit(field::kHopLimit, record.hop_limit);
  visit(field::kTrafficClass, record.traffic_class);
  visit(field::kReversible, record.reversible);
  visit(field::kNumbPath, record.numb_path);
  visit(field::kPkey, record.pkey);
  visit(field::kQosClass, record.qos_class);
  visit(field::kSl, record.sl);
  visit(field::kMtuSelector, record.mtu_selector);
  visit(field::kMtu, record.mtu);
  visit(field::kRateSelector, record.rate_selector);
  visit(field::kRate, record.rate);
  visit(field::kLifeSelector, record.life_selector);
  visit(field::kLife, record.life);
  visit(field::kPreference, record.preference);
}

// Bits of the component mask.
namespace path_component {
inline constexpr std::uint64_t kServiceId = 3;  // both halves
inline constexpr std::uint64_t kDgid = 1u << 2;
inline constexpr std::uint64_t kSgid = 1u << 3;
inline constexpr std::uint64_t kDlid = 1u << 4;
inline constexpr std::uint64_t kSlid = 1u << 5;
inline constexpr std::uint64_t kRawTraffic = 1u << 6;
inline constexpr std::uint64_t kFlowLabel = 1u << 8;
inline constexpr std::uint64_t kHopLimit = 1u << 9;
inline constexpr std::uint64_t kTrafficClass = 1u << 10;
inline constexpr std::uint64_t kReversible = 1u << 11;
inline constexpr std::uint64_t kNumbPath = 1u << 12;
inline constexpr std::uint64_t kPkey = 1u << 13;
inline constexpr std::uint64_t kQosClass = 1u << 14;
inline constexpr std::uint64_t kSl = 1u << 15;
inline constexpr std::uint64_t kMtuSelector = 1u << 16;
inline constexpr std::uint64_t kMtu = 1u << 17;
inline constexpr std::uint64_t kRateSelector = 1u << 18;
inline constexpr std::uint64_t kRate = 1u << 19;
inline constexpr std::uint64_t kLifeSelector = 1u << 20;
inline constexpr std::uint64_t kLife = 1u << 21;
inline constexpr std::uint64_t kPreference = 1u << 22;
}  // namespace path_component

}  // namespace ib::sa
