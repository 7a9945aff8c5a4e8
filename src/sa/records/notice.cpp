// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/records/notice.h"

namespace ib::sa {

Notice gid_notice(std::uint16_t trap, const verbs::Gid& gid, std::uint16_t issuer_lid,
                  const verbs::Gid& issuer_gid) {
  Notice notice;
  notice.type = notice_type::kSubnetManagement;
  notice.producer = producer::kClassManager;
  notice.trap = trap;
  notice.issuer_lid = issuer_lid;
  notice.issuer_gid = issuer_gid;
  std::copy(gid.begin(), gid.end(), notice.details.begin() + kGidInDetails);
  return notice;
}

Notice capability_notice(std::uint16_t lid, const verbs::Gid& gid, std::uint32_t capabilities) {
  // Places in the details [IBA1 14.2.5.1, table 134].
  constexpr Field kLid{2, 0, 16};
  constexpr Field kCapabilityMask{6, 0, 32};
  Notice notice;
  notice.type = notice_type::kInformational;
  notice.producer = producer::kChannelAdapter;
  notice.trap = trap::kCapabilitiesChanged;
  notice.issuer_lid = lid;
  notice.issuer_gid = gid;
  const std::span details = std::as_writable_bytes(std::span(notice.details));
  put(details, kLid, lid);
  put(details, kCapabilityMask, capabilities);
  return notice;
}

}  // namespace ib::sa
