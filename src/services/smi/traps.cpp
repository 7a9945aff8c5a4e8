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
