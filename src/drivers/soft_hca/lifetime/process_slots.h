// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Processes: attaching to a process slot, releasing it, and the steps in between
// (docs/design/0003-death.md has their order and its reasons).
#pragma once

#include "drivers/soft_hca/core.h"
#include "drivers/soft_hca/lifetime/once.h"

#include <string>

namespace ib::drivers {

// Puts the client behind the request's file on a virtual host.
void attach(Core& core, Session& session, const control::AttachIn& in, io::IrpRef irp);

// The connection is over, in order or not: repairs, notifies peers, tears down, frees the slot.
// Ends later, when the session is gone. Idempotent.
void end_session(Core& core, Session& session);

// teardown.cpp: everything that these files own, in dependency order; then `done`. The files must
// be marked as closing.
void tear_down(Core& core, std::uint32_t slot, std::vector<std::shared_ptr<HcaFile>> files,
               Once done);

// death_repair.cpp: makes consistent what a dead process was in the middle of, and breaks its
// locks. It executes nothing any more, and its objects still exist.
void repair_after(Core& core, const Session& dead);
// Takes back the bounce requests of dead processes. Takes out of `dead`, and returns, the slots
// that no request names any more; the others have one on which some process still works.
std::vector<std::uint32_t> settle_bounces(Core& core, std::vector<std::uint32_t>& dead);

// death_of_peer.cpp: peers of its connected queue pairs go to Error when their retries would be
// over.
void notify_peers(Core& core, const Session& dead);
// The same for the peer of one queue pair, that of another process: it will not answer any more.
void expect_loss(Core& core, Qp& qp, control::Cause cause, std::uint64_t detail);
// TraceEntry::event of all lines of one process about the death of another one.
std::string loss_event(std::uint32_t survivor, std::uint64_t dead);

}  // namespace ib::drivers
