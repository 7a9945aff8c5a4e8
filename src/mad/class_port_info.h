// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ClassPortInfo [IBA1 13.4.8.1]: what an agent tells of itself, and where its service really is.
#pragma once

#include "mad/header.h"
#include "verbs/types.h"

#include <cstddef>
#include <cstdint>

namespace ib::mad {

struct ClassPortInfo {
  std::uint8_t base_version = kBaseVersion;
  std::uint8_t class_version = 1;
  Be16 capability_mask;
  Be32 capability_mask2_response_time;  // CapabilityMask2 (27), RespTimeValue (5)
  verbs::Gid redirect_gid{};
  Be32 redirect_tclass_sl_flow;  // TClass (8), SL (4), FlowLabel (20)
  Be16 redirect_lid;
  Be16 redirect_pkey;
  Be32 redirect_qpn;  // reserved (8), QPN (24)
  Be32 redirect_qkey;
  verbs::Gid trap_gid{};
  Be32 trap_tclass_sl_flow;
  Be16 trap_lid;
  Be16 trap_pkey;
  Be32 trap_hop_qpn;  // HopLimit (8), QPN (24)
  Be32 trap_qkey;
};
static_assert(sizeof(ClassPortInfo) == 72 && alignof(ClassPortInfo) == 1);
static_assert(offsetof(ClassPortInfo, redirect_lid) == 28 &&
              offsetof(ClassPortInfo, trap_gid) == 40);

inline constexpr std::uint16_t kClassPortInfo = 0x0001;  // its attribute id in every class

}  // namespace ib::mad
