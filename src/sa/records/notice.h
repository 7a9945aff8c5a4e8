// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Notice [IBA1 13.4.8.2, 14.2.5.1]: what happened, as traps and Reports tell it.
#pragma once

#include "sa/records/field.h"

namespace ib::sa {

namespace notice_type {
inline constexpr std::uint8_t kUrgent = 1;
inline constexpr std::uint8_t kSecurity = 2;
inline constexpr std::uint8_t kSubnetManagement = 3;
inline constexpr std::uint8_t kInformational = 4;
}  // namespace notice_type

// Kinds of node that issue notices.
namespace producer {
inline constexpr std::uint32_t kChannelAdapter = 1;
inline constexpr std::uint32_t kSwitch = 2;
inline constexpr std::uint32_t kClassManager = 4;
}  // namespace producer

namespace trap {
inline constexpr std::uint16_t kGidInService = 64;
inline constexpr std::uint16_t kGidOutOfService = 65;
inline constexpr std::uint16_t kGroupCreated = 66;
inline constexpr std::uint16_t kGroupDeleted = 67;
inline constexpr std::uint16_t kLinkStateChanged = 128;  // of a port of a switch
inline constexpr std::uint16_t kLinkIntegrity = 129;     // of a port, above a threshold
inline constexpr std::uint16_t kBufferOverrun = 130;     // the same
inline constexpr std::uint16_t kFlowControl = 131;       // its watchdog has run out
inline constexpr std::uint16_t kCapabilitiesChanged = 144;
inline constexpr std::uint16_t kBadMKey = 256;
inline constexpr std::uint16_t kBadPKey = 257;
inline constexpr std::uint16_t kBadQKey = 258;
inline constexpr std::uint16_t kBadPKeyAtSwitch = 259;
}  // namespace trap

struct Notice {
  static constexpr std::size_t kSize = 80;

  bool is_generic = true;
  std::uint8_t type = 0;       // 7 bits
  std::uint32_t producer = 0;  // 24 bits: kind of node, or, not generic: vendor
  std::uint16_t trap = 0;      // or, not generic: device
  std::uint16_t issuer_lid = 0;
  bool toggle = false;
  std::uint16_t count = 0;  // 15 bits
  std::array<std::uint8_t, 54> details{};
  verbs::Gid issuer_gid{};

  bool operator==(const Notice&) const = default;
};

namespace notice_field {
inline constexpr Field kIsGeneric{0, 0, 1};
inline constexpr Field kType{0, 1, 7};
inline constexpr Field kProducer{1, 0, 24};
inline constexpr Field kTrap{4, 0, 16};
inline constexpr Field kIssuerLid{6, 0, 16};
inline constexpr Field kToggle{8, 0, 1};
inline constexpr Field kCount{8, 1, 15};
inline constexpr Field kDetails{10, 0, 432};
inline constexpr Field kIssuerGid{64, 0, 128};
}  // namespace notice_field

template <RecordOf<Notice> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  namespace field = notice_field;
  visit(field::kIsGeneric, record.is_generic);
  visit(field::kType, record.type);
  visit(field::kProducer, record.producer);
  visit(field::kTrap, record.trap);
  visit(field::kIssuerLid, record.issuer_lid);
  visit(field::kToggle, record.toggle);
  visit(field::kCount, record.count);
  visit(field::kDetails, record.details);
  visit(field::kIssuerGid, record.issuer_gid);
}

// Of traps 64 to 67 [IBA1 14.2.5.1, table 131]: the GID that it is about.
inline constexpr std::size_t kGidInDetails = 6;
constexpr verbs::Gid subject_gid(const Notice& notice) {
  verbs::Gid gid{};
  std::copy_n(notice.details.begin() + kGidInDetails, gid.size(), gid.begin());
  return gid;
}

// A notice of the subnet manager's class about a GID: traps 64 to 67.
Notice gid_notice(std::uint16_t trap, const verbs::Gid& gid, std::uint16_t issuer_lid,
                  const verbs::Gid& issuer_gid);
// Trap 144: the port with this LID has other capabilities.
Notice capability_notice(std::uint16_t lid, const verbs::Gid& gid, std::uint32_t capabilities);

}  // namespace ib::sa
