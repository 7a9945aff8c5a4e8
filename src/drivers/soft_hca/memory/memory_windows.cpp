// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows [IBA1 10.6.7]: entries of the key table that their owner binds to a region with a
// work request (hca/requester/memory_window_bind.cpp).
#include "drivers/soft_hca/handlers.h"
#include "verbs/limits.h"

#include <fmt/format.h>

namespace ib::drivers {

namespace limits = verbs::limits;

void alloc_mw(Core& core, HcaFile& file, const control::AllocMwIn& in, io::IrpRef irp) {
  Pd* pd = find_own(core.pds, file, in.pd);
  if (pd == nullptr) return fail_no_such(core, std::move(irp), Kind::Pd, in.pd);
  if (in.type != 1 && in.type != 2) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("memory windows have type 1 or 2, not {}", in.type));
  }
  std::string reason;
  Key* key = has_room(core, file, Kind::Window, limits::kMaxMw, reason)
                 ? new_key(core, file, Kind::Window, *pd)
                 : nullptr;
  if (key == nullptr) {
    return fail(core, std::move(irp), Status::InsufficientResources,
                reason.empty() ? "the fabric's table of memory keys is full" : reason);
  }
  // Invalid until its owner binds it.
  hca::KeyEntry& entry = *core.arena().key(key->index);
  entry.id.pd = pd->index;
  entry.id.owner_slot = file.session->slot;
  entry.id.kind = in.type == 1 ? hca::KeyKind::Window1 : hca::KeyKind::Window2;
  entry.id.key.store(key->key, std::memory_order_release);
  succeed_with(std::move(irp), control::MrOut{0, key->key, 0, 0}, key->handle);
}

void dealloc_mw(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Key* key = find_key(core, file, Kind::Window, in.index);
  if (key == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Window, in.index);
  }
  hide(core, *key);
  core.after_quiescence(file.session->slot, [&core, index = key->index, serial = key->serial,
                                             irp = std::move(irp)]() mutable {
    if (Key* gone = core.keys.find(index, serial); gone != nullptr) release(core, *gone);
    succeed(std::move(irp));
  });
}

}  // namespace ib::drivers
