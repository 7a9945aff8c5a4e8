// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/smi/traps.h"

#include "mad/directed_route.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::services {
namespace {

// Places in the details [IBA1 14.2.5.1].
using sa::Field;
constexpr Field kSwitchLid{0, 0, 16};  // of trap 128
constexpr Field kLid{2, 0, 16};        // of trap 256, as all below
constexpr Field kSource{4, 0, 16};     // of the directed route: DrSLID
constexpr Field kMethod{6, 0, 8};
constexpr Field kAttribute{8, 0, 16};
constexpr Field kModifier{10, 0, 32};
constexpr Field kMKey{14, 0, 64};
constexpr Field kPortNumber{4, 0, 8};  // of traps 129 to 131, behind kLid
// Of traps 257 and 258: both LIDs, the key, service level and queue pairs, both GIDs.
struct KeyFields {
  Field lid1{2, 0, 16};
  Field lid2{4, 0, 16};
  Field key{6, 0, 32};
  Field level{10, 0, 4};
  Field qp1{11, 0, 24};
  Field qp2{15, 0, 24};
  std::size_t gids = 18;
};
// Of trap 259, whose key has 16 bits: a mask of what is valid stands before, the place behind.
constexpr KeyFields kSwitchFields{{2, 0, 16}, {4, 0, 16},  {6, 0, 16}, {8, 0, 4},
                                  {9, 0, 24}, {13, 0, 24}, 16};
constexpr Field kValid{0, 0, 16};
// Bits 0 to 7: of LIDADDR1, LIDADDR2, PKEY, SL, QP1, QP2, GIDADDR1 and GIDADDR2.
constexpr std::uint16_t kAllValid = 0x00ff;
constexpr Field kDroppingSwitch{48, 0, 16};
constexpr Field kDroppingPort{50, 0, 8};

sa::Notice notice(std::uint8_t type, std::uint32_t producer, std::uint16_t trap,
                  std::uint16_t lid) {
  sa::Notice result;
  result.type = type;
  result.producer = producer;
  result.trap = trap;
  result.issuer_lid = lid;
  return result;
}

}  // namespace

sa::Notice link_state_notice(std::uint16_t lid) {
  sa::Notice result =
      notice(sa::notice_type::kUrgent, sa::producer::kSwitch, sa::trap::kLinkStateChanged, lid);
  put(std::as_writable_bytes(std::span(result.details)), kSwitchLid, lid);
  return result;
}

sa::Notice bad_m_key_notice(std::uint16_t lid, std::uint16_t source, const mad::Smp& smp) {
  sa::Notice result =
      notice(sa::notice_type::kSecurity, sa::producer::kChannelAdapter, sa::trap::kBadMKey, lid);
  const std::span details = std::as_writable_bytes(std::span(result.details));
  put(details, kLid, source);
  put(details, kSource, mad::kPermissiveLid);
  put(details, kMethod, smp.header.method);
  put(details, kAttribute, smp.header.attribute);
  put(details, kModifier, smp.header.modifier);
  put(details, kMKey, smp.m_key);
  return result;
}

sa::Notice link_error_notice(std::uint16_t trap, bool is_switch, std::uint16_t lid,
                             std::uint32_t port) {
  sa::Notice result =
      notice(sa::notice_type::kUrgent,
             is_switch ? sa::producer::kSwitch : sa::producer::kChannelAdapter, trap, lid);
  const std::span details = std::as_writable_bytes(std::span(result.details));
  put(details, kLid, lid);
  put(details, kPortNumber, port);
  return result;
}

sa::Notice bad_key_notice(const fabric::Graph& graph, const fabric::KeyViolation& violation,
                          const fabric::Port& at) {
  const bool is_switch = graph.element_of(at).is_switch();
  const std::uint16_t own_lid = graph.end_port_of(at).lid;
  const std::uint16_t trap = is_switch           ? sa::trap::kBadPKeyAtSwitch
                             : violation.is_pkey ? sa::trap::kBadPKey
                                                 : sa::trap::kBadQKey;
  sa::Notice result =
      notice(sa::notice_type::kSecurity,
             is_switch ? sa::producer::kSwitch : sa::producer::kChannelAdapter, trap, own_lid);
  const std::span details = std::as_writable_bytes(std::span(result.details));
  const KeyFields fields = is_switch ? kSwitchFields : KeyFields{};
  put(details, fields.lid1, violation.from->lid);
  put(details, fields.lid2, violation.to->lid);
  put(details, fields.key, violation.key);
  put(details, fields.level, violation.service_level);
  put(details, fields.qp1, violation.source_qp);
  put(details, fields.qp2, violation.target_qp);
  const verbs::Gid gid1 = violation.from->gid();
  const verbs::Gid gid2 = violation.to->gid();
  std::memcpy(result.details.data() + fields.gids, gid1.data(), gid1.size());
  std::memcpy(result.details.data() + fields.gids + gid1.size(), gid2.data(), gid2.size());
  if (is_switch) {
    put(details, kValid, kAllValid);
    put(details, kDroppingSwitch, own_lid);
    put(details, kDroppingPort, at.number);
  }
  return result;
}

mad::Mad trap_smp(const sa::Notice& notice, std::uint64_t transaction_id) {
  mad::Smp smp;
  smp.header = {mad::kBaseVersion,
                mad::mgmt_class::kSubnLid,
                mad::kClassVersion,
                mad::method::kTrap,
                0,
                0,
                transaction_id,
                mad::smp_attribute::kNotice,
                0,
                0};
  // Without the GID, which only a report of the subnet administrator has.
  const auto bytes = sa::encode(notice);
  std::memcpy(smp.data.data(), bytes.data(), smp.data.size());
  return std::bit_cast<mad::Mad>(smp);
}

}  // namespace ib::services
