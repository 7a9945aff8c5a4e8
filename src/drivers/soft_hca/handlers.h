// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests that an HCA answers (verbs/control.h), one function each, and what destroying an
// object takes apart. Each function owns the request and completes it, now or after quiescence.
#pragma once

#include "drivers/soft_hca/core.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace ib::drivers {

// Finds the handler, checks the sizes of both buffers, calls it (dispatch.cpp). `file` is not being
// closed.
void dispatch_hca(Core& core, HcaFile& file, io::IrpRef irp);
// Returns whether a program may still do this with an HCA that was pulled out: let go of it.
bool lets_go(control::Code code);

// query.cpp
control::CaAttr ca_attributes(const fabric::Hca& hca);
void query_ca(Core&, HcaFile&, io::IrpRef);
void query_port(Core&, HcaFile&, const control::PortIn&, io::IrpRef);
void query_gid(Core&, HcaFile&, const control::TableIn&, io::IrpRef);
void query_pkey(Core&, HcaFile&, const control::TableIn&, io::IrpRef);
fabric::Port* find_port(HcaFile& file, std::uint32_t number);
std::string no_such_port(const HcaFile& file, std::uint32_t number);

// local_mad.cpp
void local_mad(Core&, HcaFile&, const control::MadIn&, io::IrpRef);

// ports.cpp
void modify_port(Core&, HcaFile&, const control::ModifyPortIn&, io::IrpRef);
// Takes a port down, or lets it come up: with a cable it does when the other end answers.
void set_port_state(Core& core, fabric::Port& port, bool up);
// Of whatever has changed ports: device memory, events, the trace, traps.
void apply_changes(Core& core, const fabric::PortChanges& changes);
// Replaces the capability mask. The last subnet manager that goes leaves its subnet to softib.
void set_capabilities(Core& core, const fabric::Hca& hca, fabric::Port& port, std::uint32_t mask);
// An HCA has come, gone, fallen asleep or woken: its ports and the other ends of their cables
// follow.
void train_links(Core& core, const fabric::Hca& hca);
// Processes look again at requests that wait for a port, or through it.
void kick_all(Core& core);

// pd.cpp
void alloc_pd(Core&, HcaFile&, io::IrpRef);
void dealloc_pd(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void create_ah(Core&, HcaFile&, const control::CreateAhIn&, io::IrpRef);
void destroy_ah(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void release(Core& core, Pd& pd);
void release(Core& core, Ah& ah);
// Returns whether requests can be sent there (verbs/address_check.h); if not, `reason` has the
// error.
bool check_address(Core& core, HcaFile& file, verbs::AddressVector& av, std::string& reason);

// memory_regions.cpp
void reg_mr(Core&, HcaFile&, const control::RegMrIn&, io::IrpRef);
void rereg_mr(Core&, HcaFile&, const control::ReregMrIn&, io::IrpRef);
void reg_physical(Core&, HcaFile&, const control::PhysicalIn&, io::IrpRef);
void rereg_physical(Core&, HcaFile&, const control::PhysicalIn&, io::IrpRef);
void dereg_mr(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void query_mr(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
// memory_windows.cpp
void alloc_mw(Core&, HcaFile&, const control::AllocMwIn&, io::IrpRef);
void dealloc_mw(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
// Returns a new entry of the key table, not usable yet, or nullptr if the table is full.
Key* new_key(Core& core, HcaFile& file, Kind kind, Pd& pd);
void hide(Core& core, Key& key);  // posters find it no more
void release(Core& core, Key& key);

// alloc_dm.cpp
void alloc_dm(Core&, HcaFile&, const control::AllocDmIn&, io::IrpRef);
void free_dm(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void release(Core& core, Dm& dm);

// cq.cpp
void create_cq(Core&, HcaFile&, const control::CreateCqIn&, io::IrpRef);
void resize_cq(Core&, HcaFile&, const control::ResizeCqIn&, io::IrpRef);  // cq_resize.cpp
void destroy_cq(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void hide(Core& core, Cq& cq);
void release(Core& core, Cq& cq);
// Counts producers of completions. Returns true if they must not start before the next quiescence,
// since a producer that was alone so far does not take the lock yet; then producers_settled()
// follows.
[[nodiscard]] bool add_producers(Core& core, Cq& cq, std::uint32_t n);
void producers_settled(Core& core, std::uint32_t cq, std::uint64_t serial);
void remove_producers(Core& core, Cq& cq, std::uint32_t n);

// xrcd.cpp
void open_xrcd(Core&, HcaFile&, const control::OpenXrcdIn&, io::IrpRef);
void close_xrcd(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void release(Core& core, Xrcd& xrcd, HcaFile& opener);  // all that this file has of it

// Slots of the ring for `max_wr` receives: some are always free. Else a receive that is posted when
// one was consumed would be written where a poster has just read, whose processor fetches such
// lines again while the answer waits for them. 24 free slots are enough, 20 are not
// (docs/design/0005).
constexpr std::uint32_t receive_slots(std::uint32_t max_wr) {
  constexpr std::uint32_t kLeastSpare = 4;
  constexpr std::uint32_t kMostSpare = 32;
  return std::bit_ceil(max_wr + std::clamp(max_wr, kLeastSpare, kMostSpare));
}

// srq.cpp
void create_srq(Core&, HcaFile&, const control::CreateSrqIn&, io::IrpRef);
void modify_srq(Core&, HcaFile&, const control::ModifySrqIn&, io::IrpRef);
void query_srq(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void destroy_srq(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void hide(Core& core, Srq& srq);
void release(Core& core, Srq& srq);

// qp.cpp
void create_qp(Core&, HcaFile&, const control::CreateQpIn&, io::IrpRef);
void open_qp(Core&, HcaFile&, const control::OpenQpIn&, io::IrpRef);
void destroy_qp(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void query_qp(Core&, HcaFile&, const control::IndexIn&, io::IrpRef);
void modify_qp(Core&, HcaFile&, const control::ModifyQpIn&, io::IrpRef);  // qp_modify.cpp
verbs::QpState current_state(Core& core,
                             const Qp& qp);  // device memory may be ahead of the records
// Releases the file's hold. Returns true if it was the last one; the QP is then dying and hidden.
bool drop_holder(Core& core, Qp& qp, HcaFile& file);
// Runs `then` once no poster works with it any more; its state or number has just turned them away.
void after_users_left(Core& core, const Qp& qp, Once then);
void release(Core& core, Qp& qp);

// special_qp.cpp: queue pairs 0 and 1 of a port [IBA1 3.9.2]
// Returns whether this client may have it; if not, `reason` has the cause.
Status check_special(Core& core, HcaFile& file, const control::CreateQpIn& in,
                     io::RequestorMode mode, std::string& reason);
void enter_special(Core& core, Qp& qp, std::uint32_t port);
void publish_special(Core& core, const Qp& qp);  // from now on messages reach it
void hide_special(Core& core, const Qp& qp);
void leave_special(Core& core, const Qp& qp);

// multicast.cpp
void attach_mcast(Core&, HcaFile&, const control::McastIn&, io::IrpRef);
void detach_mcast(Core&, HcaFile&, const control::McastIn&, io::IrpRef);
void hide_groups(Core& core, Qp& qp);
void release_groups(Core& core, Qp& qp);

}  // namespace ib::drivers
