// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The notices of subnet management agents [IBA1 14.2.5.1, 14.3.10], and the SMP that carries one.
#pragma once

#include "fabric/graph.h"
#include "fabric/key_violation.h"
#include "mad/smp.h"
#include "sa/records/notice.h"

#include <cstdint>

namespace ib::services {

// Trap 128: a port of the switch with this LID has another state.
sa::Notice link_state_notice(std::uint16_t lid);
// Trap 256: an SMP from `source` came with a wrong M_Key.
sa::Notice bad_m_key_notice(std::uint16_t lid, std::uint16_t source, const mad::Smp& smp);

// Traps 129 to 131: the errors of a link. `lid`: of the port, or of its switch.
sa::Notice link_error_notice(std::uint16_t trap, bool is_switch, std::uint16_t lid,
                             std::uint32_t port);
// Traps 257 and 258 of the receiver, 259 of the switch that `at` is a port of.
sa::Notice bad_key_notice(const fabric::Graph& graph, const fabric::KeyViolation& violation,
                          const fabric::Port& at);

mad::Mad trap_smp(const sa::Notice& notice, std::uint64_t transaction_id);

}  // namespace ib::services
