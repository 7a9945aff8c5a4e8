// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions [IBA1 10.6, 11.2.8]: entries of the key table. A poster may use an entry from the
// moment its state is Valid until the quiescence after it no longer is.
#include "drivers/handlers.h"
#include "verbs/limits.h"

#include <limits>
#include <memory>
#include <new>

namespace ib::drivers {
namespace {

namespace access = verbs::access;
namespace limits = verbs::limits;
namespace region_flag = control::region_flag;

constexpr std::uint64_t kEverything = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kKnownAccess = access::kLocalWrite | access::kRemoteAny | access::kMwBind |
                                       access::kZeroBased | access::kOnDemand | access::kHugeTlb |
                                       access::kOptionalRange;
// ibv_rereg_mr_flags
constexpr std::uint32_t kTranslation = 1;
constexpr std::uint32_t kPd = 2;
constexpr std::uint32_t kAccess = 4;

bool check_access(std::uint32_t flags, std::string& reason) {
  if ((flags & ~kKnownAccess) != 0) {
    reason = say("access flags ", hex(flags & ~kKnownAccess), " are not supported");
    return false;
  }
  if ((flags & (access::kRemoteWrite | access::kRemoteAtomic)) != 0 &&
      (flags & access::kLocalWrite) == 0) {
    reason =
        "remote write and remote atomic access need IBV_ACCESS_LOCAL_WRITE too [IBA1 10.6.3.1]";
    return false;
  }
  return true;
}

// The memory that a region is to cover; also the iova, which follows from the flags.
struct Extent {
  Dm* dm = nullptr;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
};

bool check_extent(Core& core, HcaFile& file, const control::RegMrIn& in, Extent& out,
                  std::string& reason) {
  if ((in.flags & (region_flag::kNull | region_flag::kImplicitOdp)) != 0) {
    out = {nullptr, 0, kEverything, 0};
    if ((in.flags & region_flag::kNull) == 0 && (in.access & access::kOnDemand) == 0) {
      reason = "registering the whole address space needs IBV_ACCESS_ON_DEMAND";
      return false;
    }
    return true;
  }
  out = {nullptr, in.address, in.length, (in.access & access::kZeroBased) != 0 ? 0 : in.iova};
  if (in.length > limits::kMaxMrSize) {
    reason = say("a region of ", in.length, " bytes; at most ", limits::kMaxMrSize);
    return false;
  }
  if (in.address > kEverything - in.length || out.iova > kEverything - in.length) {
    reason = say("a region of ", in.length, " bytes from ", hex(in.address),
                 " on wraps around the end of the address space");
    return false;
  }
  if (in.dm == control::kNoIndex) return true;
  out.dm = find_own(core.dms, file, in.dm);
  if (out.dm == nullptr) {
    reason = no_such(Kind::DeviceMemory, in.dm);
    return false;
  }
  if (in.address > out.dm->length || in.length > out.dm->length - in.address) {
    reason = say("bytes ", in.address, " to ", in.address + in.length, " of device memory ",
                 control::index_of(in.dm), ", which has ", out.dm->length);
    return false;
  }
  out.address = out.dm->offset + in.address;
  return true;
}

void set_extent(Key& key, const Extent& extent) {
  if (key.dm != nullptr) --key.dm->regions;
  key.dm = extent.dm;
  if (key.dm != nullptr) ++key.dm->regions;
  key.address = extent.address;
  key.length = extent.length;
  key.iova = extent.iova;
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
  entry.id.kind = (flags & region_flag::kNull) != 0 ? hca::KeyKind::Null
                  : key.dm != nullptr               ? hca::KeyKind::DeviceMemory
                                                    : hca::KeyKind::Region;
  entry.adopted.flags = flags;
  entry.id.key.store(key.key, std::memory_order_relaxed);
  entry.id.state.store(static_cast<std::uint32_t>(hca::KeyState::Valid), std::memory_order_seq_cst);
}

control::MrOut mr_out(const Key& key) {
  const std::uint64_t address = key.dm != nullptr ? key.address - key.dm->offset : key.address;
  return {key.key, key.key, address, key.length};
}

// Why it cannot be changed or destroyed now; empty if it can.
std::string why_busy(Core& core, const Key& key) {
  if (key.busy) return still_busy(Kind::Region, key.index);
  const std::uint32_t windows = core.arena().key(key.index)->adopted.windows.load();
  if (windows == 0) return {};
  return say("memory region ", key.index, " has ", count_of(windows, "bound memory window"));
}

// `pd`: the old one, becomes the new one.
bool check_change(Core& core, HcaFile& file, const control::ReregMrIn& in, Pd*& pd, Extent& extent,
                  std::string& reason) {
  if (in.change == 0 || (in.change & ~(kTranslation | kPd | kAccess)) != 0) {
    reason = say("change flags ", hex(in.change));
    return false;
  }
  if ((in.change & kPd) != 0) pd = find_own(core.pds, file, in.to.pd);
  if (pd == nullptr) {
    reason = no_such(Kind::Pd, in.to.pd);
    return false;
  }
  return ((in.change & kAccess) == 0 || check_access(in.to.access, reason)) &&
         ((in.change & kTranslation) == 0 || check_extent(core, file, in.to, extent, reason));
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
  Pd* pd = find_own(core.pds, file, in.pd);
  if (pd == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such(Kind::Pd, in.pd));
  }
  std::string reason;
  Extent extent;
  if (!check_access(in.access, reason) || !check_extent(core, file, in, extent, reason)) {
    return fail(core, std::move(irp), Status::InvalidParameter, std::move(reason));
  }
  Key* key = has_room(core, file, Kind::Region, limits::kMaxMr, reason)
                 ? new_key(core, file, Kind::Region, *pd)
                 : nullptr;
  if (key == nullptr) {
    return fail(core, std::move(irp), Status::InsufficientResources,
                reason.empty() ? "the fabric's table of memory keys is full" : reason);
  }
  key->access = in.access;
  set_extent(*key, extent);
  publish(core, *key, in.flags);
  succeed_with(std::move(irp), mr_out(*key), key->handle);
}

void rereg_mr(Core& core, HcaFile& file, const control::ReregMrIn& in, io::IrpRef irp) {
  Key* key = find_key(core, file, Kind::Region, in.index);
  if (key == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such(Kind::Region, in.index));
  }
  std::string reason = why_busy(core, *key);
  if (!reason.empty()) {
    return fail(core, std::move(irp), Status::DeviceBusy, std::move(reason));
  }
  Extent extent;
  Pd* pd = key->pd;
  if (!check_change(core, file, in, pd, extent, reason)) {
    return fail(core, std::move(irp), Status::InvalidParameter, std::move(reason));
  }
  hca::KeyEntry& entry = *core.arena().key(key->index);
  std::uint32_t flags = entry.adopted.flags;
  if ((in.change & kTranslation) != 0) {
    set_extent(*key, extent);
    flags = in.to.flags;
  }
  if ((in.change & kAccess) != 0) key->access = in.to.access;
  --key->pd->regions;
  key->pd = pd;
  ++key->pd->regions;
  key->busy = true;
  // The key stays the same, so that peers who know it see the new memory or the new rights.
  entry.id.state.store(static_cast<std::uint32_t>(hca::KeyState::Moving),
                       std::memory_order_seq_cst);
  core.after_quiescence(
      [&core, index = key->index, serial = key->serial, flags, irp = std::move(irp)]() mutable {
        Key* changed = core.keys.find(index, serial);
        if (changed == nullptr || changed->dying) {
          return fail(core, std::move(irp), Status::Cancelled, "the process ended meanwhile");
        }
        changed->busy = false;
        publish(core, *changed, flags);
        succeed_with(std::move(irp), mr_out(*changed), changed->handle);
      });
}

void dereg_mr(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  Key* key = find_key(core, file, Kind::Region, in.index);
  if (key == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such(Kind::Region, in.index));
  }
  std::string reason = why_busy(core, *key);
  if (!reason.empty()) {
    return fail(core, std::move(irp), Status::DeviceBusy, std::move(reason));
  }
  hide(core, *key);
  core.after_quiescence(
      [&core, index = key->index, serial = key->serial, irp = std::move(irp)]() mutable {
        if (Key* gone = core.keys.find(index, serial); gone != nullptr) release(core, *gone);
        succeed(std::move(irp));
      });
}

void query_mr(Core& core, HcaFile& file, const control::IndexIn& in, io::IrpRef irp) {
  const Key* key = find_key(core, file, Kind::Region, in.index);
  if (key == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such(Kind::Region, in.index));
  }
  succeed_with(std::move(irp), mr_out(*key), key->handle);
}

void hide(Core& core, Key& key) {
  key.dying = true;
  hca::KeyEntry& entry = *core.arena().key(key.index);
  const std::uint32_t before = entry.id.state.exchange(
      static_cast<std::uint32_t>(hca::KeyState::Invalid), std::memory_order_seq_cst);
  entry.id.key.store(0, std::memory_order_seq_cst);
  // A window that is still bound: its region may be deregistered from now on. If its owner has
  // unbound it itself, it was not Valid any more.
  if (key.kind != Kind::Window || before != static_cast<std::uint32_t>(hca::KeyState::Valid))
    return;
  const std::uint32_t region = entry.id.window_region;
  const Key* bound_to = core.keys.find(region);
  if (bound_to == nullptr || bound_to->file != key.file) return;
  hca::Shared32& windows = core.arena().key(region)->adopted.windows;
  std::uint32_t count = windows.load();
  while (count > 0 && !windows.compare_exchange_weak(count, count - 1)) {}
}

void release(Core& core, Key& key) {
  if (key.dm != nullptr) --key.dm->regions;
  --(key.kind == Kind::Window ? key.pd->windows : key.pd->regions);
  leave(core, *key.file, key.kind, key.index);
  core.keys.destroy(key.index);
}

}  // namespace ib::drivers
