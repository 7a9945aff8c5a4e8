// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// InformInfo [IBA1 13.4.8.3]: a subscription to notices, or its end; InformInfoRecord
// [IBA1 15.2.5.12]: one that the subnet administrator holds.
#pragma once

#include "sa/records/field.h"

namespace ib::sa {

inline constexpr std::uint16_t kAllLids = 0xffff;
inline constexpr std::uint16_t kAllTypes = 0xffff;
inline constexpr std::uint16_t kAllTraps = 0xffff;
inline constexpr std::uint32_t kAllProducers = 0xffffff;

struct InformInfo {
  static constexpr std::size_t kSize = 36;

  verbs::Gid gid{};                    // of the port that notices are about; zero: the LIDs count
  std::uint16_t lid_first = kAllLids;  // kAllLids: every port
  std::uint16_t lid_last = 0;
  std::uint8_t is_generic = 1;
  std::uint8_t subscribe = 1;
  std::uint16_t type = kAllTypes;
  std::uint16_t trap = kAllTraps;          // or, not generic: the device
  std::uint32_t qpn = 0;                   // 24 bits; of a subscription that is to end
  std::uint8_t response_time = 0;          // 5 bits: 4.096 us * 2^n
  std::uint32_t producer = kAllProducers;  // 24 bits: kind of node, or, not generic: vendor

  bool operator==(const InformInfo&) const = default;
};

namespace inform_field {
inline constexpr Field kGid{0, 0, 128};
inline constexpr Field kLidFirst{16, 0, 16};
inline constexpr Field kLidLast{18, 0, 16};
inline constexpr Field kIsGeneric{22, 0, 8};
inline constexpr Field kSubscribe{23, 0, 8};
inline constexpr Field kType{24, 0, 16};
inline constexpr Field kTrap{26, 0, 16};
inline constexpr Field kQpn{28, 0, 24};
inline constexpr Field kResponseTime{31, 3, 5};
inline constexpr Field kProducer{33, 0, 24};
}  // namespace inform_field

template <RecordOf<InformInfo> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  namespace field = inform_field;
  visit(field::kGid, record.gid);
  visit(field::kLidFirst, record.lid_first);
  visit(field::kLidLast, record.lid_last);
  visit(field::kIsGeneric, record.is_generic);
  visit(field::kSubscribe, record.subscribe);
  visit(field::kType, record.type);
  visit(field::kTrap, record.trap);
  visit(field::kQpn, record.qpn);
  visit(field::kResponseTime, record.response_time);
  visit(field::kProducer, record.producer);
}

struct InformInfoRecord {
  static constexpr std::size_t kSize = 60;
  static constexpr std::uint16_t kInfoAt = 24;

  verbs::Gid subscriber_gid{};
  std::uint16_t number = 0;  // "Enum": tells the subscriptions of one port apart
  InformInfo info;

  bool operator==(const InformInfoRecord&) const = default;
};

namespace inform_record_field {
inline constexpr Field kSubscriberGid{0, 0, 128};
inline constexpr Field kNumber{16, 0, 16};
}  // namespace inform_record_field

template <RecordOf<InformInfoRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(inform_record_field::kSubscriberGid, record.subscriber_gid);
  visit(inform_record_field::kNumber, record.number);
  visit_fields(record.info, [&](Field field, auto& value) {
    field.byte += InformInfoRecord::kInfoAt;
    visit(field, value);
  });
}

}  // namespace ib::sa
