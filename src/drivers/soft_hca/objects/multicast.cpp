// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multicast attachments [IBA1 10.5.2, 11.2.10]: entries that posters of datagrams find by GID or
// LID.
#include "drivers/soft_hca/handlers.h"
#include "verbs/gid.h"
#include "verbs/qp_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace ib::drivers {
namespace {

McastGroupEntry* find_attachment(Core& core, const Qp& qp, const control::McastIn& in) {
  for (const std::uint32_t index : qp.groups) {
    McastGroupEntry* entry = core.mcasts.find(index);
    if (!entry->dying && entry->mgid == in.mgid && entry->mlid == in.mlid) return entry;
  }
  return nullptr;
}

void hide(Core& core, McastGroupEntry& entry) {
  if (entry.dying) return;  // a detach of it waits for posters
  entry.dying = true;
  core.arena().mcast(entry.index)->qpn.store(0, std::memory_order_seq_cst);
  core.mcast_chains.leave(core.arena(), core.mcasts, entry);
}

}  // namespace

void attach_mcast(Core& core, HcaFile& file, const control::McastIn& in, io::IrpRef irp) {
  Qp* qp = find_qp(core, file, in.qp);
  if (qp == nullptr) return fail_no_such(core, std::move(irp), Kind::Qp, in.qp);
  std::string reason;
  if (qp->type != verbs::QpType::Ud) {
    reason = fmt::format("queue pairs of type {} cannot join a multicast group, only UD",
                         qp_type_name(qp->type));
  } else if (!verbs::is_multicast(in.mgid)) {
    reason =
        fmt::format("{} is no multicast GID (ff00::/8, 224.0.0.0/4)", verbs::address_text(in.mgid));
  } else if (in.mlid != 0 && in.mlid < 0xc000) {
    reason = fmt::format("LID {:#x} is no multicast LID (0xc000 to 0xfffe)", in.mlid);
  }
  if (!reason.empty()) {
    return fail(core, std::move(irp), Status::InvalidParameter, std::move(reason));
  }
  // A second time is no error and changes nothing [IBA1 11.2.10.1].
  if (find_attachment(core, *qp, in) != nullptr) return succeed(std::move(irp));
  McastGroupEntry* made = core.mcasts.create();
  if (made == nullptr) {
    return fail(
        core, std::move(irp), Status::InsufficientResources,
        fmt::format("all {} multicast attachments of the fabric are in use", hca::kMaxMcast));
  }
  made->mgid = in.mgid;
  made->mlid = in.mlid;
  made->qp = qp;
  qp->groups.insert(made->index);
  auto* entry = new (core.arena().mcast(made->index)) hca::McastEntry;
  entry->mgid = in.mgid;
  entry->mlid = in.mlid;
  entry->qpn.store(qp->qpn, std::memory_order_release);
  hca::Shared32& count = core.arena().mcast_count();
  count.store(std::max(count.load(), made->index + 1), std::memory_order_seq_cst);
  core.mcast_chains.enter(core.arena(), core.mcasts, *made);
  succeed(std::move(irp));
}

void detach_mcast(Core& core, HcaFile& file, const control::McastIn& in, io::IrpRef irp) {
  Qp* qp = find_qp(core, file, in.qp);
  if (qp == nullptr) return fail_no_such(core, std::move(irp), Kind::Qp, in.qp);
  McastGroupEntry* entry = find_attachment(core, *qp, in);
  if (entry == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("queue pair {} is not attached to this group", in.qp));
  }
  hide(core, *entry);
  core.after_quiescence(file.session->slot, [&core, index = entry->index, serial = entry->serial,
                                             irp = std::move(irp)]() mutable {
    if (McastGroupEntry* gone = core.mcasts.find(index, serial); gone != nullptr) {
      gone->qp->groups.erase(index);
      core.mcasts.destroy(index);
    }
    succeed(std::move(irp));
  });
}

void hide_groups(Core& core, Qp& qp) {
  for (const std::uint32_t index : qp.groups) hide(core, *core.mcasts.find(index));
}

void release_groups(Core& core, Qp& qp) {
  for (const std::uint32_t index : qp.groups) core.mcasts.destroy(index);
  qp.groups.clear();
}

}  // namespace ib::drivers
