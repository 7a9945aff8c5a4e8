// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MultiPathRecord [IBA1 15.2.5]: a request for paths between any of several sources and any of
// several destinations. The answer has PathRecords.
#pragma once

#include "sa/records/field.h"
#include "sa/records/selector.h"

namespace ib::sa {

struct MultiPathRecord {
  static constexpr std::size_t kSize = 200;  // what a MAD has room for
  static constexpr std::size_t kMostGids = 11;

  bool raw_traffic = false;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  bool reversible = false;
  std::uint8_t numb_path = 0;  // 7 bits; how many paths at most
  std::uint16_t pkey = 0;
  std::uint16_t qos_class = 0;  // 12 bits
  std::uint8_t sl = 0;          // 4 bits
  Selector mtu_selector = Selector::Greater;
  std::uint8_t mtu = 0;
  Selector rate_selector = Selector::Greater;
  std::uint8_t rate = 0;
  Selector life_selector = Selector::Greater;
  std::uint8_t life = 0;
  std::uint64_t service_id = 0;
  std::uint8_t independence = 0;  // 2 bits; 1: paths that do not fail together come first
  std::uint8_t sgid_count = 0;
  std::uint8_t dgid_count = 0;
  std::array<verbs::Gid, kMostGids> gids{};  // the sources, then the destinations

  bool operator==(const MultiPathRecord&) const = default;
};

namespace multi_path_field {
inline constexpr Field kRawTraffic{0, 0, 1};
inline constexpr Field kFlowLabel{0, 4, 20};
inline constexpr Field kHopLimit{3, 0, 8};
inline constexpr Field kTrafficClass{4, 0, 8};
inline constexpr Field kReversible{5, 0, 1};
inline constexpr Field kNumbPath{5, 1, 7};
inline constexpr Field kPkey{6, 0, 16};
inline constexpr Field kQosClass{8, 0, 12};
inline constexpr Field kSl{9, 4, 4};
inline constexpr Field kMtuSelector{10, 0, 2};
inline constexpr Field kMtu{10, 2, 6};
inline constexpr Field kRateSelector{11, 0, 2};
inline constexpr Field kRate{11, 2, 6};
inline constexpr Field kLifeSelector{12, 0, 2};
inline constexpr Field kLife{12, 2, 6};
inline constexpr Field kServiceIdTop{13, 0, 8};
inline constexpr Field kIndependence{14, 0, 2};
inline constexpr Field kSgidCount{15, 0, 8};
inline constexpr Field kDgidCount{16, 0, 8};
inline constexpr Field kServiceIdRest{17, 0, 56};
inline constexpr std::uint16_t kGids = 24;
}  // namespace multi_path_field

template <RecordOf<MultiPathRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  namespace field = multi_path_field;
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
  // The service id is in two pieces.
  constexpr unsigned kRest = field::kServiceIdRest.width;
  auto top = static_cast<std::uint8_t>(record.service_id >> kRest);
  std::uint64_t rest = record.service_id & mask_of(field::kServiceIdRest);
  visit(field::kServiceIdTop, top);
  visit(field::kServiceIdRest, rest);
  if constexpr (!std::is_const_v<Record>) record.service_id = std::uint64_t{top} << kRest | rest;
  visit(field::kIndependence, record.independence);
  visit(field::kSgidCount, record.sgid_count);
  visit(field::kDgidCount, record.dgid_count);
  for (std::size_t i = 0; i < MultiPathRecord::kMostGids; ++i) {
    visit(whole(static_cast<std::uint16_t>(field::kGids + i * sizeof(verbs::Gid)),
                sizeof(verbs::Gid)),
          record.gids[i]);
  }
}

// Bits of the component mask.
namespace multi_path_component {
inline constexpr std::uint64_t kRawTraffic = 1u << 0;
inline constexpr std::uint64_t kFlowLabel = 1u << 2;
inline constexpr std::uint64_t kHopLimit = 1u << 3;
inline constexpr std::uint64_t kTrafficClass = 1u << 4;
inline constexpr std::uint64_t kReversible = 1u << 5;
inline constexpr std::uint64_t kNumbPath = 1u << 6;
inline constexpr std::uint64_t kPkey = 1u << 7;
inline constexpr std::uint64_t kQosClass = 1u << 8;
inline constexpr std::uint64_t kSl = 1u << 9;
inline constexpr std::uint64_t kMtuSelector = 1u << 10;
inline constexpr std::uint64_t kMtu = 1u << 11;
inline constexpr std::uint64_t kRateSelector = 1u << 12;
inline constexpr std::uint64_t kRate = 1u << 13;
inline constexpr std::uint64_t kLifeSelector = 1u << 14;
inline constexpr std::uint64_t kLife = 1u << 15;
inline constexpr std::uint64_t kServiceId = 1u << 16 | 1u << 21;  // both pieces
inline constexpr std::uint64_t kIndependence = 1u << 17;
inline constexpr std::uint64_t kSgidCount = 1u << 19;
inline constexpr std::uint64_t kDgidCount = 1u << 20;
}  // namespace multi_path_component

}  // namespace ib::sa
