// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ClassPortInfo [IBA1 13.4.8.1, 15.2.5.1]: what a manager of a class can do, and where it is to be
// found.
#pragma once

#include "sa/records/field.h"

namespace ib::sa {

namespace class_capability {
inline constexpr std::uint16_t kUdMulticast = 1u << 9;  // MCMemberRecord
}  // namespace class_capability

struct ClassPortInfo {
  static constexpr std::size_t kSize = 72;

  std::uint8_t base_version = 1;
  std::uint8_t class_version = 2;
  std::uint16_t capability_mask = 0;
  std::uint32_t capability_mask2 = 0;  // 27 bits
  std::uint8_t response_time = 0;      // 5 bits: 4.096 us * 2^n
  verbs::Gid redirect_gid{};
  std::uint8_t redirect_traffic_class = 0;
  std::uint8_t redirect_sl = 0;           // 4 bits
  std::uint32_t redirect_flow_label = 0;  // 20 bits
  std::uint16_t redirect_lid = 0;
  std::uint16_t redirect_pkey = 0;
  std::uint32_t redirect_qpn = 0;  // 24 bits
  std::uint32_t redirect_qkey = 0;
  verbs::Gid trap_gid{};
  std::uint8_t trap_traffic_class = 0;
  std::uint8_t trap_sl = 0;           // 4 bits
  std::uint32_t trap_flow_label = 0;  // 20 bits
  std::uint16_t trap_lid = 0;
  std::uint16_t trap_pkey = 0;
  std::uint8_t trap_hop_limit = 0;
  std::uint32_t trap_qpn = 0;  // 24 bits
  std::uint32_t trap_qkey = 0;

  bool operator==(const ClassPortInfo&) const = default;
};

template <RecordOf<ClassPortInfo> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(Field{0, 0, 8}, record.base_version);
  visit(Field{1, 0, 8}, record.class_version);
  visit(Field{2, 0, 16}, record.capability_mask);
  visit(Field{4, 0, 27}, record.capability_mask2);
  visit(Field{7, 3, 5}, record.response_time);
  visit(Field{8, 0, 128}, record.redirect_gid);
  visit(Field{24, 0, 8}, record.redirect_traffic_class);
  visit(Field{25, 0, 4}, record.redirect_sl);
  visit(Field{25, 4, 20}, record.redirect_flow_label);
  visit(Field{28, 0, 16}, record.redirect_lid);
  visit(Field{30, 0, 16}, record.redirect_pkey);
  visit(Field{33, 0, 24}, record.redirect_qpn);
  visit(Field{36, 0, 32}, record.redirect_qkey);
  visit(Field{40, 0, 128}, record.trap_gid);
  visit(Field{56, 0, 8}, record.trap_traffic_class);
  visit(Field{57, 0, 4}, record.trap_sl);
  visit(Field{57, 4, 20}, record.trap_flow_label);
  visit(Field{60, 0, 16}, record.trap_lid);
  visit(Field{62, 0, 16}, record.trap_pkey);
  visit(Field{64, 0, 8}, record.trap_hop_limit);
  visit(Field{65, 0, 24}, record.trap_qpn);
  visit(Field{68, 0, 32}, record.trap_qkey);
}

}  // namespace ib::sa
