// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asynchronous events [IBA1 11.6.3]: each process has a queue of them, bounded, that its WaitEvent
// requests drain. A WaitEvent may come over any connection of the process, which it names by slot.
#pragma once

#include "drivers/soft_hca/core.h"

#include <cstddef>

namespace ib::drivers {

// Per process; further ones are dropped, and one EventsLost in their place has their number.
inline constexpr std::size_t kMaxEvents = 4096;

void push_event(Core& core, Session& session, const control::EventOut& event);
void raise_cq(Core& core, Cq& cq, verbs::EventType type);
void raise_srq(Core& core, Srq& srq, verbs::EventType type);
void raise_qp(Core& core, Qp& qp, verbs::EventType type);  // to all who hold it
void raise_port(Core& core, const fabric::Hca& hca, std::uint32_t port, verbs::EventType type);

// An HCA came or went: raises the event for the clients of its node that have subscribed.
void raise_ca(Core& core, const fabric::Hca& hca, verbs::EventType type);
// Somebody rang its doorbell (hca/layout/doorbell.h).
void raise_attention(Core& core, Session& session);

void wait_event(Core& core, Session& caller, io::IrpRef irp);
void raise_event(Core& core, Session& caller, const control::RaiseEventIn& in, io::IrpRef irp);

}  // namespace ib::drivers
