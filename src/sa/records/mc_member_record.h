// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MCMemberRecord [IBA1 15.2.5.17]: a multicast group, and the membership of a port in it.
#pragma once

#include "sa/records/field.h"
#include "sa/records/selector.h"

namespace ib::sa {

inline constexpr std::uint16_t kFirstMulticastLid = 0xc000;  // [IBA1 4.1.3]
inline constexpr std::uint16_t kLastMulticastLid = 0xfffe;

// Bits of the join state.
namespace join_state {
inline constexpr std::uint8_t kFullMember = 1;
inline constexpr std::uint8_t kNonMember = 2;
inline constexpr std::uint8_t kSendOnlyNonMember = 4;
inline constexpr std::uint8_t kSendOnlyFullMember = 8;
// Members that a group cannot be without.
inline constexpr std::uint8_t kKeepsGroup = kFullMember | kSendOnlyFullMember;
}  // namespace join_state

struct McMemberRecord {
  static constexpr std::size_t kSize = 52;

  verbs::Gid mgid{};
  verbs::Gid port_gid{};
  std::uint32_t qkey = 0;
  std::uint16_t mlid = 0;
  Selector mtu_selector = Selector::Greater;
  std::uint8_t mtu = 0;  // verbs::Mtu
  std::uint8_t traffic_class = 0;
  std::uint16_t pkey = 0;
  Selector rate_selector = Selector::Greater;
  std::uint8_t rate = 0;  // selector.h
  Selector life_selector = Selector::Greater;
  std::uint8_t life = 0;         // PacketLifeTime: 4.096 us * 2^life
  std::uint8_t sl = 0;           // 4 bits
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t hop_limit = 0;
  std::uint8_t scope = 0;       // 4 bits
  std::uint8_t join_state = 0;  // 4 bits
  bool proxy_join = false;

  bool operator==(const McMemberRecord&) const = default;
};

namespace mc_field {
inline constexpr Field kMgid{0, 0, 128};
inline constexpr Field kPortGid{16, 0, 128};
inline constexpr Field kQkey{32, 0, 32};
inline constexpr Field kMlid{36, 0, 16};
inline constexpr Field kMtuSelector{38, 0, 2};
inline constexpr Field kMtu{38, 2, 6};
inline constexpr Field kTrafficClass{39, 0, 8};
inline constexpr Field kPkey{40, 0, 16};
inline constexpr Field kRateSelector{42, 0, 2};
inline constexpr Field kRate{42, 2, 6};
inline constexpr Field kLifeSelector{43, 0, 2};
inline constexpr Field kLife{43, 2, 6};
inline constexpr Field kSl{44, 0, 4};
inline constexpr Field kFlowLabel{44, 4, 20};
inline constexpr Field kHopLimit{47, 0, 8};
inline constexpr Field kScope{48, 0, 4};
inline constexpr Field kJoinState{48, 4, 4};
inline constexpr Field kProxyJoin{49, 0, 1};
}  // namespace mc_field

template <RecordOf<McMemberRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  namespace field = mc_field;
  visit(field::kMgid, record.mgid);
  visit(field::kPortGid, record.port_gid);
  visit(field::kQkey, record.qkey);
  visit(field::kMlid, record.mlid);
  visit(field::kMtuSelector, record.mtu_selector);
  visit(field::kMtu, record.mtu);
  visit(field::kTrafficClass, record.traffic_class);
  visit(field::kPkey, record.pkey);
  visit(field::kRateSelector, record.rate_selector);
  visit(field::kRate, record.rate);
  visit(field::kLifeSelector, record.life_selector);
  visit(field::kLife, record.life);
  visit(field::kSl, record.sl);
  visit(field::kFlowLabel, record.flow_label);
  visit(field::kHopLimit, record.hop_limit);
  visit(field::kScope, record.scope);
  visit(field::kJoinState, record.join_state);
  visit(field::kProxyJoin, record.proxy_join);
}

// Bits of the component mask.
namespace mc_component {
inline constexpr std::uint64_t kMgid = 1u << 0;
inline constexpr std::uint64_t kPortGid = 1u << 1;
inline constexpr std::uint64_t kQkey = 1u << 2;
inline constexpr std::uint64_t kMlid = 1u << 3;
inline constexpr std::uint64_t kMtuSelector = 1u << 4;
inline constexpr std::uint64_t kMtu = 1u << 5;
inline constexpr std::uint64_t kTrafficClass = 1u << 6;
inline constexpr std::uint64_t kPkey = 1u << 7;
inline constexpr std::uint64_t kRateSelector = 1u << 8;
inline constexpr std::uint64_t kRate = 1u << 9;
inline constexpr std::uint64_t kLifeSelector = 1u << 10;
inline constexpr std::uint64_t kLife = 1u << 11;
inline constexpr std::uint64_t kSl = 1u << 12;
inline constexpr std::uint64_t kFlowLabel = 1u << 13;
inline constexpr std::uint64_t kHopLimit = 1u << 14;
inline constexpr std::uint64_t kScope = 1u << 15;
inline constexpr std::uint64_t kJoinState = 1u << 16;
inline constexpr std::uint64_t kProxyJoin = 1u << 17;
// Components that a request needs to join a group, and besides to create one [15.2.5.17.2].
inline constexpr std::uint64_t kToJoin = kMgid | kPortGid | kJoinState;
inline constexpr std::uint64_t kToCreate =
    kToJoin | kQkey | kTrafficClass | kPkey | kSl | kFlowLabel;
}  // namespace mc_component

}  // namespace ib::sa
