// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The notices of subnet management agents [IBA1 14.2.5.1, 14.3.10], and the SMP that carries one.
#pragma once

#include "mad/smp.h"
#include "sa/records/notice.h"

#include <cstdint>

namespace ib::services {

// Trap 128: a port of the switch with this LID has another state.
sa::Notice link_state_notice(std::uint16_t lid);
// Trap 256: an SMP from `source` came with a wrong M_Key.
sa::Notice bad_m_key_notice(std::uint16_t lid, std::uint16_t source, const mad::Smp& smp);

mad::Mad trap_smp(const sa::Notice& notice, std::uint64_t transaction_id);

}  // namespace ib::services
