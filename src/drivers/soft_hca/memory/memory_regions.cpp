// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions [IBA1 10.6, 11.2.8]: entries of the key table. A poster may use an entry from the
// moment its state is Valid until the quiescence after it no longer is.
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/memory/extent.h"
#include "verbs/limits.h"

#include <fmt/format.h>

#include <new>
#include <optional>

namespace ib::drivers {
namespace {

namespace limits = verbs::limits;
namespace region_flag = control::region_flag;

// ibv_rereg_mr_flags
constexpr std::uint32_t kTranslation = 1;
constexpr std::uint32_t kPd = 2;
constexpr std::uint32_t kAccess = 4;

// The list of ranges that it had before is the caller's to release, when no poster is in it.
void set_extent(Key& key, const Extent& extent) {
  if (key.dm != nullptr) --key.dm->regions;
  key.dm = extent.dm;
  if (key.dm != nullptr) ++key.dm->regions;
  key.address = extent.address;
  key.length = extent.length;
  key.iova = extent.iova;
  key.ranges = extent.ranges;
}

// Stores what posters need; `state` last, so that they see all of it or nothing.
void publish(Core& core, const Key& key, std::uint32_t flags) {
  hca::KeyEntry& entry = *core.arena().key(key.index);
  entry.id.pd = key.pd->index;
  entry.id.access = key.access;
  entry.id.iova = key.iova;
  entry.id.length = key.length;
  entry.id.address = key.address;
  entry.id.owner_slot = key.file->session->slot;
  entry.id.ranges = key.ranges;
  entry.id.kind = (flags & region_flag::kNull) != 0 ? hca::KeyKind::Null
                  : key.ranges != 0                 ? hca::KeyKind::Ranges
                  : key.dm != nullptr               ? hca::KeyKind::DeviceMemory
                                                    : hca::KeyKind::Region;
  entry.adopted.flags = flags;
  entry.id.key.store(key.key, std::memory_order_relaxed);
  entry.id.state.store(hca::KeyState::Valid, std::memory_order_seq_cst);
}

control::MrOut mr_out(const Key& key) {
  const bool in_dm = key.dm != nullptr && key.ranges == 0;
  const std::uint64_t address = in_dm ? key.address - key.dm->offset : key.address;
  return {key.key, key.key, address, key.length};
}

// Why it cannot be changed or destroyed now; empty if it can.
std::string why_busy(Core& core, const Key& key) {
  if (key.busy) return still_busy(Kind::Region, key.index);
  const std::uint32_t windows = core.arena().key(key.index)->adopted.windows.load();
  if (windows == 0) return {};
  return fmt::format("memory region {} has {}", key.index,
                     count_of(windows, "bound memory window"));
}

// The new attributes of a region; `pd` also if it stays.
struct Change {
  Pd* pd = nullptr;
  std::optional<std::uint32_t> access;
  std::optional<Extent> extent;
  std::uint32_t flags = 0;  // with `extent`
};

Status check_change(Core& core, HcaFile& file, const control::ReregMrIn& in, Change& out,
                    std::string& reason) {
  if (in.change == 0 || (in.change & ~(kTranslation | kPd | kAccess)) != 0) {
    reason = fmt::format("change flags {:#x}", in.change);
    return Status::InvalidParameter;
  }
  if ((in.change & kPd) != 0) out.pd = find_own(core.pds, file, in.to.pd);
  if (out.pd == nullptr) return no_such(core, Kind::Pd, in.to.pd, reason);
  if ((in.change & kAccess) != 0) {
    IB_CHECK(check_access(in.to.access, reason));
    out.access = in.to.access;
  }
  if ((in.change & kTranslation) == 0) return Status::Ok;
  out.flags = in.to.flags;
  return check_extent(core, file, in.to, out.extent.emplace(), reason);
}

// Returns nullptr if the request was refused.
Key* find_changeable(Core& core, HcaFile& file, std::uint32_t handle, io::IrpRef& irp) {
  Key* key = find_key(core, file, Kind::Region, handle);
  if (key == nullptr) {
    fail_no_such(core, std::move(irp), Kind::Region, handle);
    return nullptr;
  }
  std::string reason = why_busy(core, *key);
  if (reason.empty()) return key;
  fail(core, std::move(irp), Status::DeviceBusy, std::move(reason));
  return nullptr;
}

bool is_from_kernel(Core& core, io::IrpRef& irp) {
  if (irp->requestor_mode == io::RequestorMode::Kernel) return true;
  fail(core, std::move(irp), Status::AccessDenied,
       "physical registration is for kernel clients; a program registers its own memory (RegMr)");
  return false;
}

struct Terms {
  std::uint32_t pd = 0;
  std::uint32_t access = 0;
  std::uint32_t flags = 0;
};

void make_region(Core& core, HcaFile& file, const Terms& terms, const Extent& extent,
                 io::IrpRef irp) {
  std::string reason;
  Status status = Status::Ok;
  Key* key = nullptr;
  if (Pd* pd = find_own(core.pds, file, terms.pd); pd == nullptr) {
    status = no_such(core, Kind::Pd, terms.pd, reason);
  } else if (status = check_access(terms.access, reason); status == Status::Ok) {
    status = Status::InsufficientResources;
    if (has_room(core, file, Kind::Region, limits::kMaxMr, reason)) {
      key = new_key(core, file, Kind::Region, *pd);
      if (key == nullptr) reason = "the fabric's table of memory keys is full";
    }
  }
  if (key == nullptr) {
    if (extent.ranges != 0) core.memory.release(extent.ranges);
    return fail(core, std::move(irp), status, std::move(reason));
  }
  key->access = terms.access;
  set_extent(*key, extent);
  publish(core, *key, terms.flags);
  succeed_with(std::move(irp), mr_out(*key), key->handle);
}

// The key stays the same, so that peers that have it see the new memory or the new rights.
void change_region(Core& core, Key& key, const Change& to, io::IrpRef irp) {
  hca::KeyEntry& entry = *core.arena().key(key.index);
  std::uint32_t flags = entry.adopted.flags;
  std::uint64_t old_ranges = 0;
  if (to.extent) {
    old_ranges = key.ranges;
    set_extent(key, *to.extent);
    flags = to.flags;
  }
  if (to.access) key.access = *to.access;
  --key.pd->regions;
  key.pd = to.pd;
  ++key.pd->regions;
  key.busy = true;
  entry.id.state.store(hca::KeyState::Moving, std::memory_order_seq_cst);
  core.after_quiescence(
      key.file->session->slot, [&core, index = key.index, serial = key.serial, flags, old_ranges,
                                new_range = to.extent.has_value(), irp = std::move(irp)]() mutable {
        if (old_ranges != 0) core.memory.release(old_ranges);
        Key* changed = core.keys.find(index, serial);
        if (changed == nullptr || changed->dying) {
          return fail(core, std::move(irp), Status::Cancelled, "the process ended meanwhile");
        }
        changed->busy = false;
        // The owner adopts at registration only: what it adopted belongs to the old range.
        if (new_range) core.arena().key(index)->adopted.length = 0;
        publish(core, *changed, flags);
        succeed_with(std::move(irp), mr_out(*changed), changed->handle);
      });
}

}  // namespace

Key* new_key(Core& core, HcaFile& file, Kind kind, Pd& pd) {
  Key* key = core.keys.create();
  if (key == nullptr) return nullptr;
  key->file = &file;
  key->kind = kind;
  key->pd = &pd;
  key->key = (key->index << 8) | ++core.key_tags[key->index];
  new (core.arena().key(key->index)) hca::KeyEntry;
  ++(kind == Kind::Window ? pd.windows : pd.regions);
  enter(core, file, kind, key->index);
  return key;
}

void reg_mr(Core& core, HcaFile& file, const control::RegMrIn& in, io::IrpRef irp) {
  std::string reason;
  Extent extent;
  if (const Status checked = check_extent(core, file, in, extent, reason); checked != Status::Ok) {
    return fail(core, std::move(irp), checked, std::move(reason));
  }
  make_region(core, file, {in.pd, in.access, in.flags}, extent, std::move(irp));
}

void reg_physical(Core& core, HcaFile& file, const control::PhysicalIn& in, io::IrpRef irp) {
  if (!is_from_kernel(core, irp)) return;
  std::string reason;
  Extent extent;
  if (const Status made = make_extent(core, file, in, extent, reason); made != Status::Ok) {
    return fail(core, std::move(irp), made, std::move(reason));
  }
  make_region(core, file, {in.pd, in.access, 0}, extent, std::move(irp));
}

void rereg_mr(Core& core, HcaFile& file, const control::ReregMrIn& in, io::IrpRef irp) {
  Key* key = find_changeable(core, file, in.index, irp);
  if (key == nullptr) return;
  std::string reason;
  Change change;
  change.pd = key->pd;
  if (const Status checked = check_change(core, file, in, change, reason); checked != Status::Ok) {
    return fail(core, std::move(irp), checked, std::move(reason));
  }
  change_region(core, *key, change, std::move(irp));
}

void rereg_physical(Core& core, HcaFile& file, const control::PhysicalIn& in, io::IrpRef irp) {
  if (!is_from_kernel(core, irp)) return;
  Key* key = find_changeable(core, file, in.region, irp);
  if (key == nullptr) return;
  std::string reason;
  Extent extent;
  if (const Status made = make_extent(core, file, in, extent, reason); made != Status::Ok) {
    return fail(core, std::move(irp), made, std::move(reason));
  }
  change_region(core, *key, {key->pd, std::nullopt, extent, 0}, std::move(irp));
}

void dereg_mr(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Key* key = find_key(core, file, Kind::Region, in.index);
  if (key == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Region, in.index);
  }
  std::string reason = why_busy(core, *key);
  if (!reason.empty()) {
    return fail(core, std::move(irp), Status::DeviceBusy, std::move(reason));
  }
  hide(core, *key);
  core.after_quiescence(file.session->slot, [&core, index = key->index, serial = key->serial,
                                             irp = std::move(irp)]() mutable {
    if (Key* gone = core.keys.find(index, serial); gone != nullptr) release(core, *gone);
    succeed(std::move(irp));
  });
}

void query_mr(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  const Key* key = find_key(core, file, Kind::Region, in.index);
  if (key == nullptr) {
    return fail_no_such(core, std::move(irp), Kind::Region, in.index);
  }
  succeed_with(std::move(irp), mr_out(*key), key->handle);
}

void hide(Core& core, Key& key) {
  key.dying = true;
  hca::KeyEntry& entry = *core.arena().key(key.index);
  const hca::KeyState before =
      entry.id.state.exchange(hca::KeyState::Invalid, std::memory_order_seq_cst);
  entry.id.key.store(0, std::memory_order_seq_cst);
  // A window that is still bound: its region may be deregistered from now on. If its owner has
  // unbound it itself, it was not Valid any more.
  if (key.kind != Kind::Window || before != hca::KeyState::Valid) return;
  const std::uint32_t region = entry.id.window_region;
  const Key* bound_to = core.keys.find(region);
  if (bound_to == nullptr || bound_to->file != key.file) return;
  hca::Shared32& windows = core.arena().key(region)->adopted.windows;
  std::uint32_t count = windows.load();
  while (count > 0 && !windows.compare_exchange_weak(count, count - 1)) {}
}

void release(Core& core, Key& key) {
  if (key.dm != nullptr) --key.dm->regions;
  if (key.ranges != 0) core.memory.release(key.ranges);
  --(key.kind == Kind::Window ? key.pd->windows : key.pd->regions);
  leave(core, *key.file, key.kind, key.index);
  core.keys.destroy(key.index);
}

}  // namespace ib::drivers
